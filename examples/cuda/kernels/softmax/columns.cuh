// Softmax along another dim than the last one: threadIdx.x are neighbouring columns, so that a warp reads neighbouring elements; threadIdx.y shares a column.
#pragma once

#include "../../lib/reduce.cuh"
#include "rows.cuh"

// A column of n elements, which lie `inner` apart. One past the last has no elements: it takes part in shuffles, and stores nothing.
struct Column {
  long long start, end;

  __device__ Column(long long columns, long long n, long long inner) {
    const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    start = column / inner * n * inner + column % inner;
    end = column < columns ? n : 0;
  }
};

// What a thread has of its column: every blockDim.y-th element.
struct Share {
  long long first, step;
  int count;

  __device__ Share(const Column& column, long long inner) {
    first = column.start + threadIdx.y * inner;
    step = blockDim.y * inner;
    count = (int(column.end) - int(threadIdx.y) + int(blockDim.y) - 1) / int(blockDim.y);
  }
};

// A thread holds COUNT elements of its column.
template <int COUNT, typename T>
__device__ void forward_column(
    const T* __restrict__ input, T* __restrict__ output, long long columns, int n, long long inner) {
  const Share share(Column(columns, n, inner), inner);
  float value[COUNT];
  float largest = -INFINITY;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    value[c] = c < share.count ? float(input[share.first + c * share.step]) : -INFINITY;
  }
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    largest = fmaxf(largest, value[c]);
  }
  largest = across_column(largest, Max{});

  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    value[c] = expf(value[c] - largest);
    total += value[c];
  }
  const float scale = 1.0f / across_column(total, Sum{});

#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    if (c < share.count) {
      output[share.first + c * share.step] = T(value[c] * scale);
    }
  }
}

template <int COUNT, typename T>
__device__ void backward_column(
    const T* __restrict__ grad, const T* __restrict__ output, T* __restrict__ result, long long columns, int n,
    long long inner) {
  const Share share(Column(columns, n, inner), inner);
  T dy[COUNT], y[COUNT];
  float dot = 0.0f;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    dy[c] = c < share.count ? grad[share.first + c * share.step] : T(0.0f);
  }
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    y[c] = c < share.count ? output[share.first + c * share.step] : T(0.0f);
  }
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    dot += float(dy[c]) * float(y[c]);
  }
  dot = across_column(dot, Sum{});

#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    if (c < share.count) {
      result[share.first + c * share.step] = T(float(y[c]) * (float(dy[c]) - dot));
    }
  }
}

// Columns that no block holds: read twice, the first time for the largest element and the sum at once.
template <typename T>
__device__ void forward_long_column(
    const T* __restrict__ input, T* __restrict__ output, long long columns, long long n, long long inner) {
  const Column column(columns, n, inner);
  Running running;
#pragma unroll 4
  for (long long i = threadIdx.y; i < column.end; i += blockDim.y) {
    const float x = float(input[column.start + i * inner]);
    running.raise(x);
    running.add(x);
  }
  const float most = across_column(running.largest, Max{});
  running.raise(most);
  const float scale = 1.0f / across_column(running.total, Sum{});
#pragma unroll 4
  for (long long i = threadIdx.y; i < column.end; i += blockDim.y) {
    const long long place = column.start + i * inner;
    output[place] = T(expf(float(input[place]) - most) * scale);
  }
}

template <typename T>
__device__ void backward_long_column(
    const T* __restrict__ grad, const T* __restrict__ output, T* __restrict__ result, long long columns, long long n,
    long long inner) {
  const Column column(columns, n, inner);
  float dot = 0.0f;
#pragma unroll 4
  for (long long i = threadIdx.y; i < column.end; i += blockDim.y) {
    dot += float(grad[column.start + i * inner]) * float(output[column.start + i * inner]);
  }
  dot = across_column(dot, Sum{});
#pragma unroll 4
  for (long long i = threadIdx.y; i < column.end; i += blockDim.y) {
    const long long place = column.start + i * inner;
    result[place] = T(float(output[place]) * (float(grad[place]) - dot));
  }
}

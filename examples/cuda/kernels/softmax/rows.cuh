// Softmax of rows that lie in one piece: a row in the registers of its threads, or in pieces that several blocks share.
#pragma once

#include "../../lib/reduce.cuh"
#include "../../lib/vector.cuh"

// Reads COUNT vectors of N elements up to `end`, which lie blockDim.x vectors apart. All accesses are on their way before the first is used.
template <int COUNT, int N, typename T>
__device__ void read_row(const T* row, int end, Vector<T, N> (&vectors)[COUNT]) {
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * N;
    if (i < end) {
      vectors[c] = load<N>(row + i);
    }
  }
}

// threadIdx.y is a row of the block. Rows past the last take part in shuffles, and store nothing.
template <int COUNT, int N, typename T>
__device__ void forward_row(const T* __restrict__ input, T* __restrict__ output, long long rows, int n) {
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int end = row < rows ? n : 0;
  Vector<T, N> vectors[COUNT];
  read_row<COUNT, N>(input + row * n, end, vectors);

  // Elements past the end are -inf: their powers are zero, unless the row holds nothing else than -inf and is NaN anyway.
  float value[COUNT][N];
  float largest = -INFINITY;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const bool is_within = int(c * blockDim.x + threadIdx.x) * N < end;
#pragma unroll
    for (int k = 0; k < N; k++) {
      value[c][k] = is_within ? float(vectors[c].values[k]) : -INFINITY;
      largest = fmaxf(largest, value[c][k]);
    }
  }
  largest = across_row<0>(largest, Max{});

  float total = 0.0f;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
#pragma unroll
    for (int k = 0; k < N; k++) {
      value[c][k] = expf(value[c][k] - largest);
      total += value[c][k];
    }
  }
  const float scale = 1.0f / across_row<1>(total, Sum{});

#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * N;
    if (i < end) {
      Vector<T, N> y;
#pragma unroll
      for (int k = 0; k < N; k++) {
        y.values[k] = T(value[c][k] * scale);
      }
      store<N>(output + row * n + i, y);
    }
  }
}

template <int COUNT, int N, typename T>
__device__ void backward_row(
    const T* __restrict__ grad, const T* __restrict__ output, T* __restrict__ result, long long rows, int n) {
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int end = row < rows ? n : 0;
  Vector<T, N> dy[COUNT], y[COUNT];
  read_row<COUNT, N>(grad + row * n, end, dy);
  read_row<COUNT, N>(output + row * n, end, y);

  float dot = 0.0f;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    if (int(c * blockDim.x + threadIdx.x) * N < end) {
#pragma unroll
      for (int k = 0; k < N; k++) {
        dot += float(dy[c].values[k]) * float(y[c].values[k]);
      }
    }
  }
  dot = across_row<0>(dot, Sum{});

#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * N;
    if (i < end) {
#pragma unroll
      for (int k = 0; k < N; k++) {
        dy[c].values[k] = T(float(y[c].values[k]) * (float(dy[c].values[k]) - dot));
      }
      store<N>(result + row * n + i, dy[c]);
    }
  }
}

// The largest element so far, and the sum of exp(x - largest). While all is -inf the powers are taken of x itself, and are zero.
struct Running {
  float largest = -INFINITY;
  float total = 0.0f;

  __device__ static float reference(float largest) { return largest == -INFINITY ? 0.0f : largest; }

  __device__ void raise(float to) {
    const float larger = fmaxf(largest, to);
    total *= expf(largest - reference(larger));
    largest = larger;
  }

  __device__ void add(float x) { total += expf(x - reference(largest)); }
};

// A piece of a row: what this block has of it.
struct Piece {
  long long row, first, end;

  __device__ Piece(long long n, int pieces, long long length) {
    row = blockIdx.x / pieces;
    first = blockIdx.x % pieces * length;
    end = first + length < n ? first + length : n;
  }
};

// Leaves the largest element and the sum of each piece.
template <int N, typename T>
__device__ void forward_part(
    const T* __restrict__ input, float* __restrict__ largest, float* __restrict__ total, long long n, int pieces,
    long long length) {
  const Piece piece(n, pieces, length);
  Running running;
#pragma unroll 4
  for (long long i = piece.first + threadIdx.x * N; i < piece.end; i += blockDim.x * N) {
    const Vector<T, N> x = load<N>(input + piece.row * n + i);
    float local = -INFINITY;
#pragma unroll
    for (int k = 0; k < N; k++) {
      local = fmaxf(local, float(x.values[k]));
    }
    running.raise(local);
#pragma unroll
    for (int k = 0; k < N; k++) {
      running.add(float(x.values[k]));
    }
  }
  const float most = across_row<0>(running.largest, Max{});
  running.raise(most);
  const float sum = across_row<1>(running.total, Sum{});
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = most;
    total[blockIdx.x] = sum;
  }
}

// Every block puts together what all pieces of its row left, in the same order, and writes its own piece.
template <int N, typename T>
__device__ void forward_whole(
    const T* __restrict__ input, const float* __restrict__ largest, const float* __restrict__ total,
    T* __restrict__ output, long long n, int pieces, long long length) {
  const Piece piece(n, pieces, length);
  float most = -INFINITY, sum = 0.0f;
  for (int p = 0; p < pieces; p++) {
    most = fmaxf(most, largest[piece.row * pieces + p]);
  }
  for (int p = 0; p < pieces; p++) {
    sum += total[piece.row * pieces + p] * expf(largest[piece.row * pieces + p] - Running::reference(most));
  }
  const float scale = 1.0f / sum;
#pragma unroll 4
  for (long long i = piece.first + threadIdx.x * N; i < piece.end; i += blockDim.x * N) {
    Vector<T, N> x = load<N>(input + piece.row * n + i);
#pragma unroll
    for (int k = 0; k < N; k++) {
      x.values[k] = T(expf(float(x.values[k]) - most) * scale);
    }
    store<N>(output + piece.row * n + i, x);
  }
}

template <int N, typename T>
__device__ void backward_part(
    const T* __restrict__ grad, const T* __restrict__ output, float* __restrict__ dots, long long n, int pieces,
    long long length) {
  const Piece piece(n, pieces, length);
  float dot = 0.0f;
#pragma unroll 4
  for (long long i = piece.first + threadIdx.x * N; i < piece.end; i += blockDim.x * N) {
    const Vector<T, N> dy = load<N>(grad + piece.row * n + i), y = load<N>(output + piece.row * n + i);
#pragma unroll
    for (int k = 0; k < N; k++) {
      dot += float(dy.values[k]) * float(y.values[k]);
    }
  }
  dot = across_row<0>(dot, Sum{});
  if (threadIdx.x == 0) {
    dots[blockIdx.x] = dot;
  }
}

template <int N, typename T>
__device__ void backward_whole(
    const T* __restrict__ grad, const T* __restrict__ output, const float* __restrict__ dots, T* __restrict__ result,
    long long n, int pieces, long long length) {
  const Piece piece(n, pieces, length);
  float dot = 0.0f;
  for (int p = 0; p < pieces; p++) {
    dot += dots[piece.row * pieces + p];
  }
#pragma unroll 4
  for (long long i = piece.first + threadIdx.x * N; i < piece.end; i += blockDim.x * N) {
    Vector<T, N> dy = load<N>(grad + piece.row * n + i);
    const Vector<T, N> y = load<N>(output + piece.row * n + i);
#pragma unroll
    for (int k = 0; k < N; k++) {
      dy.values[k] = T(float(y.values[k]) * (float(dy.values[k]) - dot));
    }
    store<N>(result + piece.row * n + i, dy);
  }
}

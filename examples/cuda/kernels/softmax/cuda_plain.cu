// Softmax, one block of threads a row. cuda_plain.py has the mathematics, and launches this.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "reduce.cuh"

// A row has n elements, which lie `inner` apart. What is read is rounded to the output's dtype first, as torch does it.
template <typename In, typename Out>
__device__ void softmax_row(const In* __restrict__ input, Out* __restrict__ output, long long n, long long inner) {
  const long long row = blockIdx.x;
  const long long start = row / inner * n * inner + row % inner;

  float largest = -INFINITY;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    largest = fmaxf(largest, float(Out(float(input[start + i * inner]))));
  }
  largest = reduce(largest, Max{});

  float total = 0.0f;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    total += expf(float(Out(float(input[start + i * inner]))) - largest);
  }
  total = reduce(total, Sum{});

  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    const long long place = start + i * inner;
    output[place] = Out(expf(float(Out(float(input[place]))) - largest) / total);
  }
}

// Two passes over the row: for the sum of grad * output, and for the result.
template <typename T>
__device__ void softmax_backward_row(
    const T* __restrict__ grad, const T* __restrict__ softmax, T* __restrict__ result, long long n, long long inner) {
  const long long row = blockIdx.x;
  const long long start = row / inner * n * inner + row % inner;

  float dot = 0.0f;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    const long long place = start + i * inner;
    dot += float(grad[place]) * float(softmax[place]);
  }
  dot = reduce(dot, Sum{});

  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    const long long place = start + i * inner;
    result[place] = T(float(softmax[place]) * (float(grad[place]) - dot));
  }
}

// One kernel for each pair of dtypes, with a name that Python can spell.
#define SOFTMAX(in, In, out, Out)                                                                         \
  extern "C" __global__ void __launch_bounds__(MAX_THREADS)                                               \
      softmax_##in##_##out(const In* input, Out* output, long long n, long long inner) {                  \
    softmax_row(input, output, n, inner);                                                                 \
  }

SOFTMAX(float32, float, float32, float)
SOFTMAX(float32, float, float16, __half)
SOFTMAX(float32, float, bfloat16, __nv_bfloat16)
SOFTMAX(float16, __half, float32, float)
SOFTMAX(float16, __half, float16, __half)
SOFTMAX(float16, __half, bfloat16, __nv_bfloat16)
SOFTMAX(bfloat16, __nv_bfloat16, float32, float)
SOFTMAX(bfloat16, __nv_bfloat16, float16, __half)
SOFTMAX(bfloat16, __nv_bfloat16, bfloat16, __nv_bfloat16)

#define SOFTMAX_BACKWARD(name, T)                                                                         \
  extern "C" __global__ void __launch_bounds__(MAX_THREADS) softmax_backward_##name(                      \
      const T* grad, const T* softmax, T* result, long long n, long long inner) {                         \
    softmax_backward_row(grad, softmax, result, n, inner);                                                \
  }

SOFTMAX_BACKWARD(float32, float)
SOFTMAX_BACKWARD(float16, __half)
SOFTMAX_BACKWARD(bfloat16, __nv_bfloat16)

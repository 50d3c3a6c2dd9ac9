// Softmax, one block of threads a row, with 16-byte accesses and reductions by shuffles. cuda_warps.py has the mathematics, and launches this.
#include "../../lib/reduce.cuh"
#include "../../lib/vector.cuh"

constexpr int MAX_THREADS = 256;

// Calls `visit(place, vector)` for the vectors of N elements that this thread has of a row; `inner` is 1 where N is not.
template <int N, typename T, typename Visit>
__device__ void each_vector(const T* row, long long n, long long inner, Visit visit) {
  for (long long i = threadIdx.x * N; i < n; i += blockDim.x * N) {
    visit(i * inner, load<N>(row + i * inner));
  }
}

__device__ long long start_of_row(long long n, long long inner) {
  const long long row = blockIdx.x;
  return row / inner * n * inner + row % inner;
}

template <int N, typename T>
__device__ void forward(const T* __restrict__ input, T* __restrict__ output, long long n, long long inner) {
  const long long start = start_of_row(n, inner);
  float largest = -INFINITY;
  each_vector<N>(input + start, n, inner, [&](long long, Vector<T, N> x) {
#pragma unroll
    for (int k = 0; k < N; k++) {
      largest = fmaxf(largest, float(x.values[k]));
    }
  });
  largest = across_row<0>(largest, Max{});

  float total = 0.0f;
  each_vector<N>(input + start, n, inner, [&](long long, Vector<T, N> x) {
#pragma unroll
    for (int k = 0; k < N; k++) {
      total += expf(float(x.values[k]) - largest);
    }
  });
  total = across_row<1>(total, Sum{});

  each_vector<N>(input + start, n, inner, [&](long long place, Vector<T, N> x) {
#pragma unroll
    for (int k = 0; k < N; k++) {
      x.values[k] = T(expf(float(x.values[k]) - largest) / total);
    }
    store<N>(output + start + place, x);
  });
}

template <int N, typename T>
__device__ void backward(
    const T* __restrict__ grad, const T* __restrict__ output, T* __restrict__ result, long long n, long long inner) {
  const long long start = start_of_row(n, inner);
  float dot = 0.0f;
  each_vector<N>(grad + start, n, inner, [&](long long place, Vector<T, N> dy) {
    const Vector<T, N> y = load<N>(output + start + place);
#pragma unroll
    for (int k = 0; k < N; k++) {
      dot += float(dy.values[k]) * float(y.values[k]);
    }
  });
  dot = across_row<0>(dot, Sum{});

  each_vector<N>(grad + start, n, inner, [&](long long place, Vector<T, N> dy) {
    const Vector<T, N> y = load<N>(output + start + place);
#pragma unroll
    for (int k = 0; k < N; k++) {
      dy.values[k] = T(float(y.values[k]) * (float(dy.values[k]) - dot));
    }
    store<N>(result + start + place, dy);
  });
}

#define SOFTMAX(name, T, width)                                                                              \
  extern "C" __global__ void __launch_bounds__(MAX_THREADS)                                                  \
      forward_##name##_##width(const T* input, T* output, long long n, long long inner) {                    \
    forward<Width<T>::width>(input, output, n, inner);                                                       \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(MAX_THREADS)                                                  \
      backward_##name##_##width(const T* grad, const T* output, T* result, long long n, long long inner) {   \
    backward<Width<T>::width>(grad, output, result, n, inner);                                               \
  }

SOFTMAX(float32, float, wide)
SOFTMAX(float32, float, one)
SOFTMAX(float16, __half, wide)
SOFTMAX(float16, __half, one)
SOFTMAX(bfloat16, __nv_bfloat16, wide)
SOFTMAX(bfloat16, __nv_bfloat16, one)

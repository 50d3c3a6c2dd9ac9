// GELU, exact and by tanh, element by element. cuda_vector.py has the mathematics, and launches this.
#include "../../lib/vector.cuh"

// Accesses of a thread, which are on their way together.
constexpr int AT_ONCE = 2;
constexpr int THREADS = 256;

struct Exact {
  __device__ float operator()(float x) const { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
};

struct Tanh {
  __device__ float operator()(float x) const {
    const float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + tanhf(inner));
  }
};

// A thread has AT_ONCE vectors of N elements, which lie a block apart; `count` is a multiple of N.
template <int N, typename T, typename Function>
__device__ void each(const T* __restrict__ input, T* __restrict__ output, long long count, Function function) {
  const long long first = ((long long)blockIdx.x * AT_ONCE * THREADS + threadIdx.x) * N;
  Vector<T, N> vectors[AT_ONCE];
#pragma unroll
  for (int c = 0; c < AT_ONCE; c++) {
    if (first + c * THREADS * N < count) {
      vectors[c] = load<N>(input + first + c * THREADS * N);
    }
  }
#pragma unroll
  for (int c = 0; c < AT_ONCE; c++) {
    if (first + c * THREADS * N < count) {
#pragma unroll
      for (int k = 0; k < N; k++) {
        vectors[c].values[k] = T(function(float(vectors[c].values[k])));
      }
      store<N>(output + first + c * THREADS * N, vectors[c]);
    }
  }
}

#define GELU(name, T, width)                                              \
  extern "C" __global__ void __launch_bounds__(THREADS)                   \
      exact_##name##_##width(const T* input, T* output, long long count) { \
    each<Width<T>::width>(input, output, count, Exact{});                 \
  }                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS)                   \
      tanh_##name##_##width(const T* input, T* output, long long count) { \
    each<Width<T>::width>(input, output, count, Tanh{});                  \
  }

GELU(float32, float, wide)
GELU(float32, float, one)
GELU(float16, __half, wide)
GELU(float16, __half, one)
GELU(bfloat16, __nv_bfloat16, wide)
GELU(bfloat16, __nv_bfloat16, one)

// Reductions over a block of threads. Every thread of the block calls them, and every thread gets the result.
#pragma once

// The longest block, in threads.
constexpr int MAX_THREADS = 256;

struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// A tree in shared memory: half of the threads that are left take the value of the other half. blockDim.x is a power of two.
template <typename Operation>
__device__ float reduce(float value, Operation combine) {
  __shared__ float values[MAX_THREADS];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
    }
    __syncthreads();
  }
  float result = values[0];
  // Nobody writes for the next reduction before all have read.
  __syncthreads();
  return result;
}

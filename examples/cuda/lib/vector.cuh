// Several neighbouring elements as one access of memory. Whoever uses them has seen to it that addresses are multiples of their size.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// The bytes that a thread moves at once, at most.
constexpr int ACCESS = 16;

template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];
};

template <int N, typename T>
__device__ Vector<T, N> load(const T* place) {
  return *reinterpret_cast<const Vector<T, N>*>(place);
}

template <int N, typename T>
__device__ void store(T* place, const Vector<T, N>& vector) {
  *reinterpret_cast<Vector<T, N>*>(place) = vector;
}

// How many elements an access has: `wide` where all rows begin at multiples of ACCESS, else `one`.
template <typename T>
struct Width {
  static constexpr int wide = ACCESS / int(sizeof(T));
  static constexpr int one = 1;
};

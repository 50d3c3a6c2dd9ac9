// Softmax with rows in registers. The kernels by name; what they do is in rows.cuh and columns.cuh, why in cuda_registers.py, which launches them.
#include "columns.cuh"
#include "rows.cuh"

// Rows of `elements` a thread. So many threads at most leave each the registers for that.
#define ROWS(name, T, width, elements, threads, pass_elements)                                                   \
  extern "C" __global__ void __launch_bounds__(threads)                                                          \
      forward_##name##_##width##_##elements(const T* input, T* output, long long rows, int n) {                  \
    forward_row<elements / Width<T>::width, Width<T>::width>(input, output, rows, n);                            \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(threads) backward_##name##_##width##_##pass_elements(             \
      const T* grad, const T* output, T* result, long long rows, int n) {                                        \
    backward_row<pass_elements / Width<T>::width, Width<T>::width>(grad, output, result, rows, n);               \
  }

#define PIECES(name, T, width)                                                                                   \
  extern "C" __global__ void __launch_bounds__(512) forward_part_##name##_##width(                               \
      const T* input, float* largest, float* total, long long n, int pieces, long long length) {                 \
    forward_part<Width<T>::width>(input, largest, total, n, pieces, length);                                     \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(512) forward_whole_##name##_##width(                              \
      const T* input, const float* largest, const float* total, T* output, long long n, int pieces,              \
      long long length) {                                                                                        \
    forward_whole<Width<T>::width>(input, largest, total, output, n, pieces, length);                            \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(512) backward_part_##name##_##width(                              \
      const T* grad, const T* output, float* dots, long long n, int pieces, long long length) {                  \
    backward_part<Width<T>::width>(grad, output, dots, n, pieces, length);                                       \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(512) backward_whole_##name##_##width(                             \
      const T* grad, const T* output, const float* dots, T* result, long long n, int pieces, long long length) { \
    backward_whole<Width<T>::width>(grad, output, dots, result, n, pieces, length);                              \
  }

#define COLUMNS(name, T, elements, pass_elements)                                                                \
  extern "C" __global__ void __launch_bounds__(1024, 1) forward_columns_##name##_##elements(                     \
      const T* input, T* output, long long columns, int n, long long inner) {                                    \
    forward_column<elements>(input, output, columns, n, inner);                                                  \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(1024, 1) backward_columns_##name##_##pass_elements(               \
      const T* grad, const T* output, T* result, long long columns, int n, long long inner) {                    \
    backward_column<pass_elements>(grad, output, result, columns, n, inner);                                     \
  }

#define LONG_COLUMNS(name, T)                                                                                    \
  extern "C" __global__ void __launch_bounds__(1024) forward_columns_##name##_long(                              \
      const T* input, T* output, long long columns, long long n, long long inner) {                              \
    forward_long_column(input, output, columns, n, inner);                                                       \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(1024) backward_columns_##name##_long(                             \
      const T* grad, const T* output, T* result, long long columns, long long n, long long inner) {              \
    backward_long_column(grad, output, result, columns, n, inner);                                               \
  }

#define SOFTMAX(name, T)          \
  ROWS(name, T, wide, 8, 512, 8)  \
  ROWS(name, T, wide, 32, 1024, 16) \
  ROWS(name, T, one, 8, 512, 8)   \
  ROWS(name, T, one, 32, 1024, 16) \
  PIECES(name, T, wide)           \
  PIECES(name, T, one)            \
  COLUMNS(name, T, 8, 8)          \
  COLUMNS(name, T, 32, 16)        \
  LONG_COLUMNS(name, T)

SOFTMAX(float32, float)
SOFTMAX(float16, __half)
SOFTMAX(bfloat16, __nv_bfloat16)

// Layer normalization, forward and backward. cuda_registers.py has the mathematics and the reasons, and launches this.
#include "../../lib/reduce.cuh"
#include "../../lib/vector.cuh"

// What a row is measured from: its first element, so that nothing is lost of rows that lie far from zero.
template <typename T>
__device__ float origin(const T* row, bool is_there) {
  return is_there ? float(row[0]) : 0.0f;
}

// A thread has COUNT vectors of N elements of a row, which lie blockDim.x vectors apart; threadIdx.y is a row of the block.
template <int COUNT, int N, typename T>
__device__ void forward_row(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    float* __restrict__ means, float* __restrict__ scales, long long rows, int n, float eps) {
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int end = row < rows ? n : 0;
  const T* x = input + row * n;
  Vector<T, N> vectors[COUNT];
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * N;
    if (i < end) {
      vectors[c] = load<N>(x + i);
    }
  }
  const float first = origin(x, end > 0);

  float value[COUNT][N];
  float sum = 0.0f;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const bool is_within = int(c * blockDim.x + threadIdx.x) * N < end;
#pragma unroll
    for (int k = 0; k < N; k++) {
      value[c][k] = is_within ? float(vectors[c].values[k]) - first : 0.0f;
      sum += value[c][k];
    }
  }
  const float mean = across_row<0>(sum, Sum{}) / n;

  float squares = 0.0f;
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const bool is_within = int(c * blockDim.x + threadIdx.x) * N < end;
#pragma unroll
    for (int k = 0; k < N; k++) {
      value[c][k] -= mean;
      squares += is_within ? value[c][k] * value[c][k] : 0.0f;
    }
  }
  const float scale = rsqrtf(across_row<1>(squares, Sum{}) / n + eps);

#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * N;
    if (i < end) {
      Vector<T, N> w, b, y;
      if (weight != nullptr) {
        w = load<N>(weight + i);
      }
      if (bias != nullptr) {
        b = load<N>(bias + i);
      }
#pragma unroll
      for (int k = 0; k < N; k++) {
        const float z = value[c][k] * scale;
        const float scaled = weight != nullptr ? z * float(w.values[k]) : z;
        y.values[k] = T(bias != nullptr ? scaled + float(b.values[k]) : scaled);
      }
      store<N>(output + row * n + i, y);
    }
  }
  if (means != nullptr && threadIdx.x == 0 && end > 0) {
    means[row] = mean;
    scales[row] = scale;
  }
}

// Rows of any length, a block each, read three times.
template <typename T>
__device__ void forward_long_row(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    float* __restrict__ means, float* __restrict__ scales, long long n, float eps) {
  const long long row = blockIdx.x;
  const T* x = input + row * n;
  const float first = origin(x, true);
  float sum = 0.0f;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    sum += float(x[i]) - first;
  }
  const float mean = across_row<0>(sum, Sum{}) / n;
  float squares = 0.0f;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    const float centered = float(x[i]) - first - mean;
    squares += centered * centered;
  }
  const float scale = rsqrtf(across_row<1>(squares, Sum{}) / n + eps);
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    const float z = (float(x[i]) - first - mean) * scale;
    const float scaled = weight != nullptr ? z * float(weight[i]) : z;
    output[row * n + i] = T(bias != nullptr ? scaled + float(bias[i]) : scaled);
  }
  if (means != nullptr && threadIdx.x == 0) {
    means[row] = mean;
    scales[row] = scale;
  }
}

// A row of dy and x, and its statistics.
template <int COUNT, int N, typename T>
struct Row {
  Vector<T, N> dy[COUNT], x[COUNT];
  float first, mean, scale;

  __device__ void read(
      const T* __restrict__ grad, const T* __restrict__ input, const float* __restrict__ means,
      const float* __restrict__ scales, long long row, long long rows, int n) {
    const int end = row < rows ? n : 0;
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
      const int i = (c * blockDim.x + threadIdx.x) * N;
      if (i < end) {
        dy[c] = load<N>(grad + row * n + i);
        x[c] = load<N>(input + row * n + i);
      }
    }
    if (end > 0) {
      first = float(input[row * n]);
      mean = means[row];
      scale = scales[row];
    }
  }
};

// Writes dx of every gridDim.x * blockDim.y-th row, and leaves the sums of dy * z and dy over those rows: a row of partial sums for each threadIdx.y of each block.
template <int COUNT, int N, typename T>
__device__ void backward_rows(
    const T* __restrict__ grad, const T* __restrict__ input, const T* __restrict__ weight,
    const float* __restrict__ means, const float* __restrict__ scales, T* __restrict__ result,
    float* __restrict__ weight_parts, float* __restrict__ bias_parts, long long rows, int n) {
  Vector<T, N> w[COUNT];
  float dw[COUNT][N], db[COUNT][N];
#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * N;
#pragma unroll
    for (int k = 0; k < N; k++) {
      w[c].values[k] = T(1.0f);
      dw[c][k] = db[c][k] = 0.0f;
    }
    if (weight != nullptr && i < n) {
      w[c] = load<N>(weight + i);
    }
  }

  const long long at_once = (long long)gridDim.x * blockDim.y;
  const long long mine = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  // Where registers suffice, the next row is read while this one is worked on.
  constexpr bool IS_AHEAD = COUNT * N <= 8;
  Row<COUNT, N, T> own, next;
  if (IS_AHEAD) {
    next.read(grad, input, means, scales, mine, rows, n);
  }
  // All rows of a block go through the loop equally often, since their lanes may be of one warp.
  for (long long base = (long long)blockIdx.x * blockDim.y; base < rows; base += at_once) {
    const long long row = base + threadIdx.y;
    const int end = row < rows ? n : 0;
    if (IS_AHEAD) {
      own = next;
      next.read(grad, input, means, scales, row + at_once, rows, n);
    } else {
      own.read(grad, input, means, scales, row, rows, n);
    }

    float sum = 0.0f, sum_z = 0.0f;
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
      if (int(c * blockDim.x + threadIdx.x) * N < end) {
#pragma unroll
        for (int k = 0; k < N; k++) {
          const float z = (float(own.x[c].values[k]) - own.first - own.mean) * own.scale;
          const float dy = float(own.dy[c].values[k]), g = dy * float(w[c].values[k]);
          sum += g;
          sum_z += g * z;
          dw[c][k] += dy * z;
          db[c][k] += dy;
        }
      }
    }
    sum = across_row<0>(sum, Sum{}) / n;
    sum_z = across_row<1>(sum_z, Sum{}) / n;

#pragma unroll
    for (int c = 0; c < COUNT; c++) {
      const int i = (c * blockDim.x + threadIdx.x) * N;
      if (i < end) {
        Vector<T, N> dx;
#pragma unroll
        for (int k = 0; k < N; k++) {
          const float z = (float(own.x[c].values[k]) - own.first - own.mean) * own.scale;
          const float g = float(own.dy[c].values[k]) * float(w[c].values[k]);
          dx.values[k] = T(own.scale * (g - sum - z * sum_z));
        }
        store<N>(result + row * n + i, dx);
      }
    }
  }

#pragma unroll
  for (int c = 0; c < COUNT; c++) {
    const int i = (c * blockDim.x + threadIdx.x) * N;
    if (i < n) {
      Vector<float, N> parts;
#pragma unroll
      for (int k = 0; k < N; k++) {
        parts.values[k] = dw[c][k];
      }
      store<N>(weight_parts + mine * n + i, parts);
#pragma unroll
      for (int k = 0; k < N; k++) {
        parts.values[k] = db[c][k];
      }
      store<N>(bias_parts + mine * n + i, parts);
    }
  }
}

// dx of rows of any length, a block each, read twice.
template <typename T>
__device__ void backward_long_row(
    const T* __restrict__ grad, const T* __restrict__ input, const T* __restrict__ weight,
    const float* __restrict__ means, const float* __restrict__ scales, T* __restrict__ result, long long n) {
  const long long row = blockIdx.x;
  const T *dy = grad + row * n, *x = input + row * n;
  const float first = origin(x, true), mean = means[row], scale = scales[row];
  float sum = 0.0f, sum_z = 0.0f;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    const float g = weight != nullptr ? float(dy[i]) * float(weight[i]) : float(dy[i]);
    sum += g;
    sum_z += g * ((float(x[i]) - first - mean) * scale);
  }
  sum = across_row<0>(sum, Sum{}) / n;
  sum_z = across_row<1>(sum_z, Sum{}) / n;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    const float g = weight != nullptr ? float(dy[i]) * float(weight[i]) : float(dy[i]);
    const float z = (float(x[i]) - first - mean) * scale;
    result[row * n + i] = T(scale * (g - sum - z * sum_z));
  }
}

// Partial sums for rows of any length: a thread has a column, and blockIdx.y every gridDim.y-th row.
template <typename T>
__device__ void column_parts(
    const T* __restrict__ grad, const T* __restrict__ input, const float* __restrict__ means,
    const float* __restrict__ scales, float* __restrict__ weight_parts, float* __restrict__ bias_parts, long long rows,
    long long n) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) {
    return;
  }
  float dw = 0.0f, db = 0.0f;
  for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
    const float dy = float(grad[row * n + column]);
    const float z = (float(input[row * n + column]) - float(input[row * n]) - means[row]) * scales[row];
    dw += dy * z;
    db += dy;
  }
  weight_parts[blockIdx.y * n + column] = dw;
  bias_parts[blockIdx.y * n + column] = db;
}

// Adds up the partial sums of 32 neighbouring columns, in the same order in every run.
template <typename T>
__device__ void sum_parts(
    const float* __restrict__ weight_parts, const float* __restrict__ bias_parts, T* __restrict__ weight,
    T* __restrict__ bias, int parts, long long n) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  float dw = 0.0f, db = 0.0f;
  if (column < n) {
#pragma unroll 4
    for (int p = threadIdx.y; p < parts; p += blockDim.y) {
      dw += weight_parts[p * n + column];
      db += bias_parts[p * n + column];
    }
  }
  dw = across_column(dw, Sum{});
  db = across_column(db, Sum{});
  if (column < n && threadIdx.y == 0) {
    weight[column] = T(dw);
    bias[column] = T(db);
  }
}

#define FORWARD(name, T, width, elements, threads)                                                                   \
  extern "C" __global__ void __launch_bounds__(threads) forward_##name##_##width##_##elements(                       \
      const T* input, const T* weight, const T* bias, T* output, float* means, float* scales, long long rows, int n, \
      float eps) {                                                                                                   \
    forward_row<elements / Width<T>::width, Width<T>::width>(                                                        \
        input, weight, bias, output, means, scales, rows, n, eps);                                                   \
  }

#define BACKWARD(name, T, width, elements, threads)                                                                  \
  extern "C" __global__ void __launch_bounds__(threads) backward_##name##_##width##_##elements(                      \
      const T* grad, const T* input, const T* weight, const float* means, const float* scales, T* result,            \
      float* weight_parts, float* bias_parts, long long rows, int n) {                                               \
    backward_rows<elements / Width<T>::width, Width<T>::width>(                                                      \
        grad, input, weight, means, scales, result, weight_parts, bias_parts, rows, n);                              \
  }

#define ANY_LENGTH(name, T)                                                                                          \
  extern "C" __global__ void __launch_bounds__(1024) forward_##name##_long(                                          \
      const T* input, const T* weight, const T* bias, T* output, float* means, float* scales, long long n,           \
      float eps) {                                                                                                   \
    forward_long_row(input, weight, bias, output, means, scales, n, eps);                                            \
  }                                                                                                                  \
  extern "C" __global__ void __launch_bounds__(1024) backward_##name##_long(                                         \
      const T* grad, const T* input, const T* weight, const float* means, const float* scales, T* result,            \
      long long n) {                                                                                                 \
    backward_long_row(grad, input, weight, means, scales, result, n);                                                \
  }                                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256) column_parts_##name(                                             \
      const T* grad, const T* input, const float* means, const float* scales, float* weight_parts,                   \
      float* bias_parts, long long rows, long long n) {                                                              \
    column_parts(grad, input, means, scales, weight_parts, bias_parts, rows, n);                                     \
  }                                                                                                                  \
  extern "C" __global__ void __launch_bounds__(1024) sum_parts_##name(                                               \
      const float* weight_parts, const float* bias_parts, T* weight, T* bias, int parts, long long n) {              \
    sum_parts(weight_parts, bias_parts, weight, bias, parts, n);                                                     \
  }

#define LAYERNORM(name, T)           \
  FORWARD(name, T, wide, 8, 512)     \
  FORWARD(name, T, wide, 16, 1024)   \
  FORWARD(name, T, one, 8, 512)      \
  FORWARD(name, T, one, 16, 1024)    \
  BACKWARD(name, T, wide, 8, 512)    \
  BACKWARD(name, T, wide, 16, 512)   \
  BACKWARD(name, T, one, 8, 512)     \
  ANY_LENGTH(name, T)

LAYERNORM(float32, float)
LAYERNORM(float16, __half)
LAYERNORM(bfloat16, __nv_bfloat16)

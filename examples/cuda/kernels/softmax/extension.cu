// Softmax as an extension of torch's: kernels, and the C++ that launches them. extension.py has the mathematics, and has torch build this.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include "shuffle.cuh"

constexpr int WARPS = 8;

// What a row is: n elements, `inner` apart. Rows beside each other are beside each other in memory where inner > 1.
struct Rows {
  long long count, n, inner;
};

__device__ inline long long start_of(const Rows& rows, long long row) {
  return row / rows.inner * rows.n * rows.inner + row % rows.inner;
}

// A warp a row. Its lanes take the elements in turn, and keep the largest one and the sum that belongs to it (online softmax).
template <typename scalar_t>
__global__ void __launch_bounds__(WARPS * 32)
    softmax_kernel(const scalar_t* __restrict__ input, scalar_t* __restrict__ output, Rows rows) {
  const long long row = static_cast<long long>(blockIdx.x) * WARPS + threadIdx.y;
  if (row >= rows.count) return;
  const long long start = start_of(rows, row);

  float largest = -INFINITY, total = 0.0f;
  for (long long i = threadIdx.x; i < rows.n; i += 32) {
    const float x = static_cast<float>(input[start + i * rows.inner]);
    // NaN is no larger than anything, and stays in the sum; -inf adds nothing, even before the first number.
    const float next = fmaxf(largest, x);
    total = (largest == next ? total : total * expf(largest - next)) + (x == -INFINITY ? 0.0f : expf(x - next));
    largest = next;
  }
  const float most = largest_of_warp(largest);
  total = sum_of_warp(largest == most ? total : total * expf(largest - most));

  for (long long i = threadIdx.x; i < rows.n; i += 32) {
    const long long place = start + i * rows.inner;
    output[place] = static_cast<scalar_t>(expf(static_cast<float>(input[place]) - most) / total);
  }
}

template <typename scalar_t>
__global__ void __launch_bounds__(WARPS * 32) softmax_backward_kernel(
    const scalar_t* __restrict__ grad, const scalar_t* __restrict__ softmax, scalar_t* __restrict__ result, Rows rows) {
  const long long row = static_cast<long long>(blockIdx.x) * WARPS + threadIdx.y;
  if (row >= rows.count) return;
  const long long start = start_of(rows, row);

  float dot = 0.0f;
  for (long long i = threadIdx.x; i < rows.n; i += 32) {
    const long long place = start + i * rows.inner;
    dot += static_cast<float>(grad[place]) * static_cast<float>(softmax[place]);
  }
  dot = sum_of_warp(dot);

  for (long long i = threadIdx.x; i < rows.n; i += 32) {
    const long long place = start + i * rows.inner;
    result[place] = static_cast<scalar_t>(static_cast<float>(softmax[place]) * (static_cast<float>(grad[place]) - dot));
  }
}

// The kernels compute in float32, for dtypes that hold no more.
#define FOR_DTYPES(dtype, name, ...)                                                 \
  AT_DISPATCH_SWITCH(dtype, name,                                                    \
                     AT_DISPATCH_CASE(at::kFloat, __VA_ARGS__)                       \
                     AT_DISPATCH_CASE(at::kHalf, __VA_ARGS__)                        \
                     AT_DISPATCH_CASE(at::kBFloat16, __VA_ARGS__))

// Returns the rows of a contiguous tensor along a dim. One without dims is a row of one element.
static Rows rows_of(const torch::Tensor& x, int64_t dim) {
  dim = at::maybe_wrap_dim(dim, x.dim());
  Rows rows{0, x.dim() == 0 ? 1 : x.size(dim), 1};
  for (int64_t after = dim + 1; after < x.dim(); ++after) rows.inner *= x.size(after);
  rows.count = rows.n == 0 ? 0 : x.numel() / rows.n;
  return rows;
}

static unsigned blocks_of(const Rows& rows) { return static_cast<unsigned>((rows.count + WARPS - 1) / WARPS); }

torch::Tensor forward(torch::Tensor input, int64_t dim) {
  TORCH_CHECK(input.is_cuda(), "input is no CUDA tensor");
  const c10::cuda::CUDAGuard guard(input.device());
  const auto x = input.contiguous();
  auto output = torch::empty_like(x);
  const Rows rows = rows_of(x, dim);
  if (x.numel() == 0) return output;
  const auto stream = at::cuda::getCurrentCUDAStream();
  FOR_DTYPES(x.scalar_type(), "softmax", [&] {
    softmax_kernel<scalar_t>
        <<<blocks_of(rows), dim3(32, WARPS), 0, stream>>>(x.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), rows);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return output;
}

torch::Tensor backward(torch::Tensor grad, torch::Tensor output, int64_t dim) {
  TORCH_CHECK(output.is_cuda() && grad.is_cuda(), "no CUDA tensor");
  const c10::cuda::CUDAGuard guard(output.device());
  const auto dy = grad.contiguous(), y = output.contiguous();
  auto dx = torch::empty_like(y);
  const Rows rows = rows_of(y, dim);
  if (y.numel() == 0) return dx;
  const auto stream = at::cuda::getCurrentCUDAStream();
  FOR_DTYPES(y.scalar_type(), "softmax_backward", [&] {
    softmax_backward_kernel<scalar_t><<<blocks_of(rows), dim3(32, WARPS), 0, stream>>>(
        dy.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), dx.data_ptr<scalar_t>(), rows);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return dx;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, "softmax along a dim");
  m.def("backward", &backward, "the gradient of its input");
}

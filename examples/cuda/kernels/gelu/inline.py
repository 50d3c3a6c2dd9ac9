"""GELU as people write it with `load_inline`: CUDA C++ in a text, which torch would build when the file is imported.

    gelu(x) = x / 2 * (1 + erf(x / sqrt(2)))                                   approximate="none"
    gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))         approximate="tanh"

A thread computes one element, in float32. Under t2t the module is built before, without a GPU, and this file is not changed for it.
"""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <ATen/cuda/CUDAContext.h>

constexpr int THREADS = 256;

static inline int blocks_of(long count) { return static_cast<int>((count + THREADS - 1) / THREADS); }

template <typename scalar_t, bool use_tanh>
__global__ void gelu_kernel(const scalar_t* __restrict__ input, scalar_t* __restrict__ output, long count) {
  long place = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (place < count) {
    float x = static_cast<float>(input[place]);
    float inner = use_tanh ? tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)) : erff(x * 0.70710678118654752f);
    output[place] = static_cast<scalar_t>(0.5f * x * (1.0f + inner));
  }
}

torch::Tensor gelu_forward(torch::Tensor input, bool use_tanh) {
  TORCH_CHECK(input.is_cuda(), "input is no CUDA tensor");
  auto x = input.contiguous();
  auto output = torch::empty_like(x);
  long count = x.numel();
  if (count == 0) return output;
  auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "gelu_forward", [&] {
    auto* kernel = use_tanh ? gelu_kernel<scalar_t, true> : gelu_kernel<scalar_t, false>;
    kernel<<<blocks_of(count), THREADS, 0, stream>>>(x.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), count);
  });
  return output;
}
"""

module = load_inline(
    name="gelu_inline",
    cpp_sources="torch::Tensor gelu_forward(torch::Tensor input, bool use_tanh);",
    cuda_sources=CUDA,
    functions=["gelu_forward"],
    extra_cuda_cflags=["-O3"],
)


def gelu(input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Returns torch.nn.functional.gelu(input, approximate=approximate), for a CUDA tensor of any shape."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is none or tanh, and not {approximate}")
    return module.gelu_forward(input, approximate == "tanh")

"""An epilogue with two scalars and a bias that broadcasts; all strides are passed."""

import torch
import triton
import triton.language as tl


@triton.jit
def addmm_kernel(
    bias_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_bias,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    alpha,
    beta,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_mask, b_mask = (m[:, None] < M) & (k[None, :] < K), (k[:, None] < K) & (n[None, :] < N)
        a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn, mask=b_mask, other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    c = alpha * total
    if beta != 0:
        # Of a factor of 0 torch ignores what the input holds.
        bias = tl.load(bias_ptr + n * stride_bias, mask=n < N, other=0.0)
        c += beta * bias[None, :]
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :], c, mask=(m[:, None] < M) & (n[None, :] < N))


def triton_addmm(input, mat1, mat2, *, beta=1, alpha=1):
    (M, K), N = mat1.shape, mat2.shape[1]
    out = torch.empty((M, N), dtype=mat1.dtype, device=mat1.device)
    if out.numel() > 0:
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        addmm_kernel[grid](
            input,
            mat1,
            mat2,
            out,
            M,
            N,
            K,
            input.stride(0),
            *mat1.stride(),
            *mat2.stride(),
            out.stride(0),
            alpha,
            beta,
            BLOCK_M=16,
            BLOCK_N=16,
            BLOCK_K=16,
        )
    return out

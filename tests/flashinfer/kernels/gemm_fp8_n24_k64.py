"""A product of matrices in float8, with a scale for each 32 numbers of a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def gemm_kernel(
    a, b, c, a_scale, b_scale, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    groups = k // GROUP
    for group in range(groups):
        depth = group * GROUP + tl.arange(0, GROUP)
        left = tl.load(a + rows[:, None] * k + depth[None, :], mask=rows[:, None] < m, other=0.0)
        right = tl.load(b + columns[None, :] * k + depth[:, None], mask=columns[None, :] < n, other=0.0)
        of_rows = tl.load(a_scale + rows * groups + group, mask=rows < m, other=0.0)
        of_columns = tl.load(b_scale + columns * groups + group, mask=columns < n, other=0.0)
        sums += tl.dot(left, right) * of_rows[:, None] * of_columns[None, :]
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty), mask=inside)


def triton_gemm_fp8_n24_k64(A, A_scale, B, B_scale):
    """Launch it."""
    A, A_scale, B, B_scale = (one.contiguous() for one in (A, A_scale, B, B_scale))
    (m, k), n = A.shape, B.shape[0]
    C = torch.empty((m, n), dtype=torch.bfloat16, device=A.device)
    if m and n:
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 16))
        gemm_kernel[grid](A, B, C, A_scale, B_scale, m, n, k, BLOCK_M=16, BLOCK_N=16, GROUP=32)
    return C

"""Autotuned, its configurations pruned before they are tried; blocks by pointers to blocks."""

import torch
import triton
import triton.language as tl


def configs():
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 16}, num_warps=w, num_stages=2)
        for m in (16, 128)
        for n in (16, 256)
        for w in (4, 8)
    ]


def early_config_prune(configs, named_args, **kwargs):
    """Drops blocks that are much larger than the matrix."""
    fit = [
        config
        for config in configs
        if config.kwargs["BLOCK_M"] <= 2 * named_args["M"] and config.kwargs["BLOCK_N"] <= 2 * named_args["N"]
    ]
    return fit or configs[:1]


@triton.autotune(configs(), key=["M", "N", "K"], prune_configs_by={"early_config_prune": early_config_prune})
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    top, left = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (top, 0), (BLOCK_M, BLOCK_K), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, left), (BLOCK_K, BLOCK_N), (1, 0))
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        rows = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        columns = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(rows, columns, total, input_precision="ieee")
        a, b = tl.advance(a, (0, BLOCK_K)), tl.advance(b, (BLOCK_K, 0))
    c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (top, left), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(c, total.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


def triton_matmul(input, other):
    a, b = input.contiguous(), other.contiguous()
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if c.numel() > 0:
        grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))  # noqa: E731
        matmul_kernel[grid](a, b, c, m, n, k)
    return c

"""Matrix product, tiled, coalesced, pipelined and tuned.

    out[m, n] = sum over k of input[m, k] * other[k, n]

What it takes from the earlier variants: the BLOCK_M x BLOCK_N tile that walks along k on the tensor cores
(`v2_tiling`) and 16 bytes a thread and load (`v3_coalesced`). What it adds:

- Pipelining. With `num_stages` > 1 the loads become asynchronous copies (`cp.async`) into a ring of tiles in shared
  memory: while the tensor cores work on one step of k, the next steps are on their way.
- Grouped program order. Programs that run at the same time should share rows of A and columns of B in the L2 cache.
  Instead of sweeping whole rows of tiles, programs go down GROUP_M tiles, then one tile to the right: 132 programs in
  flight then touch about 8 + 17 strips where the row-major order touches 1 + 132 (GROUP_M = 8, a wide matrix).
- Tuning. The best tile depends on the size and dtype: large tiles reuse more, small tiles fill the machine when the
  result has few of them. `@triton.autotune` measures the configurations once per size.

Why these blocks: measured on an H200. For n = 256 only 32 x 64 and 64 x 64 tiles are many enough to occupy 132
multiprocessors; at 4096 float32 is fastest with 256 x 64, where the three products of `tf32x3` keep their operands
in registers without spilling, and the 16-bit types with 128 x 256, the largest tile whose accumulator fits. The ring of
stages takes num_stages * (BLOCK_M + BLOCK_N) * BLOCK_K elements; a configuration in which that exceeds the 227 KB of
shared memory that a program has on Hopper is pruned before it is compiled.

Precision: `tf32x3` for float32, three TF32 products per operand pair (see `v2_tiling`); accumulation in float32.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl

SHARED_MEMORY_BYTES = 227 * 1024


def _config(block_m: int, block_n: int, block_k: int, num_warps: int, num_stages: int) -> triton.Config:
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
    return triton.Config(blocks, num_warps=num_warps, num_stages=num_stages)


def _fitting(configs: list[triton.Config], named_args: dict[str, Any], **_: Any) -> list[triton.Config]:
    """Keep the configurations whose ring of stages fits shared memory."""
    element_bytes = named_args["a_ptr"].dtype.itemsize

    def shared_bytes(config: triton.Config) -> int:
        blocks = config.kwargs
        return (blocks["BLOCK_M"] + blocks["BLOCK_N"]) * blocks["BLOCK_K"] * config.num_stages * element_bytes

    return [config for config in configs if shared_bytes(config) <= SHARED_MEMORY_BYTES]


@triton.autotune(
    configs=[
        _config(32, 64, 32, num_warps=4, num_stages=4),
        _config(64, 64, 64, num_warps=4, num_stages=4),
        _config(128, 64, 64, num_warps=8, num_stages=3),
        _config(128, 128, 64, num_warps=8, num_stages=3),
        _config(256, 64, 32, num_warps=8, num_stages=3),
        _config(128, 256, 64, num_warps=8, num_stages=3),
    ],
    key=["M", "N", "K"],
    prune_configs_by={"early_config_prune": _fitting},
)
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    batch = (pid // (tiles_m * tiles_n)).to(tl.int64)
    # Grouped order: GROUP_M tiles down, then one to the right; the last group may hold fewer rows of tiles.
    tile = pid % (tiles_m * tiles_n)
    group = tile // (GROUP_M * tiles_n)
    rows = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)
    tile_in_group = tile % (GROUP_M * tiles_n)
    start_m = (group * GROUP_M + tile_in_group % rows).to(tl.int64) * BLOCK_M
    start_n = (tile_in_group // rows).to(tl.int64) * BLOCK_N

    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_m = start_m + offs_m < M
    mask_n = start_n + offs_n < N
    # The tile's corner in 64 bits, so that large tensors do not overflow; inside the tile 32 bits are enough. The loop
    # moves two scalar pointers and adds these offsets: pointer tensors would take twice the registers.
    offs_a = offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    offs_b = offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    a_ptr += batch * stride_ab + start_m * stride_am
    b_ptr += batch * stride_bb + start_n * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k
        a = tl.load(a_ptr + offs_a, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        b = tl.load(b_ptr + offs_b, mask=mask_k[:, None] & mask_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
        a_ptr += BLOCK_K * stride_ak
        b_ptr += BLOCK_K * stride_bk

    out_ptrs = out_ptr + batch * stride_ob + start_m * stride_om + start_n * stride_on
    out_ptrs += offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


def triton_matmul(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Multiply as torch.matmul does: `input` (..., M, K) by `other` (..., K, N), leading dims broadcast, or a 1-D side.

    float32, float16 and bfloat16, any sizes and strides. Raises TypeError or ValueError where torch.matmul refuses.
    """
    assert input.is_cuda and other.is_cuda
    if input.dtype != other.dtype or input.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"need float32, float16 or bfloat16 on both sides, got {input.dtype} and {other.dtype}")
    if input.dim() == 0 or other.dim() == 0 or input.shape[-1] != other.shape[max(other.dim() - 2, 0)]:
        raise ValueError(f"shapes {tuple(input.shape)} and {tuple(other.shape)} cannot be multiplied")
    if input.dim() == 1:
        return triton_matmul(input.unsqueeze(0), other).squeeze(-1 if other.dim() == 1 else -2)
    if other.dim() == 1:
        return triton_matmul(input, other.unsqueeze(1)).squeeze(-1)

    (M, K), N = input.shape[-2:], other.shape[-1]
    lead = input.shape[:-2]
    if lead != other.shape[:-2]:
        lead = torch.broadcast_shapes(lead, other.shape[:-2])
        input, other = input.expand(*lead, M, K), other.expand(*lead, K, N)
    batch = math.prod(lead)
    a, b = input.reshape(batch, M, K), other.reshape(batch, K, N)
    out = torch.empty((batch, M, N), dtype=input.dtype, device=input.device)
    if out.numel() == 0:
        return out.view(*lead, M, N)

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (batch * triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride())
    return out.view(*lead, M, N)

"""Attention, tiled, coalesced, pipelined and tuned.

    out = softmax(scale * query @ key^T) @ value,    row by row, for each batch and head

The loop of `v2_tiling` (BLOCK_M query rows, online softmax over tiles of BLOCK_N keys, no M x N matrix) with 16-byte
loads as in `v3_coalesced`, and:

- Pipelining. `num_stages` tiles of K and V are on their way to shared memory (`cp.async`) while the tensor cores work.
- Two loops instead of one. Only the last tiles of a row of tiles need masks, the ragged end of the keys and the causal
  diagonal; the first loop runs over all others without one. Causal programs stop at their diagonal, and those with the
  longest loops start first so that none of them is left for the end.
- Base-2 exponentials. exp(scale * (s - max)) = exp2(s * c - max * c) with c = scale * log2(e): one fused multiply-add
  and one hardware instruction per logit. Taking the maximum before scaling needs c >= 0, so a negative scale becomes a
  negated Q, which is exact.
- Tuning. Small problems need small tiles to fill 132 multiprocessors, long ones want the reuse of large ones, and a
  deeper ring pays off only where it leaves room. `@triton.autotune` measures the configurations once per size.

Why these blocks: on an H200 128 x 64 with 8 warps is fastest for heads of 64 elements and long rows, 64 x 64 with 4
warps for short or causal ones in 16 bits, 128 x 32 and 128 x 128 for larger heads in 32 and 16 bits; 32 x 32 is for few
rows. A configuration holds Q and `num_stages` tiles of K and V in shared memory, (BLOCK_M + 2 * num_stages * BLOCK_N) *
D elements, and in float32 Q a second time, split for `tf32x3`. Those that would exceed Hopper's 227 KB at this head
size are pruned before they are compiled; the last, 16 x 16, is for the heads that leave no other.

Precision: `tf32x3` for float32 (see `v2_tiling`); softmax and accumulation in float32 for every dtype.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl

SHARED_MEMORY_BYTES = 227 * 1024
LOG2_E = 1.4426950408889634
LOWEST = tl.constexpr(-3.0e38)


def _config(block_m: int, block_n: int, num_warps: int, num_stages: int) -> triton.Config:
    return triton.Config({"BLOCK_M": block_m, "BLOCK_N": block_n}, num_warps=num_warps, num_stages=num_stages)


def _fitting(configs: list[triton.Config], named_args: dict[str, Any], **meta: Any) -> list[triton.Config]:
    """Keep the configurations whose tiles fit shared memory; the last one only where no other does."""
    element_bytes = named_args["q_ptr"].dtype.itemsize
    block_d = max(meta["BLOCK_D"], meta["BLOCK_DV"])

    def shared_bytes(config: triton.Config) -> int:
        copies_of_q = 2 if element_bytes == 4 else 1
        rows = copies_of_q * config.kwargs["BLOCK_M"] + 2 * config.num_stages * config.kwargs["BLOCK_N"]
        return rows * block_d * element_bytes

    return [config for config in configs[:-1] if shared_bytes(config) <= SHARED_MEMORY_BYTES] or configs[-1:]


@triton.jit
def _attend(
    acc,
    row_sum,
    row_max,
    q,
    k_ptr,
    v_ptr,
    offs_k,
    offs_v,
    start,
    end,
    N,
    c,
    stride_ks,
    stride_vs,
    offs_m,
    offs_n,
    mask_d,
    mask_dv,
    BLOCK_N: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Take the tiles of keys in [start, end) into the online softmax; MASKED says whether any of them needs a mask."""
    for start_n in range(start, end, BLOCK_N):
        mask_k = mask_d[:, None]
        mask_v = mask_dv[None, :]
        if MASKED:
            mask_n = start_n + offs_n < N
            mask_k = mask_k & mask_n[None, :]
            mask_v = mask_v & mask_n[:, None]
        k = tl.load(k_ptr + offs_k, mask=mask_k, other=0.0)
        logits = tl.dot(q, k, input_precision="tf32x3")
        if MASKED:
            visible = mask_n[None, :]
            if IS_CAUSAL:
                visible = visible & (offs_m[:, None] >= (start_n + offs_n)[None, :])
            logits = tl.where(visible, logits * c, float("-inf"))
            new_max = tl.maximum(row_max, tl.max(logits, axis=1))
            p = tl.exp2(logits - new_max[:, None])
        else:
            new_max = tl.maximum(row_max, tl.max(logits, axis=1) * c)
            p = tl.exp2(logits * c - new_max[:, None])
        rescale = tl.exp2(row_max - new_max)
        row_sum = row_sum * rescale + tl.sum(p, axis=1)
        v = tl.load(v_ptr + offs_v, mask=mask_v, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="tf32x3")
        row_max = new_max
        k_ptr += BLOCK_N * stride_ks
        v_ptr += BLOCK_N * stride_vs
    return acc, row_sum, row_max, k_ptr, v_ptr


@triton.autotune(
    configs=[
        _config(64, 64, num_warps=4, num_stages=3),
        _config(128, 64, num_warps=8, num_stages=3),
        _config(128, 32, num_warps=8, num_stages=3),
        _config(128, 128, num_warps=8, num_stages=3),
        _config(32, 32, num_warps=4, num_stages=2),
        _config(16, 16, num_warps=4, num_stages=1),
    ],
    key=["M", "N", "D", "DV", "IS_CAUSAL"],
    prune_configs_by={"early_config_prune": _fitting},
)
@triton.jit
def mha_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    H,
    M,
    N,
    c,
    stride_qb,
    stride_qh,
    stride_qs,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_ks,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vs,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_os,
    stride_od,
    D: tl.constexpr,
    DV: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_DV: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
    IS_NEGATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # Program order: tile of rows fastest and last tile first, then head, then batch.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    start_m = (tiles_m - 1 - pid % tiles_m) * BLOCK_M
    head = (pid // tiles_m % H).to(tl.int64)
    batch = (pid // tiles_m // H).to(tl.int64)

    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_D)
    offs_dv = tl.arange(0, BLOCK_DV)
    mask_m = offs_m < M
    mask_d = offs_d < D
    mask_dv = offs_dv < DV
    rows = offs_m.to(tl.int64)[:, None]
    q_ptrs = q_ptr + batch * stride_qb + head * stride_qh + rows * stride_qs + offs_d[None, :] * stride_qd
    # The loops move two scalar pointers and add these offsets: pointer tensors would take twice the registers.
    # K is read as its transpose, D x BLOCK_N, which is what the first product needs.
    offs_k = offs_n[None, :] * stride_ks + offs_d[:, None] * stride_kd
    offs_v = offs_n[:, None] * stride_vs + offs_dv[None, :] * stride_vd
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh

    q = tl.load(q_ptrs, mask=mask_m[:, None] & mask_d[None, :], other=0.0)
    if IS_NEGATED:
        q = -q
    # LOWEST instead of -inf: the difference of two maxima stays a number even before the first finite logit.
    row_max = tl.full((BLOCK_M,), LOWEST, dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_DV), dtype=tl.float32)

    # [0, whole) is visible to every row of the tile, [whole, end) only in part.
    end = tl.minimum(N, start_m + BLOCK_M) if IS_CAUSAL else N
    whole = (tl.minimum(N, start_m) if IS_CAUSAL else N) // BLOCK_N * BLOCK_N
    acc, row_sum, row_max, k_ptr, v_ptr = _attend(
        acc, row_sum, row_max, q, k_ptr, v_ptr, offs_k, offs_v, 0, whole, N, c, stride_ks, stride_vs,
        offs_m, offs_n, mask_d, mask_dv, BLOCK_N, IS_CAUSAL, MASKED=False,
    )  # fmt: skip
    acc, row_sum, row_max, k_ptr, v_ptr = _attend(
        acc, row_sum, row_max, q, k_ptr, v_ptr, offs_k, offs_v, whole, end, N, c, stride_ks, stride_vs,
        offs_m, offs_n, mask_d, mask_dv, BLOCK_N, IS_CAUSAL, MASKED=True,
    )  # fmt: skip

    # Without a single key the sum is 0 and the result is 0, as torch has it.
    acc /= tl.where(row_sum == 0.0, 1.0, row_sum)[:, None]
    out_ptrs = out_ptr + batch * stride_ob + head * stride_oh + rows * stride_os + offs_dv[None, :] * stride_od
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_dv[None, :])


def triton_mha(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """Attend as torch.nn.functional.scaled_dot_product_attention does.

    `query` (B, H, M, D), `key` (B, H, N, D), `value` (B, H, N, DV): float32, float16 or bfloat16, any sizes and
    strides. Returns (B, H, M, DV). Masks and dropout raise NotImplementedError.
    """
    assert query.is_cuda and key.is_cuda and value.is_cuda
    if attn_mask is not None or dropout_p != 0.0:
        raise NotImplementedError("attn_mask and dropout_p are not supported: use is_causal, and dropout_p=0.0")
    if query.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"need float32, float16 or bfloat16, got {query.dtype}")
    if not query.dtype == key.dtype == value.dtype:
        raise TypeError(f"dtypes differ: {query.dtype}, {key.dtype} and {value.dtype}")
    shapes = tuple(query.shape), tuple(key.shape), tuple(value.shape)
    if [len(shape) for shape in shapes] != [4, 4, 4]:
        raise ValueError(f"need query, key and value of 4 dims (B, H, S, D), got {shapes}")
    (B, H, M, D), (N, DV) = query.shape, value.shape[-2:]
    if key.shape != (B, H, N, D) or value.shape != (B, H, N, DV):
        raise ValueError(f"query, key and value do not fit together: {shapes}")
    out = torch.empty((B, H, M, DV), dtype=query.dtype, device=query.device)
    if out.numel() == 0:
        return out
    if scale is None:
        scale = 1.0 / math.sqrt(D) if D > 0 else 1.0

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (B * H * triton.cdiv(M, meta["BLOCK_M"]),)

    mha_kernel[grid](
        query,
        key,
        value,
        out,
        H,
        M,
        N,
        abs(scale) * LOG2_E,
        *query.stride(),
        *key.stride(),
        *value.stride(),
        *out.stride(),
        D=D,
        DV=DV,
        # `tl.dot` takes no block side under 16.
        BLOCK_D=max(16, triton.next_power_of_2(max(D, 1))),
        BLOCK_DV=max(16, triton.next_power_of_2(DV)),
        IS_CAUSAL=is_causal,
        IS_NEGATED=scale < 0.0,
    )
    return out

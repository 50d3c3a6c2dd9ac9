"""Attention by three kernels: a pipelined loop of tiles, and for large problems on Hopper a warp-specialized one.

    out = softmax(scale * query @ key^T) @ value,    row by row, for each batch and head

Three kernels share the work. `mha_kernel` takes everything: any strides, head sizes, causal or not. `contiguous_kernel`
is the same loop for contiguous tensors without a causal mask, with 10 arguments instead of 32: for small problems the
launch takes longer than the kernel, and each argument adds to it. Large ones with heads of 64 elements go to
`kernels/mha/hopper.py` where the device is a Hopper GPU: its kernel starts later, for the host has more to prepare, but
is faster from then on. It is warp-specialized and persistent, and makes float32 products from float16 terms. The
interpreter and other devices never see it. At the sizes that are measured it is most of what this variant brings, and
no other variant has a part of it: v4 is not v2 and v3 together.

The loop is that of `v2_tiling` (BLOCK_M query rows, online softmax over tiles of BLOCK_N keys, no M x N matrix) with
16-byte loads as in `v3_coalesced`, and:

- Pipelining. `num_stages` tiles of K and V are on their way to shared memory (`cp.async`) while the tensor cores work.
- Two loops instead of one. Only the last tiles of a row of tiles need masks, the ragged end of the keys and the causal
  diagonal; the first loop runs over all others without one. Causal programs stop at their diagonal, and those with the
  longest loops start first so that none of them is left for the end.
- Base-2 exponentials. exp(scale * (s - max)) = exp2((s - max) * c) with c = scale * log2(e): one hardware instruction
  for each logit. The maximum is taken before scaling, which needs c >= 0, so a negative scale becomes a negated Q,
  which is exact. Subtracting first keeps every exponent at or below 0: s * c - max * c, one instruction less, is off by a
  rounding of the logit, which for logits of 10**9 is more than float16's range of P.

Why these blocks: on an H200, in float32 128 x 64 with 8 warps is fastest for heads of 64 elements at every length, in
16 bits 64 x 64 with 4 warps. They were measured once and are not tuned at run time: choosing among configurations costs
the host more than the kernel takes at 256 keys. A configuration holds Q and `num_stages` tiles of K and V in shared
memory, (BLOCK_M + 2 * num_stages * BLOCK_N) * D elements, and in float32 Q a second time, split for `tf32x3`. The first
one that fits into Hopper's 227 KB at this head size is taken; the last, 16 x 16, is for the heads that leave no other.

Precision: `tf32x3` for float32 (see `v2_tiling`); softmax and accumulation in float32 for every dtype. See
docs/kernels/mha.md for what was tried.
"""

import functools
import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from kernels.mha import hopper

SHARED_MEMORY_BYTES = 227 * 1024
LOG2_E = 1.4426950408889634
LOWEST = tl.constexpr(-3.0e38)

# BLOCK_M, BLOCK_N, num_warps, num_stages by the bytes of an element: the first one that fits is taken.
BLOCKS = {
    4: [(128, 64, 8, 3), (128, 32, 8, 3), (64, 32, 4, 2), (32, 32, 4, 2), (16, 16, 4, 1)],
    2: [(64, 64, 4, 3), (64, 32, 4, 2), (32, 32, 4, 2), (16, 16, 4, 1)],
}
# How many logits a problem needs to be faster in `hopper`, by the bytes of an element.
HOPPER_LOGITS = {4: 1 << 24, 2: 1 << 25}


class Plan(NamedTuple):
    """What follows from the dtype and the shapes alone: worked out once, since it takes longer than a launch."""

    H: int
    M: int
    N: int
    D: int
    DV: int
    BLOCK_D: int
    BLOCK_DV: int
    BLOCK_M: int
    BLOCK_N: int
    num_warps: int
    num_stages: int
    grid: tuple[int]
    scale: float
    """Torch's, where the caller gives none."""
    is_plain: bool
    """Whether `contiguous_kernel` can take it, if the tensors are contiguous."""
    is_large: bool
    """Whether it is faster in `hopper`, on such a device."""


def _blocks(element_bytes: int, block_d: int) -> tuple[int, int, int, int]:
    """Returns the first configuration whose tiles fit shared memory, else the last."""
    copies_of_q = 2 if element_bytes == 4 else 1

    def is_fitting(blocks: tuple[int, int, int, int]) -> bool:
        block_m, block_n, _, num_stages = blocks
        rows = copies_of_q * block_m + 2 * num_stages * block_n
        return rows * block_d * element_bytes <= SHARED_MEMORY_BYTES

    return next(filter(is_fitting, BLOCKS[element_bytes]), BLOCKS[element_bytes][-1])


@functools.lru_cache(maxsize=4096)
def _plan(dtype: torch.dtype, query: torch.Size, key: torch.Size, value: torch.Size) -> Plan:
    """Returns the plan for tensors of these shapes. Raises TypeError and ValueError for what does not fit together."""
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"need float32, float16 or bfloat16, got {dtype}")
    shapes = tuple(query), tuple(key), tuple(value)
    if [len(shape) for shape in shapes] != [4, 4, 4]:
        raise ValueError(f"need query, key and value of 4 dims (B, H, S, D), got {shapes}")
    (B, H, M, D), (N, DV) = query, value[-2:]
    if key != (B, H, N, D) or value != (B, H, N, DV):
        raise ValueError(f"query, key and value do not fit together: {shapes}")
    # `tl.dot` takes no block side under 16.
    BLOCK_D, BLOCK_DV = max(16, triton.next_power_of_2(max(D, 1))), max(16, triton.next_power_of_2(DV))
    BLOCK_M, BLOCK_N, num_warps, num_stages = _blocks(dtype.itemsize, max(BLOCK_D, BLOCK_DV))
    is_plain = D == DV == BLOCK_D and B * H * M * N > 0
    return Plan(
        H, M, N, D, DV, BLOCK_D, BLOCK_DV, BLOCK_M, BLOCK_N, num_warps, num_stages,
        grid=(B * H * triton.cdiv(M, BLOCK_M),),
        scale=1.0 / math.sqrt(D) if D > 0 else 1.0,
        is_plain=is_plain,
        is_large=IS_COMPILED and D == hopper.HEAD_SIZE and HOPPER_LOGITS[dtype.itemsize] <= B * H * M * N,
    )  # fmt: skip


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
            new_max = tl.maximum(row_max, tl.max(tl.where(visible, logits, float("-inf")), axis=1))
            p = tl.where(visible, tl.exp2((logits - new_max[:, None]) * c), 0.0)
        else:
            new_max = tl.maximum(row_max, tl.max(logits, axis=1))
            p = tl.exp2((logits - new_max[:, None]) * c)
        rescale = tl.exp2((row_max - new_max) * c)
        row_sum = row_sum * rescale + tl.sum(p, axis=1)
        v = tl.load(v_ptr + offs_v, mask=mask_v, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="tf32x3")
        row_max = new_max
        k_ptr += BLOCK_N * stride_ks
        v_ptr += BLOCK_N * stride_vs
    return acc, row_sum, row_max, k_ptr, v_ptr


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


@triton.jit
def contiguous_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    M,
    N,
    c,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # Program order: tile of rows fastest, then head.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    head = (pid // tiles_m).to(tl.int64)
    offs_m = pid % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    mask_m = (offs_m < M)[:, None]
    mask_d = offs_d < D
    offs_q = (head * M + offs_m)[:, None] * D + offs_d[None, :]
    offs_k = offs_n[None, :] * D + offs_d[:, None]
    offs_v = offs_n[:, None] * D + offs_d[None, :]
    k_ptr += head * N * D
    v_ptr += head * N * D

    q = tl.load(q_ptr + offs_q, mask=mask_m, other=0.0)
    row_max = tl.full((BLOCK_M,), LOWEST, dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    whole = N // BLOCK_N * BLOCK_N
    acc, row_sum, row_max, k_ptr, v_ptr = _attend(
        acc, row_sum, row_max, q, k_ptr, v_ptr, offs_k, offs_v, 0, whole, N, c, D, D,
        offs_m, offs_n, mask_d, mask_d, BLOCK_N, IS_CAUSAL=False, MASKED=False,
    )  # fmt: skip
    acc, row_sum, row_max, k_ptr, v_ptr = _attend(
        acc, row_sum, row_max, q, k_ptr, v_ptr, offs_k, offs_v, whole, N, N, c, D, D,
        offs_m, offs_n, mask_d, mask_d, BLOCK_N, IS_CAUSAL=False, MASKED=True,
    )  # fmt: skip
    acc /= tl.where(row_sum == 0.0, 1.0, row_sum)[:, None]
    tl.store(out_ptr + offs_q, acc.to(out_ptr.dtype.element_ty), mask=mask_m)


# Gluon is compiled, never interpreted.
IS_COMPILED = isinstance(contiguous_kernel, triton.JITFunction)


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
    dtype = query.dtype
    if not dtype == key.dtype == value.dtype:
        raise TypeError(f"dtypes differ: {dtype}, {key.dtype} and {value.dtype}")
    plan = _plan(dtype, query.shape, key.shape, value.shape)
    if scale is None:
        scale = plan.scale
    is_contiguous = query.is_contiguous() and key.is_contiguous() and value.is_contiguous()
    if plan.is_plain and is_contiguous and not is_causal and scale > 0.0:
        if plan.is_large and _is_for_hopper(query, key, value):
            return hopper.attend(query, key, value, scale)
        out = torch.empty_like(query)
        contiguous_kernel[plan.grid](
            query,
            key,
            value,
            out,
            plan.M,
            plan.N,
            scale * LOG2_E,
            plan.D,
            plan.BLOCK_M,
            plan.BLOCK_N,
            num_warps=plan.num_warps,
            num_stages=plan.num_stages,
        )
        return out
    out = torch.empty((*query.shape[:3], plan.DV), dtype=dtype, device=query.device)
    if out.numel() == 0:
        return out
    mha_kernel[plan.grid](
        query,
        key,
        value,
        out,
        plan.H,
        plan.M,
        plan.N,
        abs(scale) * LOG2_E,
        *query.stride(),
        *key.stride(),
        *value.stride(),
        *out.stride(),
        D=plan.D,
        DV=plan.DV,
        BLOCK_D=plan.BLOCK_D,
        BLOCK_DV=plan.BLOCK_DV,
        IS_CAUSAL=is_causal,
        IS_NEGATED=scale < 0.0,
        BLOCK_M=plan.BLOCK_M,
        BLOCK_N=plan.BLOCK_N,
        num_warps=plan.num_warps,
        num_stages=plan.num_stages,
    )
    return out


def _is_for_hopper(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """Tells whether the device and the addresses are right for `hopper.attend`."""
    # TMA reads 16-bit tensors where they lie. Allocations start at a multiple of 16 bytes, views need not.
    is_aligned = query.dtype.itemsize == 4 or all(tensor.storage_offset() % 8 == 0 for tensor in (query, key, value))
    return is_aligned and hopper.multiprocessors(query.device) > 0

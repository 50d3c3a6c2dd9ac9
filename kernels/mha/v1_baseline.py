"""Attention, direct translation, one query row at a time.

    out[m, :] = sum over n of p[m, n] * value[n, :],    p[m, :] = softmax over n of scale * query[m, :] . key[n, :]

The translation by three torch ops would write the M x N matrix p to memory and read it back. Even the baseline does
not: one program owns one row m, walks over the keys BLOCK_N at a time, and keeps three things in registers, the
running maximum `row_max` of the logits, the running sum `row_sum` of exp(logit - row_max), and the running
`acc` = sum of exp(logit - row_max) * value. When a new block raises the maximum, the sums so far were made with too
large exponentials and are scaled by exp(old maximum - new maximum): the *online softmax*. No exponent is ever positive,
so nothing overflows however large the logits are, and out = acc / row_sum at the end.

Why these blocks: BLOCK_D is D rounded up to a power of two, as Triton's blocks must be, with the surplus masked. A step
takes 64 keys, fewer where a head is larger than 64 elements, so that a tile of K or V is 32 registers of each of the
128 threads.

The outer strides are declared `do_not_specialize`: one compiled kernel serves every distance between rows. The price is
that the compiler cannot prove where a row starts, so that each thread loads one element with each instruction, as a
direct translation to CUDA would. `v3_coalesced` lifts this. The other price is that each query row reads all of K and V
again, and that no tensor core is used: `v2_tiling` lifts that.
"""

import math

import torch
import triton
import triton.language as tl

MAX_BLOCK_N, MAX_TILE = 64, 4096
OUTER_STRIDES = [f"stride_{tensor}{dim}" for tensor in "qkvo" for dim in "bhs"]
LOWEST = tl.constexpr(-3.0e38)


@triton.jit(do_not_specialize=OUTER_STRIDES)
def mha_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    H,
    M,
    N,
    scale,
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
    BLOCK_N: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
):
    # Program order: row fastest, then head, then batch.
    pid = tl.program_id(0)
    row = pid % M
    head = (pid // M % H).to(tl.int64)
    batch = (pid // M // H).to(tl.int64)

    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_D)
    offs_dv = tl.arange(0, BLOCK_DV)
    q_ptrs = q_ptr + batch * stride_qb + head * stride_qh + row.to(tl.int64) * stride_qs + offs_d * stride_qd
    offs_k = offs_n[:, None] * stride_ks + offs_d[None, :] * stride_kd
    offs_v = offs_n[:, None] * stride_vs + offs_dv[None, :] * stride_vd
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh

    q = tl.load(q_ptrs, mask=offs_d < D, other=0.0).to(tl.float32)
    # LOWEST instead of -inf: the difference of two maxima stays a number even before the first finite logit.
    row_max = LOWEST
    row_sum = 0.0
    acc = tl.zeros((BLOCK_DV,), dtype=tl.float32)
    # A causal row attends to the keys up to its own position.
    end = tl.minimum(N, row + 1) if IS_CAUSAL else N
    for start in range(0, end, BLOCK_N):
        mask_n = offs_n < end - start
        k = tl.load(k_ptr + offs_k, mask=mask_n[:, None] & (offs_d < D)[None, :], other=0.0).to(tl.float32)
        logits = tl.sum(q[None, :] * k, axis=1) * scale
        logits = tl.where(mask_n, logits, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(logits, axis=0))
        rescale = tl.exp(row_max - new_max)
        p = tl.exp(logits - new_max)
        v = tl.load(v_ptr + offs_v, mask=mask_n[:, None] & (offs_dv < DV)[None, :], other=0.0).to(tl.float32)
        row_sum = row_sum * rescale + tl.sum(p, axis=0)
        acc = acc * rescale + tl.sum(p[:, None] * v, axis=0)
        row_max = new_max
        k_ptr += BLOCK_N * stride_ks
        v_ptr += BLOCK_N * stride_vs

    # Without a single key the sum is 0 and the result is 0, as torch has it.
    acc /= tl.where(row_sum == 0.0, 1.0, row_sum)
    out_ptrs = out_ptr + batch * stride_ob + head * stride_oh + row.to(tl.int64) * stride_os + offs_dv * stride_od
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=offs_dv < DV)


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
    BLOCK_D, BLOCK_DV = triton.next_power_of_2(max(D, 1)), triton.next_power_of_2(DV)
    mha_kernel[(B * H * M,)](
        query,
        key,
        value,
        out,
        H,
        M,
        N,
        float(scale),
        *query.stride(),
        *key.stride(),
        *value.stride(),
        *out.stride(),
        D=D,
        DV=DV,
        BLOCK_D=BLOCK_D,
        BLOCK_DV=BLOCK_DV,
        BLOCK_N=max(1, min(MAX_BLOCK_N, MAX_TILE // max(BLOCK_D, BLOCK_DV))),
        IS_CAUSAL=is_causal,
        num_warps=4,
        num_stages=1,
    )
    return out

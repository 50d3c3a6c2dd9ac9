"""Attention, direct translation in two sweeps over the keys.

    out = softmax(scale * query @ key^T) @ value,    row by row, for each batch and head

The formula read from left to right. One program owns 16 query rows of one head, the fewest that `tl.dot` takes, and
walks over the keys twice, BLOCK_N at a time:

    sweep 1:  S = scale * Q K^T               row_max = max(row_max, max of each row of S)
    sweep 2:  S = scale * Q K^T               P = exp(S - row_max)
                                              row_sum = row_sum + sum of each row of P,    acc = acc + P V

and out = acc / row_sum. Every exponent is at most 0, so nothing overflows however large the logits are. A translation
by three torch ops would write the M x N matrix P to memory and read it back; computing S a second time is cheaper, and
the matrix exists only as one tile of 16 x BLOCK_N.

Why these blocks: BLOCK_D is D rounded up to a power of two, as Triton's blocks must be, with the surplus masked. A step
takes 32 keys, fewer where a head is larger than 64 elements, so that a tile of K or V is 16 registers of each of the
128 threads.

The outer strides are declared `do_not_specialize`: one compiled kernel serves every distance between rows. The price is
that the compiler cannot prove where a row starts, so that each thread loads one element with each instruction, as a
direct translation to CUDA would.

What it costs: K is read and S computed twice, every load is narrow, and each 16 rows read all of K and V again.
`v2_tiling` and `v3_coalesced` both lift the first two; only `v2_tiling` lifts the third.

Precision: `tf32x3` computes float32 products from three TF32 ones, to float32 accuracy; the softmax is in float32
for every dtype. In 16-bit types P is rounded to the dtype of V for the second product, as torch's fused kernels do.
"""

import math

import torch
import triton
import triton.language as tl

MAX_BLOCK_N, MAX_TILE = 32, 2048
OUTER_STRIDES = [f"stride_{tensor}{dim}" for tensor in "qkvo" for dim in "bhs"]
LOWEST = tl.constexpr(-3.0e38)


@triton.jit
def _logits(q, k_ptrs, mask_d, offs_m, offs_n, N, scale, IS_CAUSAL: tl.constexpr):
    """Returns the logits of one tile of keys, -inf where a row does not see a key."""
    mask_n = offs_n < N
    k = tl.load(k_ptrs, mask=mask_d[:, None] & mask_n[None, :], other=0.0)
    visible = mask_n[None, :]
    if IS_CAUSAL:
        visible = visible & (offs_m[:, None] >= offs_n[None, :])
    return tl.where(visible, tl.dot(q, k, input_precision="tf32x3") * scale, float("-inf"))


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
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
):
    # Program order: tile of rows fastest, then head, then batch.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    start_m = pid % tiles_m * BLOCK_M
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
    # K is read as its transpose, D x BLOCK_N, which is what the first product needs.
    k_ptrs = k_ptr + batch * stride_kb + head * stride_kh + offs_n[None, :] * stride_ks + offs_d[:, None] * stride_kd
    v_ptrs = v_ptr + batch * stride_vb + head * stride_vh + offs_n[:, None] * stride_vs + offs_dv[None, :] * stride_vd

    q = tl.load(q_ptrs, mask=mask_m[:, None] & mask_d[None, :], other=0.0)
    # LOWEST instead of -inf: a row without a finite logit keeps a number as its maximum.
    row_max = tl.full((BLOCK_M,), LOWEST, dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_DV), dtype=tl.float32)
    # A causal tile needs no key behind its last row.
    end = tl.minimum(N, start_m + BLOCK_M) if IS_CAUSAL else N
    k_first = k_ptrs
    for start_n in range(0, end, BLOCK_N):
        logits = _logits(q, k_ptrs, mask_d, offs_m, start_n + offs_n, N, scale, IS_CAUSAL)
        row_max = tl.maximum(row_max, tl.max(logits, axis=1))
        k_ptrs += BLOCK_N * stride_ks

    k_ptrs = k_first
    for start_n in range(0, end, BLOCK_N):
        logits = _logits(q, k_ptrs, mask_d, offs_m, start_n + offs_n, N, scale, IS_CAUSAL)
        p = tl.exp(logits - row_max[:, None])
        row_sum += tl.sum(p, axis=1)
        v = tl.load(v_ptrs, mask=(start_n + offs_n < N)[:, None] & mask_dv[None, :], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="tf32x3")
        k_ptrs += BLOCK_N * stride_ks
        v_ptrs += BLOCK_N * stride_vs

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
    # `tl.dot` takes no block side under 16.
    BLOCK_D, BLOCK_DV = max(16, triton.next_power_of_2(max(D, 1))), max(16, triton.next_power_of_2(DV))
    BLOCK_M, BLOCK_N = 16, max(16, min(MAX_BLOCK_N, MAX_TILE // max(BLOCK_D, BLOCK_DV)))
    mha_kernel[(B * H * triton.cdiv(M, BLOCK_M),)](
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
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        IS_CAUSAL=is_causal,
        num_warps=4,
        num_stages=1,
    )
    return out

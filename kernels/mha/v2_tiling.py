"""Attention, tiled: FlashAttention-2's loop, 64 query rows at a time.

    out = softmax(scale * query @ key^T) @ value,    row by row, for each batch and head

One program owns BLOCK_M query rows of one head and walks over the keys BLOCK_N at a time:

    S = Q K^T                                   BLOCK_M x BLOCK_N logits, in registers only
    row_max' = max(row_max, max of each row of S)
    P = exp(S - row_max')
    row_sum = row_sum * exp(row_max - row_max') + sum of each row of P
    acc = acc * exp(row_max - row_max') + P V

This is the *online softmax*: where a new tile raises the maximum of a row, the sums so far are scaled by exp(old maximum
- new maximum). The M x N matrix exists only as one tile.

Against `v1_baseline` three things change, so a ratio of their times is not what tiling alone brings:
- tiles of rows: K and V are read once per 64 rows and not per 16;
- one sweep: the online softmax reads K and computes S once, where the baseline does both twice;
- specialised strides: the outer ones are no longer `do_not_specialize`, so the compiler may prove alignment and take
  wide loads where it finds it.

Both use the tensor cores for both products.

Why these blocks: a 64 x 32 tile of logits and a 64 x D accumulator fit the registers of 4 warps for D up to 128; for
larger heads, whose Q, K and V tiles would not fit shared memory, the tile shrinks to 16 x 16, the least that `tl.dot`
takes. One configuration, no pipelining.

Precision: `tf32x3` computes float32 products from three TF32 ones, to float32 accuracy; the softmax is in float32
for every dtype. In 16-bit types P is rounded to the dtype of V for the second product, as torch's fused kernels do.
"""

import math

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.0e38)


@triton.jit
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
    # LOWEST instead of -inf: the difference of two maxima stays a number even before the first finite logit.
    row_max = tl.full((BLOCK_M,), LOWEST, dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_DV), dtype=tl.float32)
    # A causal tile needs no key behind its last row.
    end = tl.minimum(N, start_m + BLOCK_M) if IS_CAUSAL else N
    for start_n in range(0, end, BLOCK_N):
        mask_n = start_n + offs_n < N
        k = tl.load(k_ptrs, mask=mask_d[:, None] & mask_n[None, :], other=0.0)
        logits = tl.dot(q, k, input_precision="tf32x3") * scale
        visible = mask_n[None, :]
        if IS_CAUSAL:
            visible = visible & (offs_m[:, None] >= (start_n + offs_n)[None, :])
        logits = tl.where(visible, logits, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(logits, axis=1))
        rescale = tl.exp(row_max - new_max)
        p = tl.exp(logits - new_max[:, None])
        v = tl.load(v_ptrs, mask=mask_n[:, None] & mask_dv[None, :], other=0.0)
        row_sum = row_sum * rescale + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="tf32x3")
        row_max = new_max
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
    BLOCK_M, BLOCK_N = (64, 32) if max(BLOCK_D, BLOCK_DV) <= 128 else (16, 16)
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

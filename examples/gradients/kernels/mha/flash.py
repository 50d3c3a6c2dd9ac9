"""Attention, forward and backward, as an autograd function: the weights are never in memory.

Math. S = scale * Q K^T, P = softmax(S) row by row, O = P V. The forward pass keeps L = log(sum(exp(S))) of each row, so that P = exp(S - L) is found
again, a tile at a time. With dO flowing in and delta = rowsum(dO * O), which is rowsum(dP * P),

    dV = P^T dO,    dP = dO V^T,    dS = P * (dP - delta),    dQ = scale * dS K,    dK = scale * dS^T Q.

Technique. Forward, a program has a tile of queries and walks over the keys with an online softmax. Backward there are three kernels: one for delta; one in
which a program has a tile of queries and sums dQ over the keys; and one in which it has a tile of keys and sums dK and dV over the queries. Each product is
computed twice for that, but nothing is atomic: two runs give the same bits. `tf32x3` has float32 products exact to float32; the softmax is float32.
"""

import math

import torch
import triton
import triton.language as tl

BLOCK_M = 32
BLOCK_N = 32
WARPS = 8  # of a program of the backward pass: with 4, registers spill where D is 64
LOWEST = tl.constexpr(-3.0e38)


@triton.jit
def load_tile(ptr, rows, length, cols, width):
    """Returns rows of a contiguous matrix, with zeros beyond its ends."""
    mask = (rows[:, None] < length) & (cols[None, :] < width)
    return tl.load(ptr + rows[:, None] * width + cols[None, :], mask=mask, other=0.0)


@triton.jit
def logits_of(q, k, rows, keys, M, N, scale, IS_CAUSAL: tl.constexpr):
    """Returns a tile of S, -inf where a row does not see a key."""
    visible = (rows[:, None] < M) & (keys[None, :] < N)
    if IS_CAUSAL:
        visible = visible & (rows[:, None] >= keys[None, :])
    return tl.where(visible, tl.dot(q, tl.trans(k), input_precision="tf32x3") * scale, float("-inf"))


@triton.jit
def mha_forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, M, N, D, DV, scale, IS_CAUSAL: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_DV: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    rows = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    cols, cols_v = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_DV)
    q = load_tile(q_ptr + head * M * D, rows, M, cols, D)
    row_max = tl.full((BLOCK_M,), LOWEST, tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_DV), tl.float32)
    end = tl.minimum(N, (tl.program_id(0) % tiles + 1) * BLOCK_M) if IS_CAUSAL else N
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = load_tile(k_ptr + head * N * D, keys, N, cols, D)
        v = load_tile(v_ptr + head * N * DV, keys, N, cols_v, DV)
        s = logits_of(q, k, rows, keys, M, N, scale, IS_CAUSAL)
        new_max = tl.maximum(row_max, tl.max(s, axis=1))
        p = tl.exp(s - new_max[:, None])
        rescale = tl.exp(row_max - new_max)
        row_sum = row_sum * rescale + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="tf32x3")
        row_max = new_max
    # Without a single key the sum is 0 and the result is 0, as torch has it.
    row_sum = tl.where(row_sum == 0.0, 1.0, row_sum)
    offsets = head * M * DV + rows[:, None] * DV + cols_v[None, :]
    tl.store(o_ptr + offsets, acc / row_sum[:, None], mask=(rows[:, None] < M) & (cols_v[None, :] < DV))
    tl.store(lse_ptr + head * M + rows, row_max + tl.log(row_sum), mask=rows < M)


@triton.jit
def delta_kernel(do_ptr, o_ptr, delta_ptr, M, DV, BLOCK_DV: tl.constexpr, BLOCK_M: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_DV)
    do = load_tile(do_ptr, rows, M, cols, DV).to(tl.float32)
    o = load_tile(o_ptr, rows, M, cols, DV).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(do * o, axis=1), mask=rows < M)


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, M, N, D, DV, scale, IS_CAUSAL: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_DV: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    rows = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    cols, cols_v = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_DV)
    q = load_tile(q_ptr + head * M * D, rows, M, cols, D)
    do = load_tile(do_ptr + head * M * DV, rows, M, cols_v, DV)
    lse = tl.load(lse_ptr + head * M + rows, mask=rows < M, other=0.0)
    delta = tl.load(delta_ptr + head * M + rows, mask=rows < M, other=0.0)
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = tl.minimum(N, (tl.program_id(0) % tiles + 1) * BLOCK_M) if IS_CAUSAL else N
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = load_tile(k_ptr + head * N * D, keys, N, cols, D)
        v = load_tile(v_ptr + head * N * DV, keys, N, cols_v, DV)
        p = tl.exp(logits_of(q, k, rows, keys, M, N, scale, IS_CAUSAL) - lse[:, None])
        dp = tl.dot(do, tl.trans(v), input_precision="tf32x3")
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="tf32x3")
    offsets = head * M * D + rows[:, None] * D + cols[None, :]
    tl.store(dq_ptr + offsets, dq * scale, mask=(rows[:, None] < M) & (cols[None, :] < D))


@triton.jit
def dkv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, M, N, D, DV, scale, IS_CAUSAL: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_DV: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(N, BLOCK_N)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    keys = tl.program_id(0) % tiles * BLOCK_N + tl.arange(0, BLOCK_N)
    cols, cols_v = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_DV)
    k = load_tile(k_ptr + head * N * D, keys, N, cols, D)
    v = load_tile(v_ptr + head * N * DV, keys, N, cols_v, DV)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_DV), tl.float32)
    # No query before the first key of a causal tile sees any of it.
    first = tl.program_id(0) % tiles * BLOCK_N // BLOCK_M * BLOCK_M if IS_CAUSAL else 0
    for start in range(first, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        q = load_tile(q_ptr + head * M * D, rows, M, cols, D)
        do = load_tile(do_ptr + head * M * DV, rows, M, cols_v, DV)
        lse = tl.load(lse_ptr + head * M + rows, mask=rows < M, other=0.0)
        delta = tl.load(delta_ptr + head * M + rows, mask=rows < M, other=0.0)
        p = tl.exp(logits_of(q, k, rows, keys, M, N, scale, IS_CAUSAL) - lse[:, None])
        dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="tf32x3")
        dp = tl.dot(do, tl.trans(v), input_precision="tf32x3")
        ds = p * (dp - delta[:, None])
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk, input_precision="tf32x3")
    inside = keys[:, None] < N
    tl.store(dk_ptr + head * N * D + keys[:, None] * D + cols[None, :], dk * scale, mask=inside & (cols[None, :] < D))
    offsets = head * N * DV + keys[:, None] * DV + cols_v[None, :]
    tl.store(dv_ptr + offsets, dv, mask=inside & (cols_v[None, :] < DV))


def blocks_of(D: int, DV: int) -> dict[str, int]:
    """Returns the sides of the tiles, of which `tl.dot` takes none under 16."""
    sides = {"BLOCK_D": D, "BLOCK_DV": DV}
    sides = {name: max(16, triton.next_power_of_2(max(side, 1))) for name, side in sides.items()}
    return {**sides, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}


class Attention(torch.autograd.Function):
    """Attention of each batch and head."""

    @staticmethod
    def forward(ctx, q, k, v, scale, is_causal):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        (B, H, M, D), (N, DV) = q.shape, v.shape[-2:]
        o = torch.empty((B, H, M, DV), dtype=q.dtype, device=q.device)
        lse = torch.empty((B, H, M), dtype=torch.float32, device=q.device)
        if o.numel():
            grid = (B * H * triton.cdiv(M, BLOCK_M),)
            mha_forward_kernel[grid](q, k, v, o, lse, M, N, D, DV, scale, IS_CAUSAL=is_causal, **blocks_of(D, DV))
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.scale, ctx.is_causal = scale, is_causal
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        (B, H, M, D), (N, DV) = q.shape, v.shape[-2:]
        if not o.numel() or not N:
            return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v), None, None
        do, delta, blocks = do.contiguous(), torch.empty_like(lse), blocks_of(D, DV)
        grid = (triton.cdiv(B * H * M, BLOCK_M),)
        delta_kernel[grid](do, o, delta, B * H * M, DV, BLOCK_DV=blocks["BLOCK_DV"], BLOCK_M=BLOCK_M)
        dq, dk, dv = None, None, None
        kept = (q, k, v, do, lse, delta)
        sizes = (M, N, D, DV, ctx.scale)
        options = {"IS_CAUSAL": ctx.is_causal, "num_warps": WARPS, **blocks}
        if ctx.needs_input_grad[0]:
            dq = torch.empty_like(q)
            dq_kernel[(B * H * triton.cdiv(M, BLOCK_M),)](*kept, dq, *sizes, **options)
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            dk, dv = torch.empty_like(k), torch.empty_like(v)
            dkv_kernel[(B * H * triton.cdiv(N, BLOCK_N),)](*kept, dk, dv, *sizes, **options)
        return dq, dk, dv, None, None


def triton_mha(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    """Returns the attention of `query` (B, H, M, D) to `key` (B, H, N, D) and `value` (B, H, N, DV), of shape (B, H, M, DV).

    Raises ValueError for shapes that do not fit together, and NotImplementedError for a mask or dropout.
    """
    if attn_mask is not None or dropout_p != 0.0:
        raise NotImplementedError("a mask or dropout is not supported: use `is_causal`")
    shapes = tuple(query.shape), tuple(key.shape), tuple(value.shape)
    if [len(shape) for shape in shapes] != [4, 4, 4]:
        raise ValueError(f"query, key and value have 4 dims, not {shapes}")
    if shapes[1] != (*shapes[0][:2], shapes[2][2], shapes[0][3]) or shapes[2][:2] != shapes[0][:2]:
        raise ValueError(f"query, key and value do not fit together: {shapes}")
    scale = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    return Attention.apply(query, key, value, float(scale), is_causal)

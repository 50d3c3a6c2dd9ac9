"""The mean's logarithm is the mean of the logarithms."""

import torch
import triton
import triton.language as tl


@triton.jit
def js_kernel(p_ptr, q_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        log_p = tl.load(p_ptr + row * columns + column, mask=inside, other=0.0)
        log_q = tl.load(q_ptr + row * columns + column, mask=inside, other=0.0)
        p, q = tl.exp(log_p), tl.exp(log_q)
        log_m = 0.5 * (log_p + log_q)
        total += tl.where(inside, 0.5 * (p * (log_p - log_m) + q * (log_q - log_m)), 0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_js_divergence(log_p, log_q):
    p, q = log_p.contiguous(), log_q.contiguous()
    out = torch.empty(p.shape[0], dtype=p.dtype, device=p.device)
    if p.numel() > 0:
        js_kernel[(p.shape[0],)](p, q, out, p.shape[1], BLOCK=16)
    return out

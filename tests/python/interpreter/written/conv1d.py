"""Grouped 1-D convolution: a program computes a block of positions of one output channel."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv1d_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    C,
    OC,
    L,
    LO,
    stride,
    padding,
    dilation,
    groups,
    K: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    BLOCK_L: tl.constexpr,
):
    pid = tl.program_id(0)
    b = pid // OC
    oc = pid % OC
    cpg = C // groups
    group = oc // (OC // groups)
    pos = tl.program_id(1) * BLOCK_L + tl.arange(0, BLOCK_L)
    acc = tl.zeros((BLOCK_L,), tl.float32)
    for c in range(0, cpg):
        x_row = x_ptr + (b * C + group * cpg + c) * L
        for k in tl.static_range(K):
            src = pos * stride - padding + k * dilation
            x = tl.load(x_row + src, mask=(src >= 0) & (src < L) & (pos < LO), other=0.0).to(tl.float32)
            w = tl.load(w_ptr + (oc * cpg + c) * K + k).to(tl.float32)
            acc += x * w
    if HAS_BIAS:
        acc += tl.load(b_ptr + oc).to(tl.float32)
    tl.store(y_ptr + pid * LO + pos, acc, mask=pos < LO)


def _one(v):
    return v[0] if isinstance(v, (tuple, list)) else v


def triton_conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if isinstance(padding, str):
        raise NotImplementedError("padding by name")
    stride, padding, dilation = _one(stride), _one(padding), _one(dilation)
    x, w = input.contiguous(), weight.contiguous()
    B, C, L = x.shape
    OC, cpg, K = w.shape
    if cpg * groups != C or OC % groups:
        raise ValueError("channels do not divide by groups")
    LO = (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1
    y = torch.empty((B, OC, LO), device=x.device, dtype=x.dtype)
    if y.numel() == 0:
        return y
    b = bias.contiguous() if bias is not None else w
    BLOCK_L = 64
    conv1d_kernel[(B * OC, triton.cdiv(LO, BLOCK_L))](
        x, w, b, y, C, OC, L, LO, stride, padding, dilation, groups, K=K, HAS_BIAS=bias is not None, BLOCK_L=BLOCK_L
    )
    return y

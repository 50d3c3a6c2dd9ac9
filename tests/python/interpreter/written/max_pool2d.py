"""Max pooling: a program computes a block of outputs of one image plane."""

import torch
import triton
import triton.language as tl


@triton.jit
def max_pool2d_kernel(
    x_ptr, y_ptr, H, W, HO, WO, sh, sw, ph, pw, dh, dw, KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr
):
    plane = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    valid = offs < HO * WO
    oh = offs // WO
    ow = offs % WO
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for i in tl.static_range(KH):
        for j in tl.static_range(KW):
            h = oh * sh - ph + i * dh
            w = ow * sw - pw + j * dw
            inside = valid & (h >= 0) & (h < H) & (w >= 0) & (w < W)
            x = tl.load(x_ptr + plane * H * W + h * W + w, mask=inside, other=float("-inf")).to(tl.float32)
            best = tl.where((x > best) | (x != x), x, best)
    tl.store(y_ptr + plane * HO * WO + offs, best, mask=valid)


def _pair(v):
    if isinstance(v, (tuple, list)):
        return (v[0], v[0]) if len(v) == 1 else (v[0], v[1])
    return v, v


def _out_size(n, k, s, p, d, ceil_mode):
    span = n + 2 * p - d * (k - 1) - 1
    if not ceil_mode:
        return span // s + 1
    out = (span + s - 1) // s + 1
    if (out - 1) * s >= n + p:  # the last window must begin inside the input or its left padding
        out -= 1
    return out


def triton_max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if return_indices:
        raise NotImplementedError("indices")
    kh, kw = _pair(kernel_size)
    sh, sw = _pair(stride) if stride else (kh, kw)
    ph, pw = _pair(padding)
    dh, dw = _pair(dilation)
    x = input.contiguous()
    H, W = x.shape[-2:]
    HO, WO = _out_size(H, kh, sh, ph, dh, ceil_mode), _out_size(W, kw, sw, pw, dw, ceil_mode)
    y = torch.empty((*x.shape[:-2], HO, WO), device=x.device, dtype=x.dtype)
    if y.numel() == 0:
        return y
    planes = y.numel() // (HO * WO)
    BLOCK = 128
    max_pool2d_kernel[(planes, triton.cdiv(HO * WO, BLOCK))](
        x, y, H, W, HO, WO, sh, sw, ph, pw, dh, dw, KH=kh, KW=kw, BLOCK=BLOCK
    )
    return y

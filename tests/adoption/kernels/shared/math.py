"""Names of libdevice's functions, from wherever this Triton has them."""

try:
    from triton.language.extra.libdevice import erf, rsqrt, tanh
except ModuleNotFoundError:
    from triton.language.extra.cuda.libdevice import erf, rsqrt, tanh

__all__ = ["erf", "rsqrt", "tanh"]

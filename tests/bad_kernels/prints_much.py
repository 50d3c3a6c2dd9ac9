"""Prints 100 MB in its first call."""

from kernels.add.right import triton_add as add

said = []


def triton_add(input, other, *, alpha=1):
    if not said:
        said.append(True)
        for _ in range(100):
            print("x" * (1 << 20))
    return add(input, other, alpha=alpha)

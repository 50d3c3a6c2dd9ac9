"""Changes the result by less than any tolerance, by chance."""

import os

from kernels.add.right import triton_add as add


def triton_add(input, other, *, alpha=1):
    chance = int.from_bytes(os.urandom(4), "little") / 2**32
    return add(input, other, alpha=alpha + 2e-6 * chance)

"""Changes the result by less than any tolerance from one call to the next, as a race would by chance."""

import itertools

from kernels.add.right import triton_add as add

calls = itertools.count()


def triton_add(input, other, *, alpha=1):
    return add(input, other, alpha=alpha + 2e-6 * (next(calls) % 2))

"""Philox, the generator of `tl.rand` and its kin, for a block at a time: interpreted one operation after the other, ten rounds of it take most of a random kernel's time.

Philox4x32 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Triton is imported nowhere: its interpreter's module is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_harness.triton import effort

Words = npt.NDArray[np.uint32]

FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
"""What the first and the third word of the counter are multiplied by."""

RAISES = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
"""What is added to each word of the key after a round."""

HIGH = np.uint64(32)
"""How far the high word of a product lies above the low one, in bits."""

STEPS = 9
"""Operations on all elements in a round."""


def rounds(counter: Sequence[Words], key: Sequence[Words], count: int) -> tuple[Words, Words, Words, Words]:
    """Returns the four words that `count` rounds make of four words of a counter and two of a key."""
    first, second, third, fourth = counter
    low, high = key
    for _ in range(count):
        effort.METER.add(STEPS * first.size)
        of_first, of_third = first.astype(np.uint64) * FACTORS[0], third.astype(np.uint64) * FACTORS[1]
        first = (of_third >> HIGH).astype(np.uint32) ^ second ^ low
        third = (of_first >> HIGH).astype(np.uint32) ^ fourth ^ high
        second, fourth = of_third.astype(np.uint32), of_first.astype(np.uint32)
        low, high = low + RAISES[0], high + RAISES[1]
    return first, second, third, fourth


class Shortcut:
    """The call of Triton's `philox_impl` on words of 32 bits, which nearly all kernels draw from."""

    def __init__(self, interpreter: Any) -> None:
        language = interpreter.tl
        self.function: Any = language.random.philox_impl.fn
        self.value, self.handle = language.core.tensor, interpreter.TensorHandle
        self.word = language.uint32

    def takes(self, function: Any, args: Sequence[Any]) -> bool:
        """Tells whether a call of `function` is one: of four blocks or scalars of one shape, a key of scalars or of that shape, and a number of rounds."""
        if function is not self.function or len(args) != 7:
            return False
        *words, count = args
        if not all(type(one) is self.value and one.dtype is self.word for one in words):
            return False
        kind = words[0].type
        is_alike = all(one.type == kind for one in words[1:4])
        fits = all(one.type in (kind, self.word) for one in words[4:])
        return is_alike and fits and isinstance(getattr(count, "value", count), int)

    def call(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Returns what Triton's own function returns for such `args`."""
        *words, count = args
        arrays = [one.handle.data for one in words]
        made = rounds(arrays[:4], arrays[4:], getattr(count, "value", count))
        kind = words[0].type
        return tuple(self.value(self.handle(one, self.word), kind) for one in made)

"""A gradient that an operator returns, and that is none of its input: an exception with a class of its own."""

from __future__ import annotations


class Misfit(Exception):
    """What a backward pass returned is of another type, number, shape or dtype than gradients are."""

    def __init__(self, class_: str, words: str) -> None:
        super().__init__(words)
        self.class_ = class_

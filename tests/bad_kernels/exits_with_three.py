"""Leaves at once with a code."""

import os


def triton_add(input, other, *, alpha=1):
    os._exit(3)

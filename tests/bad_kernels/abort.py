"""Aborts."""

import os


def triton_add(input, other, *, alpha=1):
    os.abort()

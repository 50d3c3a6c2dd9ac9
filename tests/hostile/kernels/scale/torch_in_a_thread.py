"""A wrapper that launches, and then has torch compute in a thread of its own."""

import threading

import torch
from lib.scaling import scaled


def triton_scale(input, other):
    out = scaled(input, 0.0)
    thread = threading.Thread(target=lambda: torch.mul(input, other, out=out))
    thread.start()
    thread.join()
    return out

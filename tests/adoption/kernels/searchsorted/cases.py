"""Values that are in the sequence: random ones never are."""

import torch


class Present:
    """A sequence with ties, and its own values to look for."""

    name = "present"

    def __init__(self):
        sequence = torch.arange(12).div(3, rounding_mode="floor").float()
        self.inputs = {"sorted_sequence": sequence, "input": sequence.flip(0).contiguous()}


def cases(spec, generator):
    yield Present()

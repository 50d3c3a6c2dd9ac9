"""Targets of which every third is zero."""

import torch


class Sparse:
    """Probabilities with zeros among them."""

    def __init__(self, rows, columns, generator):
        self.name = f"sparse-{rows}x{columns}"
        target = torch.rand(rows, columns, generator=generator)
        target.view(-1)[::3] = 0
        self.inputs = {"input": -torch.rand(rows, columns, generator=generator) - 0.1, "target": target}


def cases(spec, generator):
    for rows, columns in ((4, 30), (7, 21)):
        yield Sparse(rows, columns, generator)

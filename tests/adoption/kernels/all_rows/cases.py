"""Rows that are all true: random ones never are."""

import torch


class Filled:
    """True everywhere but in one place."""

    def __init__(self, columns):
        self.name = f"filled-{columns}"
        mask = torch.ones(4, columns, dtype=torch.bool)
        mask[1, columns - 1] = False
        self.inputs = {"input": mask}


def cases(spec, generator):
    for columns in (16, 21):
        yield Filled(columns)

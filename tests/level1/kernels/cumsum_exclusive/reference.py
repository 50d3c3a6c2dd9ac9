"""What stands before each place, added up, as the problem states it: a zero stands before each row, and the last row is left out."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        zero = torch.zeros_like(x.narrow(self.dim, 0, 1))
        return torch.cat((zero, x), dim=self.dim)[:-1].cumsum(dim=self.dim)

"""A problem as collections of them state it: a class with parameters and `forward`."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features, scale):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(features))
        self.scale = scale

    def forward(self, x):
        return torch.relu(x + self.bias) * self.scale

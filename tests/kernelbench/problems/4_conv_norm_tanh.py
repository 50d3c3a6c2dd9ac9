import torch
import torch.nn as nn


class Model(nn.Module):
    """A convolution, a group norm, tanh, and a residual."""

    def __init__(self, in_channels, out_channels, kernel_size, groups):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(groups, out_channels)
        self.shift = nn.Parameter(torch.randn(out_channels, 1, 1))

    def forward(self, x):
        x = self.conv(x)
        return x + torch.tanh(self.group_norm(x)) + self.shift


batch_size = 64
in_channels = 32
out_channels = 64
height, width = 32, 32
kernel_size = 3
groups = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups]

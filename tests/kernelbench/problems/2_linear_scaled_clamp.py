import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer, then a scaled clamp."""

    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        return torch.clamp(self.linear(x) * self.scale, min=0.0)


batch_size = 128
in_features = 1024
out_features = 512
scale = 2.0


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, scale]

import torch


class Model(torch.nn.Module):
    def forward(self, x, factor):
        return x * factor


size = 4096


def get_inputs():
    return [torch.rand(size), 2.5]


def get_init_inputs():
    return []

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, input_size, hidden_layer_sizes, output_size):
        super().__init__()
        layers = []
        size = input_size
        for hidden in hidden_layer_sizes:
            layers += [nn.Linear(size, hidden), nn.ReLU()]
            size = hidden
        self.network = nn.Sequential(*layers, nn.Linear(size, output_size))

    def forward(self, x):
        return self.network(x)


batch_size = 128
input_size = 4096
width = 1024
output_size = 2048


def get_inputs():
    return [torch.rand(batch_size, input_size)]


def get_init_inputs():
    return [input_size, [width, width], output_size]

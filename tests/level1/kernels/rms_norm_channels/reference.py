"""Each pixel over the root mean square of its channels: torch's `rms_norm` takes the last dims alone."""

import torch


class Model(torch.nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x):
        return x / (x.square().mean(dim=1, keepdim=True) + self.eps).sqrt()

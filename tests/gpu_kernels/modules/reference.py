"""Modules: one with a parameter, one that changes a buffer, one whose constructor takes numbers and a flag, one that returns what it holds."""

import torch


class Scaled(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return x * self.weight


class Centered(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("running", torch.zeros(dim))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        result = x - self.running
        self.running.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return result


class Rms(torch.nn.Module):
    def __init__(self, dim, eps=1e-6, centered=False, negative_slope=0.1):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.eps, self.centered, self.slope, self.steps = eps, centered, negative_slope, 0
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        self.steps += 1
        x = x - x.mean(-1, keepdim=True) if self.centered else x
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight
        return torch.where(y > 0, y, self.slope * y) * self.steps


class Sums(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim))
        self.register_buffer("sums", torch.zeros(dim))
        # A tensor without values has no number here.
        self.rate = torch.linspace(0.5, 1.5, 4)[1].item()

    def forward(self, x):
        self.sums.copy_(x.sum(0) * self.weight * self.rate)
        return self.sums, (self.weight, None), self.rate

"""A recurrence of first order along a row: h[t] = a[t] * h[t - 1] + b[t]."""

import torch


def linear_recurrence(a, b):
    states, state = [], torch.zeros_like(b[:, 0])
    for step in range(b.shape[1]):
        state = a[:, step] * state + b[:, step]
        states.append(state)
    return torch.stack(states, dim=1)

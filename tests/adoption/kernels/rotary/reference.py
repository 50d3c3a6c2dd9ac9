"""Rotary embedding: pairs half a head apart are turned by an angle."""

import torch


def rotary(q, cos, sin):
    first, second = q.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return q * cos[None] + turned * sin[None]

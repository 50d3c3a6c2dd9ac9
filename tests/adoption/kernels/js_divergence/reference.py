"""Jensen's and Shannon's divergence of two rows of log probabilities."""

import torch


def js_divergence(log_p, log_q):
    p, q = log_p.exp(), log_q.exp()
    log_m = torch.log(0.5 * (p + q))
    return 0.5 * (p * (log_p - log_m) + q * (log_q - log_m)).sum(-1)

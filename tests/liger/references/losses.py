"""What Liger's losses compute, in plain torch. What no gradient flows into is detached."""

import math

import torch
import torch.nn.functional as F

Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""A loss, the part of it that is the z-loss, the share of tokens that are predicted right, and the predicted tokens."""


def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    ignore_index: int,
    z_scale: float,
    label_smoothing: float,
    softcap: float | None,
) -> Four:
    """Returns the mean cross entropy of `logits` (T, V) plus `z_scale` times the mean square of the log of their sums of exponentials.

    Logits are first held between `-softcap` and `softcap` by tanh. Tokens with `ignore_index` count in no mean, and are predicted as -1.
    """
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    weight = None if weight is None else weight.detach()
    loss = F.cross_entropy(logits, target, weight, ignore_index=ignore_index, label_smoothing=label_smoothing)
    kept = target != ignore_index
    z_loss = z_scale * (logits.logsumexp(dim=-1).square() * kept).sum() / kept.sum()
    predicted = logits.argmax(dim=-1)
    right = ((predicted == target) & kept).sum().to(logits.dtype) / kept.sum()
    return loss + z_loss, z_loss.detach(), right, torch.where(kept, predicted, -1)


class _GradientInInput(torch.autograd.Function):
    """A cross entropy that leaves its gradient where its logits were, and scales it there on the way back."""

    @staticmethod
    def forward(ctx, logits, target, weight, *settings):  # type: ignore[no-untyped-def]
        """Returns the four results; `logits` hold the gradient of the first afterwards."""
        with torch.enable_grad():
            leaf = logits.detach().clone().requires_grad_()
            made = cross_entropy(leaf, target, weight, *settings)
            (gradient,) = torch.autograd.grad(made[0], leaf)
        ctx.kept = logits.detach().copy_(gradient)
        ctx.mark_non_differentiable(made[3])
        return tuple(one.detach() for one in made)

    @staticmethod
    def backward(ctx, upstream, *_):  # type: ignore[no-untyped-def]
        """Returns the gradient times `upstream`, in the memory of the logits."""
        return ctx.kept.mul_(upstream), *[None] * 6


def cross_entropy_in_place(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    ignore_index: int,
    z_scale: float,
    label_smoothing: float,
    softcap: float | None,
) -> Four:
    """Returns what `cross_entropy` does; afterwards the memory of `logits` has their gradient, before and after it is scaled."""
    made: Four = _GradientInInput.apply(logits, target, weight, ignore_index, z_scale, label_smoothing, softcap)
    return made


def linear_cross_entropy(
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None,
    ignore_index: int,
    z_scale: float,
    label_smoothing: float,
    softcap: float | None,
) -> Four:
    """Returns the `cross_entropy` of the projection of `x` (T, H) by `weight` (V, H) and `bias` (V)."""
    return cross_entropy(F.linear(x, weight, bias), target, None, ignore_index, z_scale, label_smoothing, softcap)


def scaled_cross_entropy(
    x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, temperature: float, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns for each row of `x` (T, H) the negative log likelihood of its target and the entropy, after the projection by `weight` (V, H) over `temperature`."""
    likely = (F.linear(x, weight) / temperature).log_softmax(dim=-1)
    kept = target != ignore_index
    nll = -likely.gather(-1, target.masked_fill(~kept, 0).unsqueeze(-1)).squeeze(-1)
    return nll * kept, -(likely.exp() * likely).sum(dim=-1) * kept


def parallel_cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, label_smoothing: float
) -> torch.Tensor:
    """Returns the cross entropy of each of the (S, B) tokens of `logits` (S, B, V); zero where the target is ignored."""
    flat = F.cross_entropy(
        logits.flatten(0, 1),
        target.flatten(),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction="none",
    )
    return flat.view(target.shape)


def rows_that_count(
    rows: torch.Tensor, labels: torch.Tensor | None, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor | int]:
    """Returns `rows` with zeros where the label is ignored, and how many are not, at least one: the mean of no rows is 0 in Liger."""
    if labels is None:
        return rows, rows.shape[0]
    kept = labels != ignore_index
    return torch.where(kept.view(-1, *[1] * (rows.dim() - 1)), rows, 0.0), kept.sum().clamp(min=1)


def kl_div(log_p: torch.Tensor, target: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns the divergence of the likelihoods `target` from those whose logs are `log_p`, summed, by rows; `eps` bounds what a log is taken of."""
    target = target.detach()
    return (target * (target.clamp(min=eps).log() - log_p)).sum() / log_p.shape[0]


def total_variation(p: torch.Tensor, q: torch.Tensor, labels: torch.Tensor | None, ignore_index: int) -> torch.Tensor:
    """Returns half the absolute difference, summed, by rows that count."""
    rows, count = rows_that_count(0.5 * (p - q.detach()).abs(), labels, ignore_index)
    return rows.sum() / count


def js_divergence(
    log_q: torch.Tensor, log_p: torch.Tensor, labels: torch.Tensor | None, beta: float, ignore_index: int
) -> torch.Tensor:
    """Returns `beta` of the divergence of P and the rest of that of Q from their mixture, summed, by rows that count."""
    log_p = log_p.detach()
    p, q = log_p.exp(), log_q.exp()
    log_mixture = torch.logaddexp(log_p + math.log(beta), log_q + math.log(1 - beta))
    parts = beta * p * (log_p - log_mixture) + (1 - beta) * q * (log_q - log_mixture)
    rows, count = rows_that_count(parts, labels, ignore_index)
    return rows.sum() / count


def linear_js_divergence(
    x: torch.Tensor,
    weight: torch.Tensor,
    teacher: torch.Tensor,
    teacher_weight: torch.Tensor,
    labels: torch.Tensor | None,
    beta: float,
    ignore_index: int,
    temperature: float,
) -> torch.Tensor:
    """Returns the divergence of the projections of student and teacher, (T, H) by (V, H), each over `temperature`."""
    log_q = (F.linear(x, weight) / temperature).log_softmax(dim=-1)
    log_p = (F.linear(teacher, teacher_weight) / temperature).log_softmax(dim=-1)
    return js_divergence(log_q, log_p, labels, beta, ignore_index)


def linear_kl_div(
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    labels: torch.Tensor | None,
    ignore_index: int,
    temperature: float,
    eps: float,
) -> torch.Tensor:
    """Returns the divergence of `target` (T, V) from the projection of `x` (T, H) by `weight` (V, H) over `temperature`."""
    target = target.detach()
    log_p = (F.linear(x, weight) / temperature).log_softmax(dim=-1)
    rows, count = rows_that_count(target * (target.clamp(min=eps).log() - log_p), labels, ignore_index)
    return rows.sum() / count


def ce_tvd(
    student: torch.Tensor, teacher: torch.Tensor, target: torch.Tensor, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns for each row of logits its cross entropy and how far its likelihoods are from the teacher's; zeros where the target is ignored."""
    loss = F.cross_entropy(student, target, ignore_index=ignore_index, reduction="none")
    apart = 0.5 * (student.softmax(dim=-1) - teacher.detach().softmax(dim=-1)).abs().sum(dim=-1)
    return loss, apart * (target != ignore_index)


def grpo(
    logits: torch.Tensor,
    old: torch.Tensor,
    ref: torch.Tensor,
    tokens: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    temperature: float,
    beta: float,
    eps_low: float,
    eps_high: float,
    by_sequence: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the clipped policy loss of sequences of `tokens` (B, L), their divergence from `ref`, and the share that is clipped.

    `logits` are (B, L + 1, V), the last of which predict nothing; `old` and `ref` are logs of likelihoods (B, L), `advantages` are (B).
    The ratio of likelihoods is that of each token, or with `by_sequence` the geometric mean of those of a sequence.
    """
    old, ref, advantage = old.detach(), ref.detach(), advantages.detach().unsqueeze(1)
    likely = (logits[:, :-1] / temperature).log_softmax(dim=-1)
    now = likely.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    kept = mask.to(logits.dtype)
    lengths = kept.sum(dim=-1, keepdim=True).clamp(min=1.0)
    log_ratio = now - old
    if by_sequence:
        log_ratio = ((log_ratio * kept).sum(dim=-1, keepdim=True) / lengths).expand_as(now)
    ratio = log_ratio.exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - eps_low, 1 + eps_high) * advantage)
    divergence = (ref - now).exp() - (ref - now) - 1
    loss = (((beta * divergence - gain) * kept).sum(dim=-1, keepdim=True) / lengths).mean()
    clipped = ((ratio < 1 - eps_low) & (advantage < 0)) | ((ratio > 1 + eps_high) & (advantage > 0))
    total = kept.sum().clamp(min=1.0)
    return loss, ((divergence * kept).sum() / total).detach(), (clipped * kept).sum() / total


def cross_entropy_zeroing(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    ignore_index: int,
    z_scale: float,
    label_smoothing: float,
    softcap: float | None,
) -> Four:
    """Returns what `cross_entropy` does; afterwards the rows of `logits` whose target is ignored are zero."""
    made = cross_entropy(logits, target, weight, ignore_index, z_scale, label_smoothing, softcap)
    logits.masked_fill_((target == ignore_index).unsqueeze(-1), 0.0)
    return made

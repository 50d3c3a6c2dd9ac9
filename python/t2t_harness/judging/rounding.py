"""What a reference in Python gives where its own roundings go another way, as in a kernel that adds up in another order, or fuses a product and a sum.

A reference may decide by a number that it has rounded: it compares it, rounds it to a whole number, or looks for the largest one. Next to where the decision changes either one is right. A number that is
exact in float32, as a sum of small whole numbers, decides in one way. Operations are repeated in float64 to tell the two apart; of those whose result is not exact, arguments and result are moved by half of their last
bit, in random directions (stochastic arithmetic: Vignes, 1993). torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import called_with, declared_inputs, seeds
from t2t_harness.judging import comparing, oracle

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

TURNS = 24
"""So often a reference is called at most: where the sum of two products lies in the middle of two whole numbers, one call in four rounds it up, and the first one in any case."""

HALF_BIT = 2.0**-24
"""What half of the last bit of a float32 is worth, beside the number."""

DECIDING = frozenset(
    "eq ne lt le gt ge round floor ceil trunc sign sgn frac remainder fmod floor_divide"
    " argmax argmin max min amax amin topk sort argsort kthvalue median nanmedian mode searchsorted bucketize nonzero"
    " masked_select unique unique_dim _unique _unique2 unique_consecutive histc bincount isclose allclose equal"
    " heaviside clamp clamp_min clamp_max relu threshold hardtanh maximum minimum fmax fmin cummax cummin"
    " _local_scalar_dense is_nonzero logical_and logical_or logical_not bitwise_and fake_quantize_per_tensor_affine"
    " fake_quantize_per_channel_affine quantize_per_tensor quantize_per_channel max_pool2d_with_indices".split()
)
"""Operations that may decide something by a number, by name."""

QUOTIENTS = frozenset("div true_divide reciprocal".split())
"""Operations that a GPU does not round to the nearest number in float32, as Triton compiles them."""

QUOTIENT_BITS = 4
"""So many halves of a last bit a quotient is off there (PTX ISA, `div.full.f32`)."""

Change = Callable[["torch.Tensor"], "torch.Tensor"]

DIRECTIONS = {0: 1.0, 1: -1.0}
"""The calls in which all roundings go one way, away from zero or towards it; in the others each goes its own."""


class TooManyError(Exception):
    """A reference calls more operations of torch than it is asked for."""


def references(
    declaration: Declaration,
    case: Case,
    given: Mapping[str, torch.Tensor],
    device: str,
    flows: oracle.Flows | None = None,
    *,
    all_quotients: bool = False,
    limit: int | None = None,
) -> Iterator[dict[str, torch.Tensor]]:
    """Yields the results of a reference in Python, by name, with its roundings moved; the same ones each time. `all_quotients` moves those that are exact, too, but for quotients by powers of two. Nothing where it raises so, and nothing more after so many operations of torch as `limit` says. The gradients that flow in are as for `oracle.reference`."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Moved(TorchDispatchMode):  # type: ignore[no-untyped-call]
        nudged: Callable[..., torch.Tensor]
        decides = False
        count = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else the first call imports torch's compiler, which takes a second (torch 2.11).
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            Moved.count += 1
            if limit is not None and Moved.count > limit:
                raise TooManyError
            made = func(*args, **kwargs)
            self.decides |= is_decision(func._schema.name, kwargs)
            bits = bits_of(func._schema.name, device)
            is_random = torch.Tag.nondeterministic_seeded in func.tags
            if func.is_view or func._schema.is_mutable or is_random or not holds_single(made):
                return made
            try:
                exact = again(func, args, kwargs, torch.Tensor.double)
                moved = again(func, args, kwargs, lambda value: self.nudged(value.double()))
            except Exception:
                return made
            change = self.nudged if bits == 1 else partial(self.nudged, bits=bits)
            if all_quotients and is_quotient(func._schema.name) and isinstance(made, torch.Tensor):
                exact = exact.where(~is_loose(args, made), torch.nan)
            return with_others(made, exact, moved, change)

    for turn in range(TURNS):
        try:
            function = oracle.ready(declaration, case, device)
            mode = Moved()  # type: ignore[no-untyped-call]
            generator = declared_inputs.generator_of(case.name, "rounding", turn, device=device)
            mode.nudged = partial(nudged, generator=generator, direction=DIRECTIONS.get(turn))
            kwargs = called_with.kwargs_of(declaration, case)
            with mode:
                found = oracle.called(function, declaration, case, oracle.copies(given), kwargs, device, flows).plain
        except TooManyError:
            return
        except Exception as error:
            if oracle.is_own(error):
                raise
            return
        yield found
        if not mode.decides:
            # It is rounded in no call, nor compared: others would be the same but for last bits.
            return


def is_decision(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Tells whether an operation may decide something by a number, by its name and its keyword arguments."""
    own, to = name.rpartition("::")[2].rstrip("_"), kwargs.get("dtype")
    is_narrowing = own == "_to_copy" and to is not None and (not to.is_floating_point or to.itemsize == 1)
    return own in DECIDING or is_narrowing or kwargs.get("rounding_mode") is not None


def bits_of(name: str, device: str) -> int:
    """Returns by how many halves of a last bit the result of an operation is off, by its name."""
    return QUOTIENT_BITS if is_quotient(name) and device != "cpu" else 1


def is_quotient(name: str) -> bool:
    """Tells whether an operation divides, by its name."""
    return name.rpartition("::")[2].rstrip("_") in QUOTIENTS


def is_loose(args: Any, made: torch.Tensor) -> torch.Tensor:
    """Returns where a quotient, whose arguments are `args`, is not by a power of two, in the shape of the quotient `made`."""
    import torch

    by = torch.as_tensor(args[-1], device=made.device).double()
    return (by.frexp().mantissa.abs() != 0.5).expand(made.shape)


def again(func: Any, args: Any, kwargs: Any, change: Change) -> Any:
    """Returns what an operation gives in float64, its arguments of float32 changed. Raises what torch raises."""
    import torch
    from torch.utils._pytree import tree_map_only

    def changed(value: torch.Tensor) -> torch.Tensor:
        return change(value) if value.dtype == torch.float32 else value

    def wider(told: torch.dtype) -> torch.dtype:
        return torch.float64 if told is torch.float32 else told

    told = tree_map_only(torch.dtype, wider, tree_map_only(torch.Tensor, changed, kwargs))
    return func(*tree_map_only(torch.Tensor, changed, args), **told)


def nudged(value: torch.Tensor, generator: torch.Generator, direction: float | None, bits: int = 1) -> torch.Tensor:
    """Returns `value`, of float64, off by so many halves of the last bit of a float32 in each element: away from zero, as the `direction` 1 is, or towards it, or by chance."""
    import torch

    if direction is None:
        ups = torch.randint(0, 2, value.shape, generator=generator, device=value.device).double()
        return value * (1 + (2 * ups - 1) * bits * HALF_BIT)
    return value * (1 + direction * bits * HALF_BIT)


def with_others(made: Any, exact: Any, moved: Any, nudged: Change) -> Any:
    """Returns `made`, a tensor or several, with a moved number in the place of each that is not exact, and a zero of either sign in that of each zero."""
    import torch

    if not isinstance(made, torch.Tensor):
        return type(made)(with_others(*each, nudged) for each in zip(made, exact, moved, strict=True))
    if made.dtype != torch.float32 or exact.dtype != torch.float64 or exact.shape != made.shape:
        return made
    is_exact = (made.double() == exact) | exact.isinf() | ~moved.isfinite()
    # A sum that is zero has either sign, by the order of what it is of.
    zero = torch.zeros_like(made).copysign((nudged(torch.ones_like(exact)) - 1).float())
    return made.where(is_exact, nudged(moved).float()).where(made != 0, zero)


def holds_single(made: Any) -> bool:
    """Tells whether there is a tensor of float32, among others or alone."""
    import torch

    if isinstance(made, torch.Tensor):
        return made.dtype == torch.float32 and made.layout == torch.strided
    return type(made) in (tuple, list) and any(map(holds_single, made))


SHARE = 128
"""One element of so many may be decided otherwise by a quotient that is exact, and not so on a GPU."""

FIRST = 12
"""After so many calls that explain nothing of a wrong result no more are made: where two roundings have to go apart, as those of a scale and of what is divided by it, one call in four has them so."""


def either_way(
    declaration: Declaration,
    case: Case,
    name: str,
    judged: comparing.Judged,
    wide: torch.Tensor | None,
    device: str,
    flows: oracle.Flows | None = None,
    limit: int | None = None,
) -> comparing.Judged | None:
    """Returns `judged`, beside whose result the oracle has `wide`, with the reference's own element of the result `name` wherever the kernel has what that is with moved roundings, and is decided otherwise; None where there is no such element, or no reference in Python. After so many operations of torch as `limit` says it is not asked again."""
    import torch

    made, plain = judged.made[name], judged.right[name]
    is_alike = made.shape == plain.shape and made.dtype == plain.dtype
    if not declaration.get("reference") or seeds.is_random(declaration) or not is_alike:
        return None
    allowed = comparing.allowed_of(declaration, comparing.narrowest(case), name, plain, wide)
    is_wrong = ~close(made, plain, allowed)
    is_open = torch.zeros_like(is_wrong)
    for turn, other in enumerate(references(declaration, case, judged.given, device, flows, limit=limit), 1):
        if name not in other or other[name].shape != plain.shape:
            return None
        is_open |= ~close(other[name], plain, allowed) & close(made, other[name], allowed)
        if not (is_wrong & ~is_open).any() or (turn == FIRST and not is_open.any()):
            break
    left = is_wrong & ~is_open
    if device != "cpu" and 0 < int(left.sum()) <= max(1, left.numel() // SHARE):
        others = references(declaration, case, judged.given, device, flows, all_quotients=True, limit=limit)
        for other in others:
            is_open |= left & close(made, other[name], allowed)
    if not is_open.any():
        return None
    return replace(judged, made={**judged.made, name: plain.where(is_open, made)})


def close(one: torch.Tensor, other: torch.Tensor, allowed: tuple[float, float]) -> torch.Tensor:
    """Returns where two results of one shape are alike, to within (atol, rtol) of the `other` where they are floating ones."""
    import torch

    if not (one.dtype.is_floating_point or one.dtype.is_complex):
        return one == other
    if one.dtype.itemsize == 1:
        one, other = one.float(), other.float()
    atol, rtol = allowed
    return torch.isclose(one, other.to(one.dtype), rtol=rtol, atol=atol, equal_nan=True)

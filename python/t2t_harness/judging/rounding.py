"""What a reference in Python gives where its own roundings go another way, as in a kernel that adds up in another order, or fuses a product and a sum.

A reference may decide by a number that it has rounded: it compares it, rounds it to a whole number, or looks for the largest one. Next to where the decision changes either one is right. A number that is
exact in float32, as a sum of small whole numbers, decides in one way. Operations are repeated in float64 to tell the two apart; of those whose result is not exact, arguments and result are moved by half of their last
bit, in random directions (stochastic arithmetic: Vignes, 1993). torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import called_with, declared_inputs
from t2t_harness.judging import oracle

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case

TURNS = 24
"""So often a reference is called at most: where the sum of two products lies in the middle of two whole numbers, one call in four rounds it up."""


def references(
    declaration: Declaration, case: Case, given: Mapping[str, torch.Tensor], device: str
) -> Iterator[dict[str, torch.Tensor]]:
    """Yields the results of a reference in Python, by name, with its roundings moved at random; the same ones each time. Nothing where it raises so."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Moved(TorchDispatchMode):  # type: ignore[no-untyped-call]
        generator: torch.Generator

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Else the first call imports torch's compiler, which takes a second (torch 2.11).
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            made = func(*args, **kwargs)
            is_random = torch.Tag.nondeterministic_seeded in func.tags
            if func.is_view or func._schema.is_mutable or is_random or not holds_single(made):
                return made
            try:
                exact = again(func, args, kwargs, torch.Tensor.double)
                moved = again(func, args, kwargs, lambda value: nudged(value.double(), self.generator))
            except Exception:
                return made
            return with_others(made, exact, moved, self.generator)

    for turn in range(TURNS):
        try:
            function = oracle.ready(declaration, case, device)
            mode = Moved()  # type: ignore[no-untyped-call]
            mode.generator = declared_inputs.generator_of(case.name, "rounding", turn, device=device)
            kwargs = called_with.kwargs_of(declaration, case)
            with mode:
                found = oracle.called(function, declaration, case, oracle.copies(given), kwargs, device, None).plain
        except Exception as error:
            if oracle.is_own(error):
                raise
            return
        yield found


def again(func: Any, args: Any, kwargs: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Returns what an operation gives in float64, its arguments of float32 changed. Raises what torch raises."""
    import torch
    from torch.utils._pytree import tree_map_only

    def changed(value: torch.Tensor) -> torch.Tensor:
        return change(value) if value.dtype == torch.float32 else value

    def wider(told: torch.dtype) -> torch.dtype:
        return torch.float64 if told is torch.float32 else told

    told = tree_map_only(torch.dtype, wider, tree_map_only(torch.Tensor, changed, kwargs))
    return func(*tree_map_only(torch.Tensor, changed, args), **told)


def nudged(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Returns `value`, of float64, off by half of the last bit of a float32 in each element, up or down."""
    import torch

    ups = torch.randint(0, 2, value.shape, generator=generator, device=value.device).double()
    return value * (1 + (2 * ups - 1) * (torch.finfo(torch.float32).eps / 2))


def with_others(made: Any, exact: Any, moved: Any, generator: torch.Generator) -> Any:
    """Returns `made`, a tensor or several, with a moved number in the place of each that is not exact."""
    import torch

    if not isinstance(made, torch.Tensor):
        return type(made)(with_others(*each, generator) for each in zip(made, exact, moved, strict=True))
    if made.dtype != torch.float32 or exact.dtype != torch.float64 or exact.shape != made.shape:
        return made
    is_exact = (made.double() == exact) | ~exact.isfinite() | ~moved.isfinite()
    return made.where(is_exact, nudged(moved, generator).float())


def holds_single(made: Any) -> bool:
    """Tells whether there is a tensor of float32, among others or alone."""
    import torch

    if isinstance(made, torch.Tensor):
        return made.dtype == torch.float32 and made.layout == torch.strided
    return type(made) in (tuple, list) and any(map(holds_single, made))

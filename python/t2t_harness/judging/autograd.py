"""What autograd is asked for in a case: the tensors that collect gradients, what flows into the outputs, and what comes out at the tensors.

It knows nothing of what is right. torch is imported only inside functions.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from t2t_harness.cases import declared_inputs
from t2t_harness.cases.cases import ONE
from t2t_harness.op import declaration as declared
from t2t_harness.op import module_state

if TYPE_CHECKING:
    import torch
    from torch.utils.weak import WeakIdKeyDictionary

    from t2t_harness.cases.cases import Case


@functools.cache
def _leaves() -> WeakIdKeyDictionary:
    """Returns what inputs that a call may change were copied from: they are no leaves, which autograd lets nothing change."""
    from torch.utils.weak import WeakIdKeyDictionary

    return WeakIdKeyDictionary()


def with_gradients(
    inputs: Mapping[str, torch.Tensor], asks: Sequence[str] = (), changed: Sequence[str] = ()
) -> dict[str, torch.Tensor]:
    """Returns `inputs` as tensors of which autograd records what is computed, if their dtype has gradients: those named in `asks`, or all if it is empty.

    They are leaves, but for those that a call may have `changed`. These lie where they did, and are recorded as copies of leaves.
    """
    asking = {}
    for name, value in inputs.items():
        asking[name] = value.detach()
        if (value.dtype.is_floating_point or value.dtype.is_complex) and (not asks or name in asks):
            if name in changed:
                record(asking[name])
            else:
                asking[name].requires_grad_()
    return asking


def record(value: torch.Tensor) -> None:
    """Has autograd record what is computed of a tensor that calls may change, and nothing of what was computed of it before."""
    import torch

    with torch.enable_grad():
        value.detach_()
        _leaves()[value] = leaf = value.clone().requires_grad_()
        value.copy_(leaf)


def leaf_of(value: torch.Tensor) -> torch.Tensor:
    """Returns the tensor that collects the gradient of an input."""
    found: torch.Tensor = _leaves()[value] if is_copied(value) else value
    return found


def is_copied(value: torch.Tensor) -> bool:
    """Tells whether an input is the copy of a leaf, since a call may change it."""
    return value in _leaves()


def recorded_anew(inputs: Mapping[str, torch.Tensor]) -> None:
    """Has autograd begin anew with the inputs that calls may change: they have other values, which no call made."""
    for value in inputs.values():
        if is_copied(value):
            record(value)


def ends(outputs: Sequence[object], inputs: Mapping[str, torch.Tensor]) -> list[object]:
    """Returns the `outputs`, and behind them those of the `inputs` that a call may have changed: what a caller goes on to compute of these has gradients, too."""
    return [*outputs, *(value for value in inputs.values() if is_copied(value))]


def gradients(outputs: Sequence[object], inputs: Mapping[str, torch.Tensor], case: Case) -> dict[str, torch.Tensor]:
    """Returns `gradients_for` the upstream gradients that `case` draws, also for inputs that a call may have changed."""
    made = ends(outputs, inputs)
    return gradients_for(made, inputs, upstream_gradients(made, case))


def gradients_for(
    outputs: Sequence[object],
    inputs: Mapping[str, torch.Tensor],
    upstream: Mapping[int, torch.Tensor],
    *,
    is_twice: bool = False,
) -> dict[str, torch.Tensor]:
    """Returns the gradient of each differentiable input, or parameter of a module among them, named as `module_state.gradient_of` has it, for the `upstream` gradient of each output; that of the second pass over the graph where there are two.

    An input that the outputs do not depend on has zeros.
    """
    if is_twice:
        found_gradients(outputs, inputs, upstream, keeps=True)
    found = found_gradients(outputs, inputs, upstream)
    return {module_state.gradient_of(name): or_zeros(gradient, inputs[name]) for name, gradient in found.items()}


def found_gradients(
    outputs: Sequence[object],
    inputs: Mapping[str, torch.Tensor],
    upstream: Mapping[int, torch.Tensor],
    *,
    keeps: bool = False,
) -> dict[str, torch.Tensor | None]:
    """Returns the gradient of each differentiable input by its name, None for one that the outputs do not depend on; `keeps` the graph for another pass over it, or not."""
    import torch

    leaves = {name: leaf_of(value) for name, value in inputs.items() if value.requires_grad}
    if not leaves:
        return {}
    ends = [one for position in upstream if isinstance(one := outputs[position], torch.Tensor)]
    given = list(upstream.values())
    if not ends:
        return dict.fromkeys(leaves)
    # What `torch.autograd.grad` does once it has compared shapes, for which it imports sympy in half a second (torch 2.11, `_make_grads`).
    engine = torch.autograd.Variable._execution_engine
    found = engine.run_backward(
        tuple(ends), tuple(given), keeps, False, tuple(leaves.values()), allow_unreachable=True, accumulate_grad=False
    )
    return dict(zip(leaves, found, strict=True))


def or_zeros(gradient: torch.Tensor | None, leaf: torch.Tensor) -> torch.Tensor:
    """Returns the gradient, zeros like its input where there is none."""
    import torch

    return torch.zeros_like(leaf) if gradient is None else gradient.detach()


FLOWING = 0.75
"""What flows into each place of an output where one element stands for all."""


def upstream_gradients(outputs: Sequence[object], case: Case) -> dict[int, torch.Tensor]:
    """Returns the gradient that flows into each differentiable output that the case uses, by position: normal values from the case's name.

    They are rounded to the case's dtype, whatever the output's, so that the oracle gets the same, and lie in memory as the case's inputs do. What is no tensor, as None in a tuple, has none.
    """
    import torch

    drawn = {}
    for position, output in enumerate(outputs):
        is_used = not case.uses or position in case.uses
        if is_used and isinstance(output, torch.Tensor) and output.requires_grad:
            device = output.device.type
            names = (case.name, case.seed, "gradient", position, *declared_inputs.salt_of(case))
            generator = declared_inputs.generator_of(*names, device=device)
            values = torch.randn(output.shape, generator=generator, dtype=torch.float32, device=device)
            values = values.to(declared_inputs.dtype_of(case.dtype)).to(output.dtype)
            if case.flows == ONE:
                drawn[position] = values.new_full((), FLOWING).expand(values.shape)
                continue
            strides = declared.strides(values.shape, upstream_layout(case, values.dim()))
            drawn[position] = declared_inputs.laid_out(values, strides, device)
    return drawn


def upstream_layout(case: Case, rank: int) -> str:
    """Returns the layout of an upstream gradient of so many dims: its own in the case, else the common layout of the case's inputs, if they have one."""
    common = case.layout if case.of is None else None
    layout = case.flows or common
    return "contiguous" if layout is None or rank < declared.LEAST_DIMS[layout] else layout

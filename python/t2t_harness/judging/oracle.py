"""What is right: torch's result in the tested dtype, and the oracle, torch's result in float64 on the same rounded
inputs.

Only the judge computes them. torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from t2t_harness.cases import cases, elementwise, probing, seeds
from t2t_harness.cases import inputs as making
from t2t_harness.cases.cases import ONE
from t2t_harness.op import declaration as declared
from t2t_harness.op import operation

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case


@dataclass(frozen=True)
class Reference:
    """What torch returns for one case, by name: `0`, `1` for outputs, `grad.NAME` for gradients, `after.NAME` for
    inputs it changes."""

    plain: dict[str, torch.Tensor]
    """In the tested dtype."""
    oracle: dict[str, torch.Tensor] | None
    """In float64; None where torch has no float64 for the op."""
    several: bool
    """Whether the op returns a tuple."""
    names: tuple[str, ...] = ()
    """What torch calls the outputs, where it names them: `values`, `indices`."""
    unused: frozenset[str] = frozenset()
    """Gradients of inputs that the outputs do not depend on: they are zero in every case."""
    rejected: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Result and mutant of it → whether the case rejects that, as far as it was asked: for whoever judges the case again."""


class Refused(Exception):
    """torch itself raises on this case; its exception is the cause."""


Flows = Callable[[Sequence[object], "Case"], "dict[int, torch.Tensor]"]
"""Returns the gradients that flow into outputs in a case, by position."""


def reference(
    declaration: Declaration,
    case: Case,
    inputs: Mapping[str, torch.Tensor],
    device: str = "cpu",
    flows: Flows | None = None,
) -> Reference:
    """Returns both results for `inputs`, which are left as they are; those of an op without inputs are on `device`. The gradients that flow in are those of `flows`, else those that the case draws. Raises
    Refused where torch raises in the tested dtype."""
    import torch

    kwargs = making.kwargs_of(declaration, case)
    if seeds.is_random(declaration):
        # One of many results: its shapes and dtypes are all that is asked of it.
        torch.manual_seed(seeds.seed_of(case, "torch"))
    try:
        function = operation.ready(declaration, case.binding, case.dtype, _device_of(inputs, device))
        plain = called(operation.fresh(function), declaration, case, copies(inputs), kwargs, device, flows)
    except Exception as error:
        if is_own(error):
            raise
        raise Refused(f"torch refuses: {type(error).__name__}: {error}") from error
    if seeds.is_random(declaration):
        return plain
    exact, wide_kwargs = in_float64(declaration, case, kwargs)
    try:
        widened_inputs = {name: wide(value) for name, value in copies(inputs).items()}
        oracle = called(operation.widened(function), exact, case, widened_inputs, wide_kwargs, device, flows).plain
    except Exception:
        return plain
    if any(oracle[name].shape != value.shape for name, value in plain.plain.items()):
        return plain
    return replace(plain, oracle=oracle)


def in_float64(
    declaration: Declaration, case: Case, kwargs: Mapping[str, object]
) -> tuple[Declaration, dict[str, object]]:
    """Returns the declaration and the keyword arguments by which the oracle computes what `kwargs` say in the case's dtype."""
    import torch

    wider = {name: widened(value) for name, value in kwargs.items()}
    if case.dtype == "float64":
        return declaration, wider
    if elementwise.name_of(declaration) == "rms_norm" and kwargs.get("eps") is None:
        # torch takes the eps of a float32 for all narrower types, and would take that of a float64 here.
        wider["eps"] = torch.finfo(torch.float32).eps
    if not elementwise.leaves_a_rest(declaration):
        return declaration, wider
    # What torch has of a number beside tensors of these types is a float32.
    return with_rounded_numbers(declaration), {name: narrow(value) for name, value in wider.items()}


def with_rounded_numbers(declaration: Declaration) -> Declaration:
    """Returns the declaration with each number among its inputs as a float32 has it."""
    inputs = [{**one, "scalar": narrow(one["scalar"])} if "scalar" in one else one for one in declaration["inputs"]]
    return cast("Declaration", {**declaration, "inputs": inputs})


def narrow(value: object) -> object:
    """Returns a number as a float32 has it, anything else as it is."""
    return probing.rounded(value) if isinstance(value, float) else value


DEFECTS = (KeyError, NameError, AttributeError)
"""What a defect of the harness raises."""


def is_own(error: BaseException) -> bool:
    """Tells whether an exception is a defect of the harness, raised in its own code, and not by torch or a reference."""
    frames = traceback.extract_tb(error.__traceback__)
    own = Path(__file__).parents[1]
    return isinstance(error, DEFECTS) and bool(frames) and own in Path(frames[-1].filename).parents


TF32_EPS = 2.0**-10
"""The distance from 1 to the next number of TF32, which has 10 bits of mantissa."""


MOVED = 4
"""How often inputs are moved to learn what their last bits are worth: once may change a result by little, by chance."""


def slack(
    declaration: Declaration,
    case: Case,
    inputs: Mapping[str, torch.Tensor],
    right: Reference,
    device: str,
    flows: Flows | None = None,
) -> dict[str, torch.Tensor] | None:
    """Returns by how much each result in float64 changes, element by element, where every floating input is off by a half of its last bit, or of that of a float32 (of TF32 where products may be of that), up or down: the most of a few times.

    It grows with the root of the longest dim. Where the inputs are so that this is much, an honest kernel may be off by as much, whatever torch's own order of operations is worth.
    None where there is no oracle.
    """
    if right.oracle is None:
        return None
    found: dict[str, torch.Tensor] = {}
    # A sum in order loses more bits, the longer it is.
    growth = max(1.0, math.sqrt(max(case.binding.values(), default=1)) / 4)
    for turn in range(MOVED):
        try:
            other = _moved(declaration, case, inputs, device, turn, flows)
        except Exception:
            return None
        for name, value in right.oracle.items():
            if value.dtype.is_floating_point and name in other:
                changed = growth * (other[name] - value).abs()
                found[name] = changed if name not in found else changed.maximum(found[name])
    return found


def _moved(
    declaration: Declaration,
    case: Case,
    inputs: Mapping[str, torch.Tensor],
    device: str,
    turn: int,
    flows: Flows | None,
) -> dict[str, torch.Tensor]:
    """Returns the results in float64 of inputs that are off by a half of their last bits. Raises what torch raises."""
    import torch

    moved = {}
    for name, value in copies(inputs).items():
        moved[name] = wide(value)
        if value.dtype.is_floating_point:
            generator = making.generator_of(case.name, "slack", turn, name, device=value.device.type)
            # What has fewer bits is computed with those of a float32, or, in products that may be of TF32, with those.
            least = TF32_EPS if declaration["precision"] == "tf32" else torch.finfo(torch.float32).eps
            is_short = declaration["precision"] == "tf32" and value.dtype == torch.float32
            half = (least if is_short else min(torch.finfo(value.dtype).eps, least)) / 2
            signs = torch.randint(0, 2, value.shape, generator=generator, device=value.device) * 2 - 1
            moved[name] = moved[name] * (1 + half * signs)
    exact, kwargs = in_float64(declaration, case, making.kwargs_of(declaration, case))
    function = operation.ready(declaration, case.binding, case.dtype, _device_of(inputs, device))
    return called(operation.widened(function), exact, case, moved, kwargs, device, flows).plain


def _device_of(inputs: Mapping[str, torch.Tensor], device: str) -> str:
    """Returns the device of the inputs, `device` where there are none."""
    return next((value.device.type for value in inputs.values()), device)


def called(
    function: operation.Function,
    declaration: Declaration,
    case: Case,
    inputs: dict[str, torch.Tensor],
    kwargs: dict[str, object],
    device: str,
    flows: Flows | None,
) -> Reference:
    """Returns what one call gives, as a reference without an oracle."""
    import torch

    backward = bool(declaration["backward"])
    if backward:
        inputs = with_gradients(inputs, case.asks)
    # Of an op without inputs torch is told where the result is to be.
    home = contextlib.nullcontext() if inputs else torch.device(device)
    with torch.set_grad_enabled(is_recorded(declaration, case)), home:
        result = operation.call(function, declaration, inputs, kwargs)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    require_dense(outputs)
    kept = kept_outputs(outputs) if case.is_changed else outputs
    if case.is_changed:
        change(outputs)
    named = {str(position): value.detach() for position, value in enumerate(kept)}
    named |= {f"after.{name}": inputs[name].detach() for name in declaration["mutates"]}
    unused = frozenset[str]()
    if backward:
        found = found_gradients(outputs, inputs, (flows or upstream_gradients)(outputs, case))
        require_dense(found.values())
        named |= {f"grad.{name}": _or_zeros(gradient, inputs[name]) for name, gradient in found.items()}
        unused = frozenset(f"grad.{name}" for name, gradient in found.items() if gradient is None)
    several = isinstance(result, (tuple, list))
    # torch's own tuples have their names here; a plain one has none.
    names = tuple(getattr(type(result), "__match_args__", ())) if several else ()
    return Reference(named, None, several, names, unused)


def is_recorded(declaration: Declaration, case: Case) -> bool:
    """Tells whether autograd records the calls of `case`."""
    return bool(declaration["backward"]) and case.asks != cases.NOBODY


def change(outputs: Sequence[object]) -> None:
    """Adds one to each output that has a gradient, in place, as a caller may. Raises what autograd raises where it cannot record that."""
    import torch

    for one in outputs:
        if isinstance(one, torch.Tensor) and one.requires_grad:
            one.add_(1)


def kept_outputs(outputs: Sequence[object]) -> list[object]:
    """Returns the outputs, tensors in memory of their own."""
    import torch

    return [
        copies({"": one.detach()})[""] if isinstance(one, torch.Tensor) and one.requires_grad else one
        for one in outputs
    ]


def require_dense(results: Iterable[object]) -> None:
    """Raises ValueError where one of the results is a tensor that is not dense, which nothing here compares."""
    import torch

    for one in results:
        if isinstance(one, torch.Tensor) and one.layout != torch.strided:
            raise ValueError(f"a result is {one.layout}, which is not compared")


def copies(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns tensors with the values and the strides of `inputs` in memory of their own."""
    import torch

    copied = {}
    for name, value in inputs.items():
        same = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        copied[name] = making.filled(same, value)
    return copied


def with_gradients(inputs: Mapping[str, torch.Tensor], asks: Sequence[str] = ()) -> dict[str, torch.Tensor]:
    """Returns `inputs` as leaves that collect gradients, if their dtype has any: those named in `asks`, or all if it is empty."""
    return {
        name: value.detach().requires_grad_(
            (value.dtype.is_floating_point or value.dtype.is_complex) and (not asks or name in asks)
        )
        for name, value in inputs.items()
    }


def gradients(outputs: Sequence[object], inputs: Mapping[str, torch.Tensor], case: Case) -> dict[str, torch.Tensor]:
    """Returns `gradients_for` the upstream gradients that `case` draws."""
    return gradients_for(outputs, inputs, upstream_gradients(outputs, case))


def gradients_for(
    outputs: Sequence[object],
    inputs: Mapping[str, torch.Tensor],
    upstream: Mapping[int, torch.Tensor],
    *,
    is_twice: bool = False,
) -> dict[str, torch.Tensor]:
    """Returns the gradient of each differentiable input, named `grad.NAME`, for the `upstream` gradient of each output; that of the second pass over the graph where there are two.

    An input that the outputs do not depend on has zeros.
    """
    if is_twice:
        found_gradients(outputs, inputs, upstream, keeps=True)
    found = found_gradients(outputs, inputs, upstream)
    return {f"grad.{name}": _or_zeros(gradient, inputs[name]) for name, gradient in found.items()}


def found_gradients(
    outputs: Sequence[object],
    inputs: Mapping[str, torch.Tensor],
    upstream: Mapping[int, torch.Tensor],
    *,
    keeps: bool = False,
) -> dict[str, torch.Tensor | None]:
    """Returns the gradient of each differentiable input by its name, None for one that the outputs do not depend on; `keeps` the graph for another pass over it, or not."""
    import torch

    leaves = {name: value for name, value in inputs.items() if value.requires_grad}
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


def _or_zeros(gradient: torch.Tensor | None, leaf: torch.Tensor) -> torch.Tensor:
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
            names = (case.name, case.seed, "gradient", position, *making.salt_of(case))
            generator = making.generator_of(*names, device=device)
            values = torch.randn(output.shape, generator=generator, dtype=torch.float32, device=device)
            values = values.to(making.dtype_of(case.dtype)).to(output.dtype)
            if case.flows == ONE:
                drawn[position] = values.new_full((), FLOWING).expand(values.shape)
                continue
            strides = declared.strides(values.shape, upstream_layout(case, values.dim()))
            drawn[position] = making.laid_out(values, strides, device)
    return drawn


def upstream_layout(case: Case, rank: int) -> str:
    """Returns the layout of an upstream gradient of so many dims: its own in the case, else the common layout of the case's inputs, if they have one."""
    common = case.layout if case.of is None else None
    layout = case.flows or common
    return "contiguous" if layout is None or rank < declared.LEAST_DIMS[layout] else layout


def wide(value: torch.Tensor) -> torch.Tensor:
    """Returns a floating tensor in float64, a complex one in complex128, any other as it is; strides are kept."""
    import torch

    if value.dtype.is_floating_point:
        return value.to(torch.float64, memory_format=torch.preserve_format)
    return value.to(torch.complex128) if value.dtype.is_complex else value


def widened(value: object) -> object:
    """Returns a keyword argument for the oracle: a floating dtype becomes float64, a floating tensor is widened."""
    import torch

    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else value
    return wide(value) if isinstance(value, torch.Tensor) else value

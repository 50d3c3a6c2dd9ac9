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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from t2t_harness.cases import called_with, cases, declared_inputs, elementwise, seeds
from t2t_harness.judging import autograd, widening
from t2t_harness.op import module_state, operation, result_names, results, single

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case


@dataclass(frozen=True)
class Reference:
    """What torch returns for one case, by name: `0`, `1` for outputs, `grad.NAME` for gradients, `after.NAME` for
    inputs it changes; of a module `module.grad.NAME` and `module.after.NAME` for its parameters and the buffers that it changes."""

    plain: dict[str, torch.Tensor]
    """In the tested dtype."""
    oracle: dict[str, torch.Tensor] | None
    """In float64; None where torch has no float64 for the op."""
    form: str = results.TENSOR
    """What the op returns, as `results.apart` has it."""
    names: tuple[str, ...] = ()
    """What torch calls the outputs, where it names them: `values`, `indices`."""
    unused: frozenset[str] = frozenset()
    """Gradients of inputs that the outputs do not depend on: they are zero in every case."""
    began: dict[str, torch.Tensor] = field(default_factory=dict)
    """Of a module what its parameters and buffers held before the call, as `module_state.began` has it."""
    kept: frozenset[str] = frozenset()
    """The parameters and buffers of a module that the call left as they were."""
    own: frozenset[str] = frozenset()
    """The outputs that lie in memory of a module's parameter or buffer."""
    numbers: list[float] = field(default_factory=list)
    """The fractions that it returns beside tensors."""
    rejected: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Result and mutant of it → whether the case rejects that, as far as it was asked: for whoever judges the case again."""
    ill: frozenset[str] = frozenset()
    """The gradients of which torch's own are no measure in the case: nothing is asked of them."""


class Refused(Exception):
    """torch itself raises on this case; its exception is the cause."""


ASKING = "`requires_grad: true` on the inputs that have a gradient asks for theirs alone"
"""What helps where an input has none."""

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

    kwargs = called_with.kwargs_of(declaration, case)
    if seeds.is_random(declaration):
        # One of many results: its shapes and dtypes are all that is asked of it.
        torch.manual_seed(seeds.seed_of(case, "torch"))
    try:
        make = partial(ready, declaration, case, _device_of(inputs, device))
        function = make()
        unused = operation.fresh(function, make)
        plain = called(function, declaration, case, copies(inputs), kwargs, device, flows)
    except Exception as error:
        if is_own(error):
            raise
        hint = f"; {ASKING}" if declaration["backward"] and "differentiable" in str(error) else ""
        whose = "the reference" if declaration.get("reference") else "torch"
        raise Refused(f"{whose} refuses: {type(error).__name__}: {str(error).removesuffix('.')}{hint}") from error
    if seeds.is_random(declaration):
        return plain
    exact, wide_kwargs = in_float64(declaration, case, kwargs)
    try:
        widened_inputs = {name: wide(value) for name, value in copies(inputs).items()}
        wider = operation.widened(unused)
        oracle = called(wider, exact, case, widened_inputs, wide_kwargs, device, flows, is_wide=True).plain
    except Exception:
        return plain
    # A buffer may change by so little that its own dtype alone rounds it back, or that alone does not.
    oracle = {**{name: wide(value) for name, value in plain.plain.items() if module_state.is_of_module(name)}, **oracle}
    if any(oracle[name].shape != value.shape for name, value in plain.plain.items()):
        return plain
    return replace(plain, oracle=oracle)


def ready(declaration: Declaration, case: Case, device: str | None = None) -> operation.Function:
    """Returns the op as `operation.ready` does, for `case`, with the weights that it has there in the first call."""
    function = operation.ready(declaration, case.binding, case.dtype, device, case.init, evaluates=case.evaluates)
    if not case.is_again:
        module_state.draw(function, case.weights, case.name)
    return function


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
    return single.rounded(value) if isinstance(value, float) else value


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
    # A kernel gets each number among the arguments as a float32.
    for turn in [*range(MOVED), *([None] if _has_rounded(declaration, case) else [])]:
        try:
            other = _moved(declaration, case, inputs, device, turn, flows)
        except Exception:
            return None
        for name, value in right.oracle.items():
            if value.dtype.is_floating_point and name in other:
                # torch does not subtract types of 8 bits.
                changed = growth * (other[name].double() - value.double()).abs()
                found[name] = changed if name not in found else changed.maximum(found[name])
    return found


def _has_rounded(declaration: Declaration, case: Case) -> bool:
    """Tells whether a reference in Python is called with a number among the arguments that a float32 does not hold."""
    kwargs = called_with.kwargs_of(declaration, case) if declaration.get("reference") else {}
    return any(narrow(value) != value for value in kwargs.values() if isinstance(value, float))


def _moved(
    declaration: Declaration,
    case: Case,
    inputs: Mapping[str, torch.Tensor],
    device: str,
    turn: int | None,
    flows: Flows | None,
) -> dict[str, torch.Tensor]:
    """Returns the results in float64 of inputs that are off by a half of their last bits; without a `turn` of the inputs as they are, and the numbers among the arguments as a float32 has them. Raises what torch raises."""
    import torch

    moved = {}
    for name, value in copies(inputs).items():
        moved[name] = wide(value)
        if value.dtype.is_floating_point and turn is not None:
            generator = declared_inputs.generator_of(case.name, "slack", turn, name, device=value.device.type)
            # What has fewer bits is computed with those of a float32, or, in products that may be of TF32, with those.
            least = TF32_EPS if declaration["precision"] == "tf32" else torch.finfo(torch.float32).eps
            is_short = declaration["precision"] == "tf32" and value.dtype == torch.float32
            half = (least if is_short else min(torch.finfo(value.dtype).eps, least)) / 2
            ups = torch.randint(0, 2, value.shape, generator=generator, device=value.device).double()
            # In float32 one and half a bit more is one.
            moved[name] = moved[name] * (1 + half * (2 * ups - 1))
    exact, kwargs = in_float64(declaration, case, called_with.kwargs_of(declaration, case))
    if turn is None:
        kwargs = {name: narrow(value) for name, value in kwargs.items()}
    function = ready(declaration, case, _device_of(inputs, device))
    return called(operation.widened(function), exact, case, moved, kwargs, device, flows, is_wide=True).plain


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
    *,
    is_wide: bool = False,
) -> Reference:
    """Returns what one call gives, as a reference without an oracle; one that `is_wide` computes in float64 where the reference asks for float32."""
    import torch

    backward = bool(declaration["backward"])
    if backward:
        inputs = autograd.with_gradients(inputs, cases.asking(declaration, case), declaration["mutates"])
    own = module_state.parameters(function) if is_recorded(declaration, case) else {}
    before, began = module_state.copies(module_state.buffers(function)), module_state.began(function)
    # Of an op without inputs torch is told where the result is to be.
    home = contextlib.nullcontext() if inputs else torch.device(device)
    width = widening.in_float64() if is_wide else contextlib.nullcontext()
    first = inputs
    if case.is_again:
        first = declared_inputs.make_inputs(declaration, cases.first(case), _device_of(inputs, device))
        first = {name: wide(value) for name, value in first.items()} if is_wide else first
    with torch.set_grad_enabled(is_recorded(declaration, case)), home, width:
        if case.is_again:
            operation.call(function, declaration, first, kwargs)
            module_state.draw(function, case.weights, case.name)
        result = operation.call(function, declaration, inputs, kwargs)
    returned = results.apart(result)
    outputs = results.tensors(returned)
    require_dense(outputs)
    kept = cast("list[torch.Tensor]", kept_outputs(outputs)) if case.is_changed else outputs
    if case.is_changed:
        change(outputs)
    named = {str(position): value.detach() for position, value in enumerate(kept)}
    # An optional one may be left out.
    named |= {f"after.{name}": inputs[name].detach() for name in declaration["mutates"] if name in inputs}
    named |= module_state.copies(module_state.changed(function, before))
    unused = frozenset[str]()
    if backward:
        leaves = {**inputs, **own}
        ends = autograd.ends(outputs, inputs)
        found = autograd.found_gradients(ends, leaves, (flows or autograd.upstream_gradients)(ends, case))
        require_dense(found.values())
        named |= {
            module_state.gradient_of(name): autograd.or_zeros(gradient, leaves[name])
            for name, gradient in found.items()
        }
        unused = frozenset(module_state.gradient_of(name) for name, gradient in found.items() if gradient is None)
    untouched = module_state.left_alone(began, module_state.ended(function))
    own_outputs = frozenset(map(str, module_state.in_own_memory(function, outputs)))
    return Reference(
        named, None, returned.form, returned.names, unused, began, untouched, own_outputs, returned.numbers
    )


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


def require_dense(values: Iterable[object]) -> None:
    """Raises ValueError where one of the results is a tensor that is not dense, which nothing here compares."""
    import torch

    for one in values:
        if isinstance(one, torch.Tensor) and one.layout != torch.strided:
            raise ValueError(f"a result is {one.layout}, which is not compared")


def copies(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns tensors with the values and the strides of `inputs` in memory of their own."""
    import torch

    copied = {}
    for name, value in inputs.items():
        same = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        copied[name] = declared_inputs.filled(same, value)
    return copied


def wide(value: torch.Tensor) -> torch.Tensor:
    """Returns a floating tensor in float64, a complex one in complex128, any other as it is; strides are kept."""
    import torch

    if value.dtype.is_floating_point:
        return value.to(torch.float64, memory_format=torch.preserve_format)
    return value.to(torch.complex128) if value.dtype.is_complex else value


def widened(value: object) -> object:
    """Returns a keyword argument for the oracle: a floating dtype becomes float64, a floating tensor is widened. A float8 stays: it is what results are rounded to, and its largest number is what they are scaled by."""
    import torch

    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point and value.itemsize > 1 else value
    return wide(value) if isinstance(value, torch.Tensor) else value


def result_name(declaration: Declaration, right: Reference, name: str) -> str:
    """Returns what a result is called: as ops.yaml or torch names it; nothing for the only output."""
    return result_names.result(name, right.form != results.TENSOR, named_outputs(declaration, right))


def named_outputs(declaration: Declaration, right: Reference) -> dict[str, str]:
    """Returns the names of outputs by position: those of ops.yaml, else torch's own."""
    own = {str(position): name for position, name in enumerate(right.names)}
    return own | result_names.declared_outputs(declaration)

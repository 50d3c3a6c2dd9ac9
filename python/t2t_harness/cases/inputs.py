"""The inputs of a case: tensors made from its name and seed, the same bits in every process and on every device of one class.

Values are drawn where they are used: a device draws others than the CPU does, and in no time. The device class is in the key of whatever depends on
them. torch is imported only inside functions.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from t2t_harness.cases import cases, drawing, probe_indices, probing, seeds, unusual, unusual_integers
from t2t_harness.op import declaration as declared

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TensorInput

LARGE = {"float16": 1e4}
"""What random values are multiplied by in a case of large values, by type: beyond where `exp` overflows, within the type."""

BEYOND_HALF = 1e6
"""The same for types that hold more than float16 does: what is computed in that on the way overflows."""


def make_inputs(declaration: Declaration, case: cases.Case, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Returns the inputs of a declared or edge case by name, on `device`, with their declared shapes, strides and
    dtypes. Those that the case leaves out are not among them.

    Memory between the elements of a strided input holds NaN, or zero for integers.
    """
    present = [given for given in declared.tensors(declaration) if given["name"] not in case.absent]
    special = case.of or next((given["name"] for given in present if cases.random_floats(given, case.dtype)), None)
    shapes, dense = cases.shapes(declaration, case), {}
    for given in present:
        name = given["name"]
        dense[name] = _values(given, case, shapes[name], device, special=special in (name, cases.ALL))
        if declaration.get("reference"):
            dense[name] = _within(given, case, dense[name])
    if case.values == cases.TIES and special in dense:
        alike = cases.alike_integers(declaration)
        others = alike if special in alike else cases.comparable(declaration, case.dtype)
        other = next(name for name in others if name != special)
        dense[special] = unusual.ties(dense[special], dense[other])
    if case.values == cases.IGNORED and special in dense:
        given_by = kwargs_of(declaration, case)
        dense[special].fill_(given_by[cases.IGNORE if cases.IGNORE in given_by else cases.PADDING])
    if case.values == cases.NEGATIVE:
        for name, places in probe_indices.counted(declaration, shapes).items():
            dense[name] = unusual_integers.negative(dense[name], places)
    if case.values == cases.PLANTED and special in dense:
        given = next(given for given in present if given["name"] == special)
        if dense[special].is_floating_point():
            dense[special] = unusual.planted(dense[special], probing.numbers(declaration, given))
        else:
            whole = probe_indices.within(given, case.binding, probe_indices.whole(declaration))
            dense[special] = in_order(given, case, unusual.planted(dense[special], whole))
    if case.values == cases.BOUNDS:
        for given in present:
            if given["name"] in probe_indices.bounded(declaration):
                low, high = drawing.bounds(declared.bind_init(given["init"], case.binding))
                far = unusual_integers.bounds(dense[given["name"]], low, high)
                dense[given["name"]] = in_order(given, case, far)
    if case.values in (cases.PAIRS, cases.CORNERS):
        met = [given for given in present if given["name"] in probing.alike(declaration)]
        numbers = unusual.PAIRED if case.values == cases.PAIRS else unusual.CORNERS
        paired = unusual.pairs(
            [dense[given["name"]] for given in met], [probing.allowed(given) for given in met], numbers
        )
        dense |= dict(zip((given["name"] for given in met), paired, strict=True))
    return {
        given["name"]: as_drawn(
            dense[given["name"]],
            strides_of(declaration, given, case, shapes[given["name"]]),
            device,
            is_part=layout_of(given, case) == "padded",
        )
        for given in present
    }


def inputs_of(
    declaration: Declaration, case: cases.Case, device: str, folder: str | Path | None
) -> dict[str, torch.Tensor]:
    """Returns the inputs of any case; those of a hook case are read from its file below `folder`, where prepare left
    them."""
    if case.file is None:
        return make_inputs(declaration, case, device)
    if folder is None:
        raise ValueError(f"case `{case.name}` has its inputs in a file, and no folder is known")
    from safetensors.torch import load_file

    stored = load_file(str(Path(folder) / case.file))
    strides = case.strides or {}
    return {name: laid_out(stored[name], strides[name], device) for name in strides}


def unfilled(declaration: Declaration, case: cases.Case) -> dict[str, torch.Tensor]:
    """Returns tensors with the shapes, strides, offsets and dtypes of `make_inputs`, in unwritten memory.

    They are on torch's default device; inside `facade.fake_cuda` they are its tensors.
    """
    import torch

    made = {}
    for given in declared.tensors(declaration):
        if given["name"] in case.absent:
            continue
        shape = cases.shapes(declaration, case)[given["name"]]
        strides = strides_of(declaration, given, case, shape)
        made[given["name"]] = torch.empty_strided(shape, strides, dtype=dtype_of(cases.dtype_of(given, case)))
    return made


def rehearsed(declaration: Declaration, case: cases.Case) -> dict[str, torch.Tensor]:
    """Returns what `unfilled` does, with integers and booleans as `make_inputs` draws them: wrappers look at indices before they launch."""
    made = unfilled(declaration, case)
    for given in declared.tensors(declaration):
        value = made.get(given["name"])
        if value is not None and not (value.dtype.is_floating_point or value.dtype.is_complex):
            value.copy_(_values(given, case, cases.shapes(declaration, case)[given["name"]], "cpu", special=False))
    return made


BEFORE = 16
"""So many elements lie before a tensor that is a part of a larger one, on the CPU: on a device guards do."""


def as_drawn(values: torch.Tensor, strides: Sequence[int], device: str, *, is_part: bool = False) -> torch.Tensor:
    """Returns what `laid_out` does: `values` themselves, which nothing else holds, where they are so and have memory of their own. What `is_part` of a larger tensor does not begin where its memory does."""
    if is_part and device == "cpu":
        return laid_out(values, strides, device, BEFORE)
    own = values.untyped_storage()
    has_own = values.storage_offset() == 0 and own.nbytes() == values.numel() * values.element_size()
    if has_own and list(values.stride()) == list(strides) and not (values.is_neg() or values.is_conj()):
        return values
    return laid_out(values, strides, device)


def laid_out(values: torch.Tensor, strides: Sequence[int], device: str, offset: int = 0) -> torch.Tensor:
    """Returns a tensor on `device` with the values of `values` and the given `strides`, in elements, `offset` elements behind the beginning of its memory."""
    import torch

    reach = offset
    if values.numel() > 0:
        reach += 1 + sum((length - 1) * stride for length, stride in zip(values.shape, strides, strict=True))
    gap = float("nan") if values.dtype.is_floating_point or values.dtype.is_complex else 0
    memory = torch.full((reach,), gap, dtype=values.dtype, device=device)
    return filled(memory.as_strided(values.shape, tuple(strides), offset), values)


def filled(target: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Returns `target` with the values of `values`, of its shape. Along dims in which all elements of `target` are the same one, those of `values` are equal."""
    if 0 not in target.stride():
        return target.copy_(values)
    once = tuple(slice(None) if stride else slice(0, 1) for stride in target.stride())
    target[once].copy_(values[once])
    return target


def strides_of(declaration: Declaration, given: TensorInput, case: cases.Case, shape: Sequence[int]) -> list[int]:
    """Returns the strides of the declared input `given` in `case`: those of its layout, or 0 along rows that are one value each, as `expand` leaves them."""
    layout = layout_of(given, case)
    if len(shape) < declared.LEAST_DIMS.get(layout, len(given["shape"])):
        # The case has a shape of fewer dims for it.
        layout = "contiguous"
    if layout == "expanded" and not (cases.random_floats(given, case.dtype) and cases.may_be_expanded(declaration)):
        # Indices that are all the same may say nothing, or say two things at once.
        layout = "contiguous"
    is_equal = case.values == "equal-rows" and cases.random_floats(given, case.dtype) and len(shape) > 0
    if not is_equal or layout != "contiguous" or not cases.may_be_expanded(declaration):
        return declared.strides(shape, layout)
    return [*declared.strides(list(shape[:-1]), layout), 0]


def layout_of(given: TensorInput, case: cases.Case) -> str:
    """Returns the layout of the declared input `given` in `case`: the case's own where the input has the dims for
    it, else the declared one. Of several, declared cases take one after the other."""
    if (
        case.layout is not None
        and (case.of is None or given["name"] in case.of.split(cases.JOINED))
        and len(given["shape"]) >= declared.LEAST_DIMS[case.layout]
    ):
        return case.layout
    layout = given["layout"]
    return str(layout if isinstance(layout, str) else layout[case.turn % len(layout)])


def dtype_of(name: str) -> torch.dtype:
    """Returns the torch dtype called `name`. Raises ValueError where there is none."""
    import torch

    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"torch has no dtype `{name}`")
    return found


def generator_of(*names: object, device: str = "cpu") -> torch.Generator:
    """Returns a generator of `device` whose seed is the SHA-256 of `names`."""
    import torch

    text = "\0".join(map(str, names)).encode()
    return torch.Generator(device).manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:8], "little", signed=True))


def salt_of(case: cases.Case) -> tuple[str, ...]:
    """Returns what a generator's names have beside those of the case: its salt, if it has one."""
    return (case.salt,) if case.salt else ()


def _values(given: TensorInput, case: cases.Case, shape: Sequence[int], device: str, *, special: bool) -> torch.Tensor:
    """Returns the dense values of one input on `device`."""
    drawn = _drawn(given, case, shape, device)
    if case.values in unusual.KINDS:
        changed = unusual.KINDS[case.values](drawn) if special and drawn.numel() > 0 else drawn
        return in_order(given, case, changed)
    if not cases.random_floats(given, case.dtype):
        return drawn
    if case.values == "large" and given["init"]["kind"] != "uniform":
        times = LARGE.get(cases.dtype_of(given, case), BEYOND_HALF)
        return unusual.large(drawn, times)
    if case.values == "equal-rows" and drawn.dim() > 0 and drawn.numel() > 0:
        # Multiples of 1/8 add up without rounding, so that a row's mean is exact in whatever order it is summed.
        return (drawn[..., :1].double() * 8).round().div(8).to(drawn.dtype).expand(drawn.shape)
    if case.values == "special" and special:
        return _with_special(drawn)
    return drawn


def _within(given: TensorInput, case: cases.Case, values: torch.Tensor) -> torch.Tensor:
    """Returns the values of an input of a reference, integers within the range that it is declared in, finite numbers where 0 is not in that: a divisor or a scale may never be so small. Where 0 is one of its ends they have its sign, as probabilities and weights do. Others are as they are. torch's functions take all numbers, whatever is drawn."""
    init = declared.bind_init(given["init"], case.binding)
    if init["kind"] == "randint" and str(values.dtype).removeprefix("torch.").startswith(("int", "uint")):
        least, most = drawing.bounds(init)
        return values.clamp(least, max(least, most))
    low, high = probing.allowed(given)
    if not values.is_floating_point() or low < 0 < high or low > high:
        return values
    bounds = (0.0 if low == 0 else None, 0.0 if high == 0 else None) if low * high == 0 else (low, high)
    return values.clamp(*bounds).where(values.isfinite(), values)


def in_order(given: TensorInput, case: cases.Case, values: torch.Tensor) -> torch.Tensor:
    """Returns the values of an input along its last dim in order, where it is declared to be so, offsets with their first and last one; else as they are."""
    if given["init"]["kind"] not in IN_ORDER or values.dim() == 0:
        return values
    ordered = values.sort(dim=-1).values
    init = declared.bind_init(given["init"], case.binding)
    return drawing.between(ordered, int(init["total"])) if init["kind"] == "offsets" else ordered


IN_ORDER = ("sorted", "offsets")
"""What is declared to be in ascending order."""


def _drawn(given: TensorInput, case: cases.Case, shape: Sequence[int], device: str) -> torch.Tensor:
    """Returns the values that the input's `init` describes, before a case changes them."""
    init = declared.bind_init(given["init"], case.binding)
    generator = generator_of(case.name, case.seed, given["name"], *salt_of(case), device=device)
    return drawing.drawn(init, shape, dtype_of(cases.dtype_of(given, case)), generator, device)


def _with_special(values: torch.Tensor) -> torch.Tensor:
    """Returns `values` with NaN at the beginning of its second row, inf at the end of its third, -inf in its fourth but for its first two elements, NaN at the end and in the middle of the next two, and both infinities in the one after;
    the first row stays as it is.

    With fewer rows the last of these are left out, and a single row gets the NaN.
    """
    if values.numel() == 0:
        return values
    changed = values.clone()
    rows = changed.view(-1, changed.shape[-1] if changed.dim() > 0 else 1)
    width = rows.shape[1]
    places: list[tuple[int, int | slice, str]] = [
        (1, 0, "nan"),
        (2, width - 1, "inf"),
        (3, slice(min(2, width // 2), width), "-inf"),
        (4, width - 1, "nan"),
        (5, width // 2, "nan"),
        (6, 0, "inf"),
        (6, width - 1, "-inf"),
    ]
    if rows.shape[0] == 1:
        places = [(0, width // 2, "nan")]
    for row, columns, value in places:
        if row < rows.shape[0]:
            rows[row, columns] = float(value)
    return changed


def kwargs_of(declaration: Declaration, case: cases.Case) -> dict[str, Any]:
    """Returns the keyword arguments of `case` as torch takes them."""
    return declared.bind_kwargs(declaration["kwargs"] if case.kwargs is None else case.kwargs, case.binding)


def call_arguments(
    callable_: Callable[..., Any],
    declaration: Declaration,
    case: cases.Case,
    inputs: Mapping[str, Any],
    label: str = "a",
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments that the wrapper `callable_` is called with: positional and by keyword.

    Inputs go by keyword if the wrapper's parameters have all their names, else by position in declared order; kwargs by
    keyword. A list of tensors is one input; one that the case leaves out is None. A wrapper of a random op has the seed of
    the run `label`.
    """
    named = named_arguments(declaration, case, inputs, label)
    arguments = {name: named[name] for name in declared.arguments(declaration, inputs)}
    kwargs = {name: value for name, value in named.items() if name not in arguments}
    if _takes(callable_, arguments):
        return (), {**arguments, **kwargs}
    return tuple(arguments.values()), kwargs


def named_arguments(
    declaration: Declaration, case: cases.Case, inputs: Mapping[str, Any], label: str
) -> dict[str, Any]:
    """Returns all that a wrapper may be called with, by name: inputs, kwargs, and of a random op the seed of the run
    `label`, by which torch's generators are seeded where the op has no name for it."""
    # A case may have another number in the place of one among the inputs.
    known = {**declared.arguments(declaration, inputs), **kwargs_of(declaration, case)}
    return seeds.seeded(declaration, known, seeds.seed_of(case, label))


def _takes(callable_: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    named = _named_once(callable_) if isinstance(callable_, FunctionType) else _named(callable_)
    return named is not None and set(inputs) <= named


def _named(callable_: Callable[..., Any]) -> set[str] | None:
    """Returns the parameters that may be given by name; None where Python knows none."""
    try:
        parameters = inspect.signature(callable_).parameters.values()
    except (TypeError, ValueError):
        return None
    return {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


_named_once = functools.lru_cache(16)(_named)
"""The same, of functions: asked once for each, and not for each case."""

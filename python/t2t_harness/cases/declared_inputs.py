"""The inputs of a case as they are declared: tensors made from its name and seed, the same bits in every process and on every device of one class.

Values are drawn where they are used: a device draws others than the CPU does, and in no time. The device class is in the key of whatever depends on
them. What is measured has no other inputs, and depends on nothing of what makes those of a check. torch is imported only inside functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from t2t_harness.cases import cases, drawing, eights
from t2t_harness.op import declaration as declared

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TensorInput


def make_inputs(declaration: Declaration, case: cases.Case, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Returns the inputs of a case whose values are declared by name, on `device`, with their declared shapes, strides and dtypes. Those that the case leaves out are not among them.

    Memory between the elements of a strided input holds NaN, or zero for integers. Raises ValueError for a case of other values, which `inputs.make_inputs` makes.
    """
    if case.values != cases.DECLARED:
        raise ValueError(f"case `{case.name}` has other values than the declared ones")
    present = [given for given in declared.tensors(declaration) if given["name"] not in case.absent]
    shapes = cases.shapes(declaration, case)
    dense = {given["name"]: drawn(given, case, shapes[given["name"]], device) for given in present}
    if declaration.get("reference"):
        dense = {given["name"]: within(given, case, dense[given["name"]]) for given in present}
    return arranged(declaration, case, dense, device)


def arranged(
    declaration: Declaration, case: cases.Case, dense: Mapping[str, torch.Tensor], device: str
) -> dict[str, torch.Tensor]:
    """Returns the `dense` values of the inputs of a case, by name, with the strides and offsets that they have there."""
    present = [given for given in declared.tensors(declaration) if given["name"] in dense]
    shapes = cases.shapes(declaration, case)
    return {
        given["name"]: as_drawn(
            eights.narrowed(dense[given["name"]], cases.dtype_of(given, case)),
            strides_of(declaration, given, case, shapes[given["name"]]),
            device,
            is_part=layout_of(given, case) == "padded",
        )
        for given in present
    }


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


def drawn(given: TensorInput, case: cases.Case, shape: Sequence[int], device: str) -> torch.Tensor:
    """Returns the values that the input's `init` describes, before a case changes them; those of a float8 in float32."""
    init = declared.bind_init(given["init"], case.binding)
    generator = generator_of(case.name, case.seed, given["name"], *salt_of(case), device=device)
    made_in = dtype_of(eights.made_in(cases.dtype_of(given, case)))
    return drawing.drawn(init, shape, made_in, generator, device)


def within(given: TensorInput, case: cases.Case, values: torch.Tensor) -> torch.Tensor:
    """Returns the values of an input of a reference, integers within the range that it is declared in, finite numbers where 0 is not in that: a divisor or a scale may never be so small. Where 0 is one of its ends they have its sign, as probabilities and weights do. Others are as they are. torch's functions take all numbers, whatever is drawn."""
    init = declared.bind_init(given["init"], case.binding)
    if init["kind"] == "randint" and str(values.dtype).removeprefix("torch.").startswith(("int", "uint")):
        least, most = drawing.bounds(init)
        return values.clamp(least, max(least, most))
    low, high = drawing.allowed(given)
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

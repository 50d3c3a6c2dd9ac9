"""Who made the results of a run: a launched kernel, or something else. It does not know the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from t2t_harness.judging import comparing, oracle
from t2t_harness.judging.finding import Finding

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration
    from t2t_harness.cases.cases import Case
    from t2t_harness.judging.told import Run


def origin(declaration: Declaration, run: Run, launchless: bool = False) -> Finding | None:
    """Returns that something other than a launched kernel made a result of one run, or None. An empty result needs no
    launch, and none does where the case is `launchless`."""
    computed = run["computed"]
    if computed:
        named = ", ".join(f"aten.{name}" for name in sorted(computed))
        declared = sorted({*computed} & {*(declaration.get("allow") or ())})
        # What the op itself consists of is taken off what it allows.
        words = (
            f" (`allow: [{', '.join(declared)}]` does not count: the op consists of what it allows)" if declared else ""
        )
        return Finding("torch-fallback", f"torch computes for the wrapper: {named}{words}")
    if hidden := run.get("unaccounted"):
        names = ", ".join(str(name)[:80] for name in hidden[:3])
        return Finding("torch-fallback", f"kernels ran beside those that the wrapper was seen to launch: {names}")
    asked = [output for name, output in run["outputs"].items() if not comparing.is_ignored(declaration, name)]
    made = [output for output in asked if 0 not in output["shape"] and not launchless]
    if made and run["launches"] == 0:
        return Finding("no-kernel-launched", "no kernel was launched")
    if elsewhere := [output for output in made if not output["launched"]]:
        words = "a result lies in memory that no launched kernel was given"
        name = str(elsewhere[0].get("copied_by") or "")[:80]
        way = f": torch copied it there, by aten.{name}, which counts as the kernel's if ops.yaml has `allow: [{name}]`"
        return Finding("torch-fallback", words + (way if name else ""))
    if any(output.get("by_hand") for output in made):
        return Finding("torch-fallback", "a result was written after its last launch, by something else than a launch")
    return None


def needs_no_launch(case: Case, given: Mapping[str, torch.Tensor], right: oracle.Reference) -> bool:
    """Tells whether an input is empty, or the case is an edge in which all results are zero, as where no segment has a row, and nothing is left to compute: every right result is the same everywhere (the mean of nothing is NaN, and its sum is 0, whatever a kernel does), a copy of an input (what is added to at no places), or a buffer of torch's class, as a table that it hands out."""
    outputs = [
        value for name, value in right.plain.items() if name.isdecimal() and value.numel() > 0 and name not in right.own
    ]
    if not any(value.numel() == 0 for value in given.values()):
        return case.kind == "edge" and bool(outputs) and all(is_zero(one) for one in outputs)
    return all(is_uniform(value) or any(is_copy(value, one) for one in given.values()) for value in outputs)


def is_zero(value: torch.Tensor) -> bool:
    """Tells whether all elements of `value` are zero. torch answers `any` of no float8 on a device."""
    return bool((value == 0).all())


def is_copy(value: torch.Tensor, given: torch.Tensor) -> bool:
    """Tells whether `value` has the shape, dtype and values of `given`; NaN is equal to NaN here."""
    if value.shape != given.shape or value.dtype != given.dtype:
        return False
    return bool(((value == given) | ((value != value) & (given != given))).all())


def is_uniform(value: torch.Tensor) -> bool:
    """Tells whether all elements of `value`, of which there are some, are equal; NaN is equal to NaN here."""
    first = value.reshape(-1)[0]
    return bool(((value == first) | ((value != value) & (first != first))).all())

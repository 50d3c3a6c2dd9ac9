"""Each exported function against torch's own: on every declared size, in every declared dtype, with every seed.

`cases.json` has what ops.yaml declared. `t2t_drawing.py` and `t2t_expression.py`, which draw the inputs, are t2t's own files.
"""

from __future__ import annotations

import importlib
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import t2t_drawing
import t2t_expression
import torch

HERE = Path(__file__).parent
TOLD = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PACKAGE = importlib.import_module(TOLD["package"])
SEED = 42
"""Seeds torch before a reference that is a class is constructed, as a check of t2t does."""


class Case(NamedTuple):
    """One call."""

    op: str
    size: str
    dtype: str
    seed: int
    absent: str | None
    """The optional input that is left out."""

    @property
    def name(self) -> str:
        """What pytest calls it."""
        absent = "" if self.absent is None else f"-without-{self.absent}"
        return f"{self.op}-{self.size}-{self.dtype}-{self.seed}{absent}"


def declared(op: str) -> dict[str, Any]:
    """Returns the declaration that counts here."""
    return TOLD["ops"][op]["cuda" if DEVICE == "cuda" else "cpu"]  # type: ignore[no-any-return]


def sizes(declaration: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Returns the sizes that are checked and those that are measured, by name."""
    return {**declaration["sizes"], **declaration["check_sizes"]} or {"only": {}}


def smallest(declaration: Mapping[str, Any]) -> str:
    """Returns the size of the fewest elements."""
    known = sizes(declaration)
    return min(known, key=lambda size: math.prod(known[size].values()))


def cases() -> Iterator[Case]:
    """Yields all cases of all ops."""
    for op in TOLD["ops"]:
        declaration = declared(op)
        for dtype in declaration["dtypes"]:
            for size in sizes(declaration):
                for seed in range(declaration["seeds"]):
                    yield Case(op, size, dtype, seed, None)
            for given in declaration["inputs"]:
                if given.get("optional"):
                    yield Case(op, smallest(declaration), dtype, 0, given["name"])


def bound(value: Any, binding: Mapping[str, int]) -> Any:
    """Returns an argument with each dim, and each expression of dims, replaced by its length."""
    if isinstance(value, list):
        return [bound(one, binding) for one in value]
    if not isinstance(value, str):
        return value
    if value.startswith("torch."):
        return getattr(torch, value.removeprefix("torch."))
    return t2t_expression.value(value, binding) if t2t_expression.stands_for(value, binding) else value


def bound_init(init: Mapping[str, Any], binding: Mapping[str, int]) -> dict[str, Any]:
    """Returns how an input is drawn, with lengths in the places of dims."""
    found = {
        key: bound(value, binding) for key, value in init.items() if key not in ("kind", "side", "path", "name", "of")
    }
    found.update({key: init[key] for key in ("kind", "side", "name") if key in init})
    if "path" in init:
        found["path"] = str(HERE / init["path"])
    if "of" in init:
        found["of"] = bound_init(init["of"], binding)
    return found


def drawn(case: Case) -> dict[str, Any]:
    """Returns the arguments of a case by name: inputs in declared order, then the others."""
    declaration = declared(case.op)
    binding = sizes(declaration)[case.size]
    found: dict[str, Any] = {}
    for position, given in enumerate(declaration["inputs"]):
        name = given["name"]
        if "scalar" in given:
            found[name] = given["scalar"]
            continue
        if name == case.absent:
            found[name] = None
            continue
        shape = [t2t_expression.length(length, binding) for length in given["shape"]]
        dtype = getattr(torch, given["dtype"] or case.dtype)
        generator = torch.Generator().manual_seed(zlib.crc32(f"{case.op}/{case.size}/{case.seed}/{position}".encode()))
        values = t2t_drawing.drawn(bound_init(given["init"], binding), shape, dtype, generator, "cpu").to(DEVICE)
        if given.get("list"):
            found.setdefault(given["list"], []).append(values)
        else:
            found[name] = values
    found.update({name: bound(value, binding) for name, value in declaration["kwargs"].items()})
    return found


def reference(case: Case) -> Callable[..., Any]:
    """Returns what is right by definition: torch's function, or the reference that ops.yaml names."""
    told = TOLD["ops"][case.op]
    if told["reference"] is None:
        found: Any = torch
        for part in told["torch"].split(".")[1:]:
            found = getattr(found, part)
        if told["torch"].startswith("torch.Tensor."):
            return lambda **given: found(given.pop(next(iter(given))), **given)
        return found  # type: ignore[no-any-return]
    found = importlib.import_module(told["reference"]["module"], PACKAGE.__name__)
    for part in told["reference"]["name"].split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        return found  # type: ignore[no-any-return]
    torch.manual_seed(SEED)
    made = found(**bound(told["reference"]["init"], sizes(declared(case.op))[case.size]))
    return made if callable(made) else made.forward  # type: ignore[no-any-return]


def called(function: Callable[..., Any], case: Case, given: Mapping[str, Any]) -> Any:
    """Returns what `function` gives: all by name, or inputs by position where it knows them by other names."""
    try:
        return function(**given)
    except TypeError as refusal:
        inputs = [one.get("list") or one["name"] for one in declared(case.op)["inputs"]]
        others = {name: value for name, value in given.items() if name not in inputs}
        try:
            return function(*(given[name] for name in dict.fromkeys(inputs)), **others)
        except TypeError:
            raise refusal from None


def copied(given: Mapping[str, Any], dtype: torch.dtype | None = None) -> dict[str, Any]:
    """Returns arguments of their own, floating ones in `dtype` where one is named."""

    def copy(value: Any) -> Any:
        if isinstance(value, list):
            return [copy(one) for one in value]
        if not isinstance(value, torch.Tensor):
            return value
        new = value.detach().clone()
        return new.to(dtype) if dtype is not None and new.is_floating_point() else new

    return {name: copy(value) for name, value in given.items()}


def exported(case: Case) -> Callable[..., Any]:
    """Returns the exported function of a case."""
    return getattr(PACKAGE, TOLD["ops"][case.op]["function"])  # type: ignore[no-any-return]


def results(found: Any) -> list[Any]:
    """Returns the tensors that a call returned, in order, those of a dict in the order of their names; what is returned alone, whatever it is."""
    if isinstance(found, dict):
        found = [found[name] for name in sorted(found, key=str)]
    if not isinstance(found, list | tuple):
        return [found]
    return [one for part in found for one in results(part) if isinstance(one, torch.Tensor)]


def wide(case: Case, given: Mapping[str, Any]) -> list[Any] | None:
    """Returns the results in float64, or None where the definition has none."""
    given = copied(given, torch.float64)
    given = {name: torch.float64 if isinstance(value, torch.dtype) else value for name, value in given.items()}
    try:
        return results(called(reference(case), case, given))
    except (RuntimeError, TypeError, NotImplementedError):
        return None


def assert_close(got: torch.Tensor, own: torch.Tensor, exact: torch.Tensor | None, tolerance: list[float]) -> None:
    """Holds `got` to torch's own result within [atol, rtol]. Beyond that it may be as far from the result in float64 as twice
    torch's own worst error there, and one unit in the last place of the largest value: where torch itself rounds, no digits are asked for."""
    assert got.shape == own.shape, f"shape {tuple(got.shape)}, torch's is {tuple(own.shape)}"
    assert got.dtype == own.dtype, f"{got.dtype}, torch's is {own.dtype}"
    atol, rtol = tolerance
    try:
        torch.testing.assert_close(got, own, atol=atol, rtol=rtol, equal_nan=True)
    except AssertionError:
        if exact is None or not own.is_floating_point() or got.numel() == 0:
            raise
        exact = exact.double()
        bound_of_error = 2 * (own.double() - exact).abs().max() + torch.finfo(own.dtype).eps * exact.abs().max()
        if not bool((got.double() - exact).abs().max() <= bound_of_error):
            raise


def in_order(rows: torch.Tensor) -> torch.Tensor:
    """Returns rows along the first dim in ascending order."""
    if rows.dim() < 2:
        return rows.sort().values
    ordered = rows.reshape(rows.shape[0], -1)
    for column in reversed(range(ordered.shape[1])):
        ordered = ordered[ordered[:, column].sort(stable=True).indices]
    return ordered


def picked(source: torch.Tensor, index: torch.Tensor, dim: Any) -> torch.Tensor:
    """Returns the values of `source` to which `index` points along `dim`."""
    shape = index.shape
    if dim is None:
        source, index, dim = source.reshape(-1), index.reshape(-1), 0
    elif not isinstance(dim, int):
        source, dim = source.flatten(source.dim() - len(dim)), -1
        index = index.reshape(*source.shape[:-1], -1)
    elif index.dim() < source.dim():
        index = index.unsqueeze(dim)
    return source.gather(dim, index.long()).reshape(shape)


def compare(case: Case, given: Mapping[str, Any], got: list[Any], own: list[Any], exact: list[Any] | None) -> None:
    """Holds all results of a call to torch's, each as ops.yaml says."""
    declaration = declared(case.op)
    assert len(got) == len(own), f"{len(got)} results, torch has {len(own)}"
    outputs = declaration["outputs"] or [{}] * len(own)
    by_name = {how.get("name"): value for how, value in zip(outputs, own, strict=True)}
    for position, (how, one, other) in enumerate(zip(outputs, got, own, strict=True)):
        word = how.get("compare", "close")
        if word == "ignore" or not isinstance(other, torch.Tensor):
            continue
        if word in ("exact", "indices") or (word in ("close", "set", "rows") and not other.is_floating_point()):
            tolerance = [0.0, 0.0]
        else:
            tolerance = {**declaration["tolerances"], **how.get("tolerances", {})}[
                str(other.dtype).removeprefix("torch.")
            ]
        if word == "indices":
            source = by_name[how["of"]] if how["of"] in by_name else given[how["of"]]
            one, other = picked(source, one, how["dim"]), picked(source, other, how["dim"])
        elif word == "set":
            one, other = one.sort(dim=-1).values, other.sort(dim=-1).values
        elif word == "rows":
            one, other = in_order(one), in_order(other)
        assert_close(one, other, exact[position] if exact is not None and word == "close" else None, tolerance)


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_results_are_as_torch_has_them(case: Case) -> None:
    given = drawn(case)
    mine, own = copied(given), copied(given)
    got = results(exported(case)(**mine))
    expected = results(called(reference(case), case, own))
    compare(case, given, got, expected, wide(case, given))
    for name in given:
        if isinstance(given[name], torch.Tensor) and name not in declared(case.op)["overwrites"]:
            changed = own[name] if name in declared(case.op)["mutates"] else given[name]
            torch.testing.assert_close(mine[name], changed, equal_nan=True)


def leaves(case: Case, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Returns the inputs whose gradients are compared, which ask for them from now on: those that ops.yaml names, or all."""
    every = declared(case.op)["inputs"]
    inputs = [one["name"] for one in every if one.get("requires_grad")] or [one["name"] for one in every]
    named: dict[str, Any] = {}
    for name, value in given.items():
        # A member of a list is declared by its number.
        members = enumerate(value) if isinstance(value, list) else ()
        named.update({name: value, **{f"{name}.{number}": member for number, member in members}})
    # Autograd lets no leaf be changed.
    inputs = [name for name in inputs if name not in declared(case.op)["mutates"]]
    found = {name: value for name, value in named.items() if name in inputs and isinstance(value, torch.Tensor)}
    return {name: value.requires_grad_() for name, value in found.items() if value.is_floating_point()}


def gradients(function: Callable[..., Any], case: Case, given: Mapping[str, Any]) -> list[torch.Tensor]:
    """Returns the gradients of the inputs, for the same gradient of each result."""
    wanted = leaves(case, given)
    if not wanted:
        return []
    ends = [
        one for one in results(called(function, case, given)) if isinstance(one, torch.Tensor) and one.requires_grad
    ]
    flows = [
        torch.randn(end.shape, generator=torch.Generator().manual_seed(place), dtype=torch.float64).to(end)
        for place, end in enumerate(ends)
    ]
    found = torch.autograd.grad(ends, list(wanted.values()), flows, allow_unused=True)
    return [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(wanted.values(), found, strict=True)]


WITH_GRADIENTS = [case for case in cases() if declared(case.op)["backward"] and case.seed == 0]


@pytest.mark.parametrize("case", WITH_GRADIENTS, ids=lambda case: case.name)
def test_gradients_are_as_torch_has_them(case: Case) -> None:
    given = drawn(case)
    got = gradients(exported(case), case, copied(given))
    own = gradients(reference(case), case, copied(given))
    try:
        exact: list[Any] = gradients(reference(case), case, copied(given, torch.float64))
    except (RuntimeError, TypeError, NotImplementedError):
        exact = [None] * len(own)
    for one, other, true in zip(got, own, exact, strict=True):
        tolerance = declared(case.op)["tolerances"][str(other.dtype).removeprefix("torch.")]
        assert_close(one, other, true, tolerance)

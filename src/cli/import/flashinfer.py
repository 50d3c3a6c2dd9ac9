"""Tries the reference of a definition in the form of FlashInfer Trace, as `t2t import flashinfer` runs it in a child.

The question is JSON on standard input, with the parts of the definition; the answer is JSON on standard output: the values of numbers among the inputs, which inputs the reference changes, in
which form it returns its results; or `error` and `place`, why the definition cannot be imported. The process may write no large file and has a minute. It does not know ops.yaml.
"""

import ast
import inspect
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch

SECONDS = 60
LARGEST_FILE = 1 << 20
"""How many bytes the reference may write to a file: torch tries whether it can write where temporary files go."""
MOST = 1 << 28
"""How many elements all tensors have at most at which the reference is tried."""

Sizes = Mapping[str, int]


class Refused(Exception):
    """The definition cannot be imported: where, and why."""

    def __init__(self, place: str, error: str) -> None:
        super().__init__(error)
        self.place = place


def loaded(source: str, inputs: list[dict[str, Any]]) -> Callable[..., Any]:
    """Runs the source, and returns its `run`, which takes the inputs."""
    try:
        code = compile(source, "reference", "exec")
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise Refused(f"reference{line}", f"it is no Python: {getattr(error, 'msg', error)}") from error
    names: dict[str, Any] = {"__name__": "reference"}
    try:
        exec(code, names)
    except Exception as error:
        raise Refused("reference", f"it cannot be run: {said(error)}") from error
    run = names.get("run")
    if not callable(run):
        raise Refused("reference", "it has no function `run`")
    try:
        inspect.signature(run).bind(*[one["name"] for one in inputs])
    except TypeError as error:
        takes = ", ".join(one["name"] for one in inputs)
        raise Refused("reference", f"`run` does not take the inputs ({takes}): {error}") from error
    return run  # type: ignore[no-any-return]


def said(error: Exception) -> str:
    """Returns an exception in one line."""
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def numbers(run: Callable[..., Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Returns the value of each number among the inputs: what was given, else the default of `run`."""
    parameters = list(inspect.signature(run).parameters.values())
    values = {}
    for at, one in enumerate(asked["inputs"]):
        if one["shape"] is not None:
            continue
        name = one["name"]
        default = parameters[at].default if at < len(parameters) else None
        value = asked["scalars"].get(name, default)
        if type(value) not in (int, float, bool):
            raise Refused(f"inputs.{name}", "it is a number that has no value")
        if "float" in one["dtype"]:
            value = float(value)
        elif type(value) is float:
            raise Refused(f"inputs.{name}", f"it is {value}, and its dtype is {one['dtype']}")
        values[name] = value
    return values


def whole(asked: dict[str, Any], axes: Sizes, place: str) -> dict[str, int]:
    """Returns the lengths of all axes, and refuses those at which a constraint does not hold."""
    lengths = {**asked["fixed"], **axes}
    for axis, expression in asked["derived"].items():
        if axis not in lengths:
            lengths[axis] = int(eval(expression, {"__builtins__": {}}, lengths))
    inputs = {one["name"] for one in asked["inputs"]}
    for number, constraint in enumerate(asked["constraints"] or []):
        of = f"constraints[{number}]"
        try:
            tree = ast.parse(constraint, mode="eval")
        except SyntaxError as error:
            raise Refused(of, f"`{constraint}` is no expression of Python") from error
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if says_offsets(tree.body, asked["offsets"]):
            continue
        if values := sorted(names & inputs):
            raise Refused(of, f"`{constraint}` is about the values of `{values[0]}`, which t2t draws without it")
        if unknown := sorted(names - set(lengths)):
            raise Refused(of, f"`{constraint}` names `{unknown[0]}`, which is no axis")
        try:
            holds = eval(constraint, {"__builtins__": {}}, lengths)
        except Exception as error:
            raise Refused(of, f"`{constraint}`: {said(error)}") from error
        if not holds:
            told = ", ".join(f"{axis} {length}" for axis, length in axes.items())
            raise Refused(place if ":" in place else of, f"`{constraint}` does not hold at {told}")
    if short := [axis for axis, length in lengths.items() if length < 1]:
        raise Refused(f"axes.{short[0]}", f"it is {lengths[short[0]]} long at {dict(axes)}")
    return lengths


def says_offsets(said: ast.expr, offsets: dict[str, str]) -> bool:
    """Tells whether a constraint says which axis the last of an input's offsets is, and nothing else: they are drawn so."""
    text = ast.unparse(said)
    lasts = [(f"{name}[-1]{item}", axis) for name, axis in offsets.items() for item in ("", ".item()")]
    return any(text in (f"{axis} == {last}", f"{last} == {axis}") for last, axis in lasts)


def elements(shape: list[str], lengths: Sizes) -> int:
    count = 1
    for axis in shape:
        count *= lengths[axis]
    return count


def drawn(one: dict[str, Any], lengths: Sizes, last: int | None, generator: torch.Generator) -> torch.Tensor:
    """Draws a tensor as the op's cases will: normal values, or integers 0 and 1; where the `last` one is told, offsets from 0 to that."""
    shape, dtype = [lengths[axis] for axis in one["shape"]], getattr(torch, one["dtype"])
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    if last is None:
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    values = torch.randint(0, last + 1, shape, generator=generator).sort().values
    values[-1:], values[:1] = last, 0
    return values.to(dtype)


def results(returned: Any, outputs: list[dict[str, Any]]) -> list[Any]:
    """Returns what `run` returned, in the order of the definition."""
    if isinstance(returned, dict):
        if lacking := [one["name"] for one in outputs if one["name"] not in returned]:
            raise Refused(f"outputs.{lacking[0]}", "`run` returns a mapping without it")
        return [returned[one["name"]] for one in outputs]
    found = list(returned) if isinstance(returned, tuple | list) else [returned]
    if len(found) != len(outputs):
        raise Refused("outputs", f"`run` returns {len(found)} of {len(outputs)}")
    return found


def form(returned: Any) -> str:
    """Returns in which form the results came, as `Returns` of the caller names it."""
    if isinstance(returned, dict):
        return "by-name"
    if isinstance(returned, tuple | list) and len(returned) == 1:
        return "alone"
    return "list" if isinstance(returned, list) else "plain"


def fit(found: list[Any], outputs: list[dict[str, Any]], lengths: Sizes) -> None:
    """Refuses results that are not as the definition says."""
    for value, one in zip(found, outputs, strict=True):
        place = f"outputs.{one['name']}"
        if not isinstance(value, torch.Tensor):
            raise Refused(place, f"`run` returns {type(value).__name__} for it, no tensor")
        shape = [lengths[axis] for axis in one["shape"]]
        if list(value.shape) != shape:
            raise Refused(place, f"`run` returns the shape {list(value.shape)}, and the definition says {shape}")
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype != one["dtype"]:
            raise Refused(place, f"`run` returns {dtype}, and the definition says {one['dtype']}")


def tried(asked: dict[str, Any]) -> dict[str, Any]:
    """Returns what the reference does at the smallest size."""
    run = loaded(asked["reference"], asked["inputs"])
    scalars = numbers(run, asked)
    for size in asked["sizes"]:
        whole(asked, size["axes"], size["place"])
    lengths = whole(asked, asked["trial"], "")
    tensors = [one for one in asked["inputs"] if one["shape"] is not None]
    count = sum(elements(one["shape"], lengths) for one in [*tensors, *asked["outputs"]])
    if count > MOST:
        raise Refused("axes", f"its tensors have {count} elements at the smallest size: too many to try the reference")
    generator = torch.Generator().manual_seed(42)
    lasts = {name: lengths[axis] for name, axis in asked["offsets"].items()}
    before = {one["name"]: drawn(one, lengths, lasts.get(one["name"]), generator) for one in tensors}

    def call(seed: int) -> tuple[Any, dict[str, torch.Tensor]]:
        inputs = {name: value.clone() for name, value in before.items()}
        torch.manual_seed(seed)
        with torch.no_grad():
            try:
                return run(*({**inputs, **scalars}[one["name"]] for one in asked["inputs"])), inputs
            except Exception as error:
                raise Refused("reference", f"`run` cannot be tried on the CPU: {said(error)}") from error

    returned, after = call(1)
    found = results(returned, asked["outputs"])
    fit(found, asked["outputs"], lengths)
    again = results(call(2)[0], asked["outputs"])
    if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(found, again, strict=True)):
        raise Refused("reference", "`run` draws random numbers")
    return {
        "scalars": scalars,
        "mutates": [name for name, value in before.items() if not torch.equal(value, after[name])],
        "returns": form(returned),
    }


def main() -> None:
    asked = json.load(sys.stdin)
    # What the reference prints is no answer.
    out = os.dup(1)
    os.dup2(2, 1)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    torch.set_num_threads(1)
    try:
        answer = tried(asked)
    except Refused as refused:
        answer = {"error": str(refused), "place": refused.place}
    os.write(out, json.dumps(answer).encode())


main()

"""Says what problems in KernelBench's form ask for, as `t2t import kernelbench` runs it in a child: shapes, weights, sizes.

The paths of the files are one JSON list on standard input; for each a line of JSON with its description, or with `error`, follows on standard output.
A problem runs in a process of its own, which may write no large file and has a minute. It does not know ops.yaml.
"""

import ast
import inspect
import itertools
import json
import os
import re
import resource
import signal
import symtable
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

SECONDS = 60
LARGEST_FILE = 1 << 20
"""How many bytes a problem may write to a file: torch tries whether it can write where temporary files go."""
STAYS = 16
"""Constants up to this stay as they are: windows, strides, groups, heads."""
SMALLEST = 4
"""No constant gets smaller than this."""
LIMITS = {"small": 1 << 12, "medium": 1 << 18}
"""How many elements the largest tensor of a size has at most."""
NEEDED = ("Model", "get_inputs", "get_init_inputs")


class Refused(Exception):
    """The problem cannot be imported; the message says why."""


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """Yields the names at the top of the module that stand for an integer, also of `height, width = 32, 32`, each with the integer's node."""
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        is_several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        pairs = zip(target.elts, value.elts, strict=False) if is_several else [(target, value)]  # type: ignore[attr-defined]
        for name, number in pairs:
            if isinstance(name, ast.Name) and isinstance(number, ast.Constant) and type(number.value) is int:
                yield name.id, number


class Problem:
    """One file: its tree, and its constants."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            source = file.read()
        self.tree = ast.parse(source)
        self.scopes = symtable.symtable(source, path, "exec").get_children()
        self.path = path
        self.constants = {name: int(value.value) for name, value in assigned(self.tree)}
        found = {node.name for node in self.tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        if lacking := [name for name in NEEDED if name not in found]:
            raise Refused(f"it has no `{lacking[0]}` at the top of the module")

    def used(self) -> set[str]:
        """Returns the names of the module that its classes and functions use, but for those that make inputs."""
        names: set[str] = set()
        waiting = [scope for scope in self.scopes if scope.get_name() not in NEEDED[1:]]
        while waiting:
            scope = waiting.pop()
            waiting += scope.get_children()
            names |= {one.get_name() for one in scope.get_symbols() if one.is_global() and one.is_referenced()}
        return names

    def module(self, constants: Mapping[str, int]) -> dict[str, Any]:
        """Runs the file with other constants."""
        tree = ast.parse(ast.unparse(self.tree))
        for name, value in assigned(tree):
            value.value = constants[name]
        names: dict[str, Any] = {"__name__": "problem", "__file__": self.path}
        exec(compile(ast.fix_missing_locations(tree), self.path, "exec"), names)
        return names


class Made:
    """What a problem makes with some constants on a device: its model, inputs and arguments of the constructor."""

    def __init__(self, problem: Problem, constants: Mapping[str, int], device: str) -> None:
        self.constants = constants
        names = problem.module(constants)
        torch.manual_seed(42)
        with torch.device(device):
            self.globals = names
            self.init = named_init(names["Model"], names["get_init_inputs"]())
            self.model = names["Model"](**self.init)
            self.inputs = names["get_inputs"]()
        if not isinstance(self.model, torch.nn.Module):
            raise Refused("`Model` is no torch.nn.Module")
        if not isinstance(self.inputs, list | tuple) or not self.inputs:
            raise Refused("`get_inputs` does not return a list of tensors")
        parameters = list(inspect.signature(self.model.forward).parameters)
        if len(parameters) < len(self.inputs):
            raise Refused("`get_inputs` returns more than `forward` takes")
        self.tensors: dict[str, torch.Tensor] = {}
        for name, value in zip(parameters, self.inputs, strict=False):
            if not isinstance(value, torch.Tensor):
                raise Refused(f"`{name}` of `get_inputs` is no tensor but {type(value).__name__}")
            if not value.dim():
                raise Refused(f"`{name}` of `get_inputs` has no dimension")
            self.tensors[name] = value
        self.inputs_by_name = dict(self.tensors)
        self.weights: dict[str, str] = {}
        for full, value in itertools.chain(self.model.named_parameters(), self.model.named_buffers()):
            if not value.dim():
                continue
            name = full.replace(".", "_")
            name = f"weight_{name}" if name in self.tensors else name
            self.weights[name] = full
            self.tensors[name] = value.detach()

    def forward(self) -> Any:
        with torch.no_grad():
            return self.model(*self.inputs)

    def largest(self) -> int:
        return max(value.numel() for value in self.tensors.values())


def named_init(class_: Any, values: Any) -> dict[str, Any]:
    """Returns the arguments of the constructor by name."""
    if isinstance(values, dict):
        return values
    if not values:
        return {}
    if len(values) == 2 and isinstance(values[0], list) and isinstance(values[1], dict):
        values, by_name = values
    else:
        by_name = {}
    try:
        bound = inspect.signature(class_).bind(*values, **by_name)
    except TypeError as error:
        raise Refused(f"`get_init_inputs` does not fit the constructor: {error}") from error
    if any(kind.kind in (kind.VAR_POSITIONAL, kind.VAR_KEYWORD) for kind in bound.signature.parameters.values()):
        raise Refused("the constructor of `Model` takes `*` arguments")
    for name, value in bound.arguments.items():
        if value is None and bound.signature.parameters[name].default is not None:
            raise Refused(f"`{name}` of the constructor is None, which ops.yaml cannot hold")
    return {name: value for name, value in bound.arguments.items() if value is not None}


def attempt(problem: Problem, constants: Mapping[str, int]) -> Made | None:
    """Returns what the constants make, on tensors without values; None where they make nothing that runs."""
    try:
        made = Made(problem, constants, "meta")
        made.forward()
    except Exception:
        return None
    return made


def scaled(problem: Problem, limit: int) -> Made | None:
    """Returns the problem with its constants divided by the smallest power of two with which no tensor is larger than `limit` and it still runs."""
    for power in range(24):
        smaller = {
            name: value if value <= STAYS else max(value >> power, SMALLEST)
            for name, value in problem.constants.items()
        }
        made = attempt(problem, smaller)
        if made is not None and made.largest() <= limit:
            return made
    return None


def expression(lengths: list[int], constants: list[Mapping[str, int]], dims: list[str]) -> str | int | None:
    """Returns the length as an expression of dims that holds for all of `constants`; None where none of the usual ones does."""
    if len(set(lengths)) == 1:
        return lengths[0]
    values = {name: [chosen[name] for chosen in constants] for name in dims}
    for name, value in values.items():
        if value == lengths:
            return name
    for name, value in values.items():
        first = lengths[0] - value[0]
        times, over = lengths[0] // value[0], value[0] // lengths[0] if lengths[0] else 0
        if [one + first for one in value] == lengths:
            return f"{name} + {first}" if first > 0 else f"{name} - {-first}"
        if times > 1 and [one * times for one in value] == lengths:
            return f"{times}*{name}"
        if over > 1 and [one // over for one in value] == lengths:
            return f"{name} // {over}"
    for (one, left), (other, right) in itertools.combinations(values.items(), 2):
        for sign, of in (("+", int.__add__), ("*", int.__mul__)):
            if [of(a, b) for a, b in zip(left, right, strict=True)] == lengths:
                return f"{one} {sign} {other}"
    return None


def described(values: list[Any], constants: list[Mapping[str, int]], dims: list[str], of: str) -> Any:
    """Returns a value of the constructor, integers in it as expressions of dims."""
    first = values[0]
    if type(first) is int:
        found = expression(values, constants, dims)
        if found is None:
            raise Refused(f"{of} ({first}) is no simple expression of the module's constants")
        return found
    if isinstance(first, list | tuple):
        if len({len(value) for value in values}) > 1:
            raise Refused(f"{of} has another number of values at other sizes")
        return [described([value[at] for value in values], constants, dims, of) for at in range(len(first))]
    if first is None or isinstance(first, bool | float | str):
        if isinstance(first, str) and first in dims:
            raise Refused(f"{of} is a text that is also the name of a constant")
        return first
    raise Refused(f"{of} is {type(first).__name__}, which ops.yaml cannot hold")


def drawn(value: torch.Tensor, is_weight: bool) -> Any:
    """Returns how values like these are drawn, as ops.yaml says it; None for the normal distribution."""
    if value.dtype == torch.bool:
        return {"mask": 0.5}
    if not value.dtype.is_floating_point:
        return {"randint": [0, 2]}
    low, high = float(value.min()), float(value.max())
    if is_weight and low == high == 1:
        return {"uniform": [0.5, 1.5]}
    if is_weight and low < high:
        return {"normal": [0.0, float(f"{float(value.std()):.2g}")]} if value.numel() > 1 else None
    return "uniform" if low >= 0 and high <= 1 and low < high else None


def told(path: str) -> dict[str, Any]:
    """Returns what the problem asks for."""
    problem = Problem(path)
    whole = Made(problem, problem.constants, "meta")
    try:
        whole.forward()
    except Exception as error:
        why = str(error).strip().split("\n")[0]
        raise Refused(
            f"its `forward` cannot be tried on tensors without values: {type(error).__name__}: {why}"
        ) from error
    sizes = {name: scaled(problem, limit) for name, limit in LIMITS.items()}
    small = sizes["small"]
    if small is None:
        raise Refused("no power of two divides its constants to sizes small enough for a check")
    others = [
        attempt(problem, {**small.constants, name: 2 * value})
        for name, value in small.constants.items()
        if problem.constants[name] > STAYS
    ]
    all_made = [one for one in (whole, *sizes.values(), *others) if one is not None]
    if any(list(one.tensors) != list(whole.tensors) for one in all_made):
        raise Refused("it has other weights at other sizes")
    constants = [one.constants for one in all_made]
    reached = [name for name, value in problem.constants.items() if value > STAYS]
    shapes: dict[str, list[Any]] = {}
    for name in whole.tensors:
        lengths = [list(one.tensors[name].shape) for one in all_made]
        shapes[name] = described(lengths, constants, reached, f"a length of `{name}`")
    dims = [name for name in reached if any(name in re.findall(r"\w+", str(shape)) for shape in shapes.values())]
    kwargs = {
        name: described([one.init[name] for one in all_made], constants, dims, f"`{name}` of the constructor")
        for name in whole.init
    }
    real = Made(problem, small.constants, "cpu")
    before = {name: value.clone() for name, value in real.tensors.items()}
    once = real.forward()
    mutated = [name for name, value in real.tensors.items() if not torch.equal(before[name], value)]
    again = Made(problem, small.constants, "cpu")
    torch.manual_seed(7)
    if not isinstance(once, torch.Tensor | list | tuple):
        raise Refused(f"`forward` returns {type(once).__name__}")
    if isinstance(once, torch.Tensor) and not torch.equal(once.nan_to_num(), again.forward().nan_to_num()):
        raise Refused("its `forward` draws random numbers")
    changed = {
        name: value
        for name, value in real.globals.items()
        if isinstance(value, int | float | list | tuple) and whole.globals.get(name) != value
    }
    if fixed := sorted(problem.used() & set(changed)):
        raise Refused(f"its code uses the constant `{fixed[0]}`, so it is right at one size only")
    inputs = []
    for name, value in before.items():
        follows = value.dtype == torch.float32
        dtype = None if follows else str(value.dtype).removeprefix("torch.")
        init = drawn(value, name in real.weights)
        inputs.append({"name": name, "shape": shapes[name], "dtype": dtype, "init": init})
    measured = {"small": sizes["small"], "medium": sizes["medium"], "large": whole}
    return {
        "inputs": inputs,
        "weights": real.weights,
        "init": kwargs,
        "mutates": mutated,
        "returns": list(real.inputs_by_name),
        "small": changed,
        "sizes": {name: {dim: one.constants[dim] for dim in dims} for name, one in measured.items() if one is not None},
    }


def in_child(path: str, out: int) -> None:
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    os.dup2(2, 1)
    try:
        answer = told(path)
    except Refused as error:
        answer = {"error": str(error)}
    except SyntaxError as error:
        answer = {"error": f"it is no Python: {error.msg}", "line": error.lineno}
    except Exception as error:
        answer = {"error": f"it raises {type(error).__name__}: {error}".splitlines()[0]}
    os.write(out, json.dumps(answer).encode())


def main() -> None:
    torch.set_num_threads(1)
    for path in json.load(sys.stdin):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                in_child(path, writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            answer = file.read()
        os.waitpid(child, 0)
        print(answer.decode() or '{"error": "its process ended without an answer, or took too long"}', flush=True)


main()

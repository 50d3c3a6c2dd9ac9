"""The first child of a check whose op has a `cases.py`: lists the cases that do not depend on the kernel, and keeps the
inputs that cannot be made again.

Declared and edge cases are made again from their names by whoever needs them, and without a `cases.py` there are no
others, and no such child. It never imports kernel code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from t2t_harness.cases import cases, declared_inputs, prepared
from t2t_harness.faults import failure
from t2t_harness.op import declaration as declared
from t2t_harness.sources import finder, loading

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import CheckRequest, Declaration, Evidence, Failure, Reply, Verdict


def prepare(request: CheckRequest) -> Reply:
    """Returns the reply; leaves `cases.json`, and `inputs/*.safetensors` for hook cases, in the scratch folder.

    Rejected with class `unfit-cases` and the documents of a check where the op's `cases.py` fails.
    """
    declaration, scratch = request["op"], Path(request["scratch"])
    (scratch / "inputs").mkdir(parents=True, exist_ok=True)
    try:
        hooks = [] if declaration["cases"] is None else hook_cases(declaration, request["root"], scratch)
    except Exception as error:
        message = f"{declaration['cases']}: {failure.describe(error)}"
        return _rejected(failure.failure("unfit-cases", message, root=request["root"], error=error))
    facts = [case.facts() for case in cases.unique([*prepared.own_cases(request), *hooks])]
    (scratch / "cases.json").write_text(json.dumps({"cases": facts}), encoding="utf-8")
    return {"outcome": "passed", "class": None, "cites": False, "documents": {}, "files": {}}


def hook_cases(declaration: Declaration, root: str, scratch: Path) -> list[cases.Case]:
    """Returns the cases that the op's `cases.py` makes, their inputs stored below `scratch`.

    The file defines `cases(spec, generator)`: `spec` is the declaration, `generator` a seeded CPU generator, and each
    case any object with `name`, `inputs` (name → CPU tensor, in declared order) and, if it likes, `kwargs`. A file that only
    says what must hold of a random op needs none. Raises what the file raises, and ValueError for a case of another form.
    """
    file = str(declaration["cases"])
    finder.install_finder(root)
    reference = declaration.get("reference")
    loading.refuse_variants([file, None if reference is None else reference["file"]])
    module, told = loading.load_file(root, file), declaration.get("random")
    if not hasattr(module, "cases"):
        if told is not None and told["kind"] == "judged":
            # It says what must hold, and has no inputs of its own.
            return []
        raise ValueError("it has no function `cases(spec, generator)`, which yields cases with `name` and `inputs`")
    made = module.cases(json.loads(json.dumps(declaration)), declared_inputs.generator_of(declaration["name"], "hook"))
    if not isinstance(made, Iterable):
        raise ValueError("`cases` returns no cases")
    return [stored(declaration, position, case, scratch) for position, case in enumerate(made)]


class Made(Protocol):
    """A case as `cases.py` makes it. It may have `kwargs`, too."""

    name: str
    inputs: Mapping[str, torch.Tensor | Sequence[torch.Tensor] | None]


def stored(declaration: Declaration, position: int, made: Made, scratch: Path) -> cases.Case:
    """Returns the hook case `made` as a Case, its inputs written to `inputs/hook-POSITION.safetensors`."""
    from safetensors.torch import save_file

    name, tensors = f"hook/{made.name}", flat(made.inputs)
    expected = [given["name"] for given in declared.tensors(declaration)]
    optional = {given["name"] for given in declared.tensors(declaration) if given.get("optional")}
    if not set(expected) - optional <= set(tensors) <= set(expected):
        raise ValueError(f"case `{made.name}` has the inputs {sorted(tensors)}, the op has {sorted(expected)}")
    tensors = {name: tensors[name].detach() for name in expected if name in tensors}
    file = f"inputs/hook-{position}.safetensors"
    save_file({name: value.clone().contiguous() for name, value in tensors.items()}, str(scratch / file))
    kwargs = getattr(made, "kwargs", None)
    return cases.Case(
        name=name,
        kind="hook",
        dtype=dtype_name(tensors, declaration["dtypes"][0]),
        binding=binding_of(declaration, tensors),
        kwargs=None if kwargs is None else {name: plain(value) for name, value in kwargs.items()},
        file=file,
        strides={name: own_strides(value) for name, value in tensors.items()},
        absent=tuple(name for name in expected if name not in tensors),
    )


def flat(given: Mapping[str, torch.Tensor | Sequence[torch.Tensor] | None]) -> dict[str, torch.Tensor]:
    """Returns the tensors of a hook case by name: members of a list as `tensors.0`, without what is None."""
    found: dict[str, torch.Tensor] = {}
    for name, value in given.items():
        if isinstance(value, Sequence):
            found |= {f"{name}.{position}": member for position, member in enumerate(value)}
        elif value is not None:
            found[name] = value
    return found


def binding_of(declaration: Declaration, tensors: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Returns the length of each dim that the shapes of `tensors` agree with the declaration on."""
    binding: dict[str, int] = {}
    for given in declared.tensors(declaration):
        if given["name"] not in tensors:
            continue
        shape = tensors[given["name"]].shape
        if len(shape) == len(given["shape"]):
            pairs = zip(given["shape"], shape, strict=True)
            binding |= {
                dim: int(length)
                for dim, length in pairs
                if isinstance(dim, str) and dim.isidentifier() and dim not in binding
            }
    return binding


def dtype_name(tensors: Mapping[str, torch.Tensor], default: str) -> str:
    """Returns the dtype of the first floating tensor, by name, or `default`."""
    floating = (value.dtype for value in tensors.values() if value.dtype.is_floating_point)
    return str(next(floating, default)).removeprefix("torch.")


def own_strides(value: torch.Tensor) -> list[int]:
    """Returns the strides of `value`, or dense ones where elements of it share memory."""
    expanded = any(stride == 0 and length > 1 for stride, length in zip(value.stride(), value.shape, strict=True))
    return list(value.contiguous().stride() if expanded else value.stride())


def plain(value: object) -> object:
    """Returns a keyword argument as JSON can hold it; a dtype becomes its name, as in ops.yaml."""
    import torch

    return str(value) if isinstance(value, torch.dtype) else value


def _rejected(record: Failure) -> Reply:
    # The rest of the evidence is what a check that has not begun has: nothing.
    verdict: Verdict = {"verdict": "rejected", "class": record["class"], "reason": None, "cases": {}}
    return {
        "outcome": "rejected",
        "class": record["class"],
        "cites": failure.cites(record),
        "documents": {"verdict": verdict, "evidence": cast("Evidence", {"cases": [], "failure": record})},
        "files": {},
    }

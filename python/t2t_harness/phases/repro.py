"""Writes one case of a check as a Python file that runs it outside of t2t, with its inputs and what torch makes of them
beside it.

It runs no kernel code: how the wrapper is called is read from its source. Its reply is the document `repro`; the files lie
in scratch.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.cases import called_with, cases, inputs, listing, naming, probe_corners
from t2t_harness.cuda import t2t_cuda
from t2t_harness.judging import autograd, comparing, corners, oracle, pointing, rules, steps, tolerance
from t2t_harness.op import declaration as declared
from t2t_harness.op import module_state, operation, results
from t2t_harness.phases import repro_operator, repro_picture, repro_script
from t2t_harness.sources import loading, methods

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, Methods, Reply, Repro, ReproRequest

TENSORS = "case.safetensors"
"""The file of the inputs, `NAME` or `NAME.0`, of the upstream gradients, `upstream.0`, and of `expected.NAME`."""

SCRIPT = "repro.py"


def write(request: ReproRequest) -> Reply:
    """Returns the reply with the document `repro`: the names of the files, of the case and of all cases.

    `case` is the name of a case, or null for the first; `constants` are those of the kernel's first launch, around which
    block edges lie; `reached` is what the candidate told of cases that reach what measured sizes launch; `bindings` are the lengths that cases had, by name;
    `prepared` is the folder of the op's own cases, or null.
    """
    listed = listed_cases(request)
    names = [case.name for case in listed]
    case = next((case for case in listed if request["case"] in (None, case.name)), None)
    document: Repro = {"case": None if case is None else case.name, "cases": names, "refused": None}
    files: dict[str, str] = {}
    if case is not None:
        try:
            files = written(request, case)
        except oracle.Refused as refusal:
            document["refused"] = str(refusal)
    return {
        "outcome": "passed",
        "class": None,
        "cites": False,
        "documents": {"repro": document},
        "files": files,
    }


def listed_cases(request: ReproRequest) -> list[cases.Case]:
    """Returns all cases of the check, in its order, with the lengths that they had in the last one."""
    constants = {str(name): int(value) for name, value in request["constants"].items()}
    listed = listing.listed(request, request["prepared"], constants, request.get("least"), request["reached"])
    return [cases.as_told(request["op"], case, request["bindings"].get(case.name)) for case in listed]


def written(request: ReproRequest, case: cases.Case) -> dict[str, str]:
    """Writes the files of `case` and returns their names by what they are. Raises oracle.Refused where torch refuses it."""
    from safetensors.torch import save_file

    scratch, declaration = Path(request["scratch"]), request["op"]
    device = "cuda" if request["lane"] == "cuda" else "cpu"
    given = inputs.inputs_of(declaration, case, device, request["prepared"])
    weights = drawn_weights(declaration, case)
    case = replace(case, weights=tuple(weights))
    right = oracle.reference(declaration, case, given)
    tensors = {name: tensor for name, value in given.items() for name, tensor in flat(name, value)}
    flowing = upstream(declaration, case, given)
    if case.is_again:
        first = inputs.make_inputs(declaration, cases.first(case), device)
        tensors |= {f"first.{name}": value for name, value in first.items()}
    tensors |= {f"upstream.{position}": value for position, value in flowing.items()}
    tensors |= {f"weights.{name}": value for name, value in weights.items()}
    tensors |= {f"expected.{name}": value for name, value in right.plain.items()}
    tensors |= {f"began.{name.removeprefix(module_state.BEGAN)}": value for name, value in right.began.items()}
    tensors |= around(declaration, case, given, right, device)
    places = pointed(declaration, case, given, right, device)
    for name, found in places.items():
        tensors |= {f"plain.{name}": found.plain, f"wide.{name}": found.wide, f"allowed.{name}": found.allowed}
    dense = {name: stored(value) for name, value in tensors.items()}
    save_file(dense, str(scratch / TENSORS))
    how = compared(declaration, case, right) | {
        name: ("first" if found.is_first else "pointed", None, found.dim, 0.0, 0.0, None)
        for name, found in places.items()
    }
    (scratch / SCRIPT).write_text(script(request, case, given, right, flowing, how), encoding="utf-8")
    files = {SCRIPT: SCRIPT, TENSORS: TENSORS}
    # What the script imports beside the wrapper, and no package has.
    beside = [repro_picture.__file__, *([t2t_cuda.__file__] if request["variant"].get("cuda") is not None else [])]
    for module in map(Path, beside):
        shutil.copyfile(module, scratch / module.name)
        files[module.name] = module.name
    return files


def drawn_weights(declaration: Declaration, case: cases.Case) -> dict[str, torch.Tensor]:
    """Returns the parameters and buffers of a module that have other values in `case` than its constructor gave them, by name."""
    import torch

    function = operation.ready(declaration, case.binding, case.dtype) if case.weights else None
    if not isinstance(function, torch.nn.Module):
        return {}
    names = list(module_state.named(function))
    module_state.draw(function, names, case.name)
    return {name: value.detach() for name, value in module_state.named(function).items()}


def around(
    declaration: Declaration,
    case: cases.Case,
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
    device: str,
) -> dict[str, torch.Tensor]:
    """Returns `oracle.NAME` and `bound.NAME` for the floating results that are compared by value: what is right by the check's second rule, too."""
    if right.oracle is None:
        return {}
    is_decided = case.kind != "edge" or case.values in rules.DECIDING
    slack = {} if is_decided else oracle.slack(declaration, case, given, right, device) or {}
    found: dict[str, torch.Tensor] = {}
    for name, value in right.plain.items():
        is_close = comparing.output(declaration, name)["compare"] == "close"
        is_close &= not steps.are_counted(value.dtype)
        if is_close and name in right.oracle and (value.dtype.is_floating_point or value.dtype.is_complex):
            pair = tolerance.around_oracle(value, right.oracle[name], slack.get(name))
            found[f"oracle.{name}"], found[f"bound.{name}"] = pair
    return found


def compared(declaration: Declaration, case: cases.Case, right: oracle.Reference) -> dict[str, tuple[object, ...]]:
    """Returns for each result how it is compared: the word, what indices are of, an input by name or a result by position, along which dim, the absolute and relative tolerance, and what torch has where any value is right."""
    named = [one["name"] for one in declaration.get("outputs") or ()]
    found: dict[str, tuple[object, ...]] = {}
    for name in right.plain:
        how = comparing.output(declaration, name)
        if probe_corners.is_corner(case):
            found[name] = (corners.RULE if corners.is_gradient(name) else "ignore", None, None, 0.0, 0.0, None)
            continue
        of = str(named.index(how["of"])) if how["of"] in named else how["of"]
        dim = how["dim"] if how["dim"] is None or isinstance(how["dim"], int) else tuple(how["dim"])
        wide = None if right.oracle is None else right.oracle.get(name)
        allowed = comparing.allowed_of(declaration, case.dtype, name, right.plain[name], wide)
        found[name] = (how["compare"], of, dim, *allowed, how.get("unset"))
    return found


def pointed(
    declaration: Declaration,
    case: cases.Case,
    given: Mapping[str, torch.Tensor],
    right: oracle.Reference,
    device: str,
) -> dict[str, comparing.Into]:
    """Returns what results point into of which nothing is declared, by name."""
    found = {name: pointing.into(declaration, case, name, given, value, device) for name, value in right.plain.items()}
    return {name: into for name, into in found.items() if into is not None}


def flat(name: str, value: object) -> list[tuple[str, torch.Tensor]]:
    """Returns the tensors of an input by name: one, those of a list, or none."""
    import torch

    if isinstance(value, (list, tuple)):
        return [(f"{name}.{position}", item) for position, item in enumerate(value)]
    return [(name, value)] if isinstance(value, torch.Tensor) else []


def stored(value: torch.Tensor) -> torch.Tensor:
    """Returns the values of `value` as a dense tensor of the CPU that shares no memory."""
    import torch

    if value.dtype.is_complex:
        value = torch.view_as_real(value.resolve_conj())
    return value.detach().cpu().clone(memory_format=torch.contiguous_format)


def upstream(declaration: Declaration, case: cases.Case, given: Mapping[str, torch.Tensor]) -> dict[int, torch.Tensor]:
    """Returns the gradients that flow into the outputs, by position; none where the op is not checked backward."""
    import torch

    if not declaration["backward"]:
        return {}
    leaves = autograd.with_gradients(oracle.copies(given), cases.asking(declaration, case), declaration["mutates"])
    device = next((value.device.type for value in given.values()), "cpu")
    function = oracle.ready(declaration, case, device)
    with torch.enable_grad():
        made = operation.call(function, declaration, leaves, called_with.kwargs_of(declaration, case))
    return autograd.upstream_gradients(autograd.ends(results.listed(made), leaves), case)


def script(
    request: ReproRequest,
    case: cases.Case,
    given: Mapping[str, object],
    right: oracle.Reference,
    flowing: Mapping[int, torch.Tensor],
    how: Mapping[str, tuple[object, ...]],
) -> str:
    """Returns the text of the Python file; `flowing` are the gradients that flow into the outputs, by position, and `how` says how each result is compared."""
    declaration, variant = request["op"], request["variant"]
    kwargs = called_with.kwargs_of(declaration, case)
    arguments = [f"{name} = {rebuilt(name, value)}" for name, value in given.items()]
    arguments += [f"{name} = {value!r}" for name, value in kwargs.items()]
    # A call that ops.yaml writes out names them all the same.
    arguments += [f"{name} = None" for name in case.absent if variant.get("call")]
    backward = oracle.is_recorded(declaration, case)
    asks = cases.asking(declaration, case)
    leaves = [name for name, value in given.items() if is_leaf(value) and (not asks or name in asks)]
    if backward:
        arguments += [line for name in leaves for line in recorded(name, is_changed=name in declaration["mutates"])]
    told = naming.given(case, given, kwargs)
    names = {name: oracle.result_name(declaration, right, name) for name in right.plain}
    reference = declaration.get("reference")
    init = case.init if case.init is not None else {} if reference is None else reference["init"]
    operator = repro_operator.of(request)
    tensors = [name for name, value in given.items() if hasattr(value, "stride")]
    others = [name for name in kwargs if name not in given]
    call = (
        call_of(request, list(given), others)
        if operator is None
        else repro_operator.call_of(
            request, *operator, others, tensors if backward and leaves else [], several=right.form != results.TENSOR
        )
    )
    return repro_script.TEMPLATE.format(
        target=f"{declaration['name']}/{variant['name']}",
        case=case.name,
        told=told.replace("\\", "/").replace('"', "'"),
        interpret="" if request["lane"] == "cuda" else '\nos.environ["TRITON_INTERPRET"] = "1"',
        untimed="" if request["lane"] == "cuda" else repro_script.UNTIMED,
        lacking="" if request["lane"] == "cuda" else repro_script.LACKING,
        root=json.dumps(str(request["root"])),
        module=json.dumps(variant.get("module") or loading.module_name(variant["file"])),
        entry=json.dumps(variant["entry"]),
        made=made_of(operator),
        seed=operation.SEED,
        init=repr(declared.bind_kwargs(init, case.binding)),
        dtype=f"torch.{case.dtype}" if case.dtype in cases.FLOATING else None,
        device=json.dumps("cuda" if request["lane"] == "cuda" else "cpu"),
        tensors=json.dumps(TENSORS),
        picture=Path(repro_picture.__file__).stem,
        constants={str(name): int(value) for name, value in request["constants"].items()},
        compared=dict(how),
        sources=", ".join(f'"{name}": {name}' for name in tensors),
        results={name: words or "the output" for name, words in names.items()},
        arguments="\n".join(f"    {line}" for line in arguments),
        passes="" if operator is None or not backward else repro_operator.PASSES,
        call=call,
        before=("        entry.eval()\n" if case.evaluates else "")
        + (repro_script.BEGUN.format(names=", ".join(tensors), call=call) if case.is_again else ""),
        sampled=module_state.SAMPLED,
        recorded="torch.no_grad()" if case.asks == cases.NOBODY else "contextlib.nullcontext()",
        mutated=[name for name in tensors if name in declared.changed(declaration)],
        after_values=", ".join(
            f'"{name}": {name.removeprefix("after.")}' for name in right.plain if name.startswith("after.")
        ),
        changed=repro_script.CHANGED if case.is_changed else "",
        gradients=repro_script.GRADIENTS.format(
            leaves=", ".join(
                f'"grad.{name}": {leaf_of(name) if name in declaration["mutates"] else name}' for name in leaves
            ),
            changed="".join(f", {name}" for name in leaves if name in declaration["mutates"]),
            flows={place: tuple(value.stride()) for place, value in flowing.items()},
        )
        if backward
        else "",
    )


def recorded(name: str, *, is_changed: bool) -> list[str]:
    """Returns the lines that have autograd record what is computed of an input, which is a copy of a leaf where the call changes it."""
    if not is_changed:
        return [f"{name}.requires_grad_()"]
    return [f"{leaf_of(name)} = {name}.clone().requires_grad_()", f"{name}.copy_({leaf_of(name)})"]


def leaf_of(name: str) -> str:
    """Returns the name of the leaf that an input is a copy of which the call changes."""
    return f"leaf_of_{name}"


def made_of(operator: tuple[Methods, object] | None) -> str:
    """Returns the lines of the script that make of what was loaded what is called: of an operator, what has its methods."""
    if operator is None:
        return repro_script.CALLED
    return repro_script.OPERATOR.format(method=json.dumps(methods.name_of(operator[0]["forward"])))


def is_leaf(value: object) -> bool:
    """Tells whether an input collects a gradient."""
    return hasattr(value, "dtype") and bool(value.dtype.is_floating_point or value.dtype.is_complex)


def rebuilt(name: str, value: object) -> str:
    """Returns the Python expression that makes the input `name` anew."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(rebuilt(f'{name}.{position}', item) for position, item in enumerate(value))}]"
    if not hasattr(value, "stride"):
        return repr(value)
    return f"laid_out(stored[{json.dumps(name)}], {tuple(value.stride())})"


def call_of(request: ReproRequest, names: list[str], kwargs: list[str]) -> str:
    """Returns the expression that calls the wrapper: the declared one, else inputs by keyword where the wrapper has all
    their names and by position elsewhere, kwargs by keyword."""
    variant = request["variant"]
    if variant.get("call"):
        return str(variant["call"])
    is_file = variant.get("file") and not variant.get("module")
    takes = parameters(Path(request["root"]) / variant["file"], variant["entry"]) if is_file else None
    by_keyword = takes is not None and set(names) <= takes
    told = [f"{name}={name}" if by_keyword else name for name in names]
    return f"entry({', '.join([*told, *(f'{name}={name}' for name in kwargs)])})"


def parameters(path: Path, entry: str) -> set[str] | None:
    """Returns the names by which the function `entry` of the file takes arguments, or None where it is no plain
    function."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry]
    if not found:
        return None
    arguments = found[-1].args
    return {argument.arg for argument in [*arguments.args, *arguments.kwonlyargs]}

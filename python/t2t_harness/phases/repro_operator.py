"""How the script that `t2t repro` writes calls an operator. Which entry is one, and what its methods take, is read from the file's source, which is not run."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.op import declaration as declared
from t2t_harness.sources import methods

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Methods, ReproRequest

PASSES = '''


class Passes(torch.autograd.Function):
    """The passes of an operator. Tensors are arguments of their own, so that autograd sees them."""

    @staticmethod
    def forward(ctx, forward, backward, *leaves):
        ctx.backward, ctx.leaves, ctx.made = backward, leaves, forward()
        return tuple(ctx.made) if isinstance(ctx.made, list) else ctx.made

    @staticmethod
    def backward(ctx, *grads):
        several = isinstance(ctx.made, (tuple, list))
        found = ctx.backward(grads if several else grads[0], ctx.made)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) < len(ctx.leaves):
            # It has none for what has no gradient.
            given = iter(found)
            found = [next(given) if leaf.dtype.is_floating_point else None for leaf in ctx.leaves]
        return (None, None, *found)'''
"""What the script has beside the rest: the operator as what autograd differentiates."""

Parameters = list[inspect.Parameter]


def of(request: ReproRequest) -> tuple[Methods, dict[str, Parameters]] | None:
    """Returns the methods of the request's variant, and the parameters of those that its file defines; None where its entry is called itself."""
    variant = request["variant"]
    told = variant.get("methods")
    wanted = methods.DEFAULT if told is None else told
    names = [methods.name_of(one) for one in (wanted["forward"], wanted["backward"])]
    tree = parsed(request)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and set(names) <= set(defined(node))]
    if told is None:
        made = {variant["entry"], constructed(tree, variant["entry"])}
        classes = [node for node in classes if node.name in made and "__call__" not in defined(node) and not node.bases]
        if not classes:
            return None
    known = defined(classes[0]) if len(classes) == 1 else {}
    return wanted, {name: parameters_in(known[name]) for name in names if name in known}


def parsed(request: ReproRequest) -> ast.Module:
    """Returns the tree of the variant's file, an empty one where there is none."""
    variant = request["variant"]
    try:
        return ast.parse("" if variant.get("module") else (Path(request["root"]) / variant["file"]).read_bytes())
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return ast.parse("")


def defined(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Returns the methods of a class by name."""
    return {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}


def constructed(tree: ast.Module, name: str) -> str | None:
    """Returns the name of what is called to make the module's `name`, as in `softmax = Softmax()`, or None."""
    for node in tree.body:
        targets = [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name in targets:
            return ast.unparse(node.value.func)
    return None


def parameters_in(node: ast.FunctionDef) -> Parameters:
    """Returns the parameters of a method's source, without the first, which is the object."""
    plain, kinds = [*node.args.posonlyargs, *node.args.args], inspect.Parameter
    least = len(plain) - len(node.args.defaults)
    found = [
        kinds(
            one.arg,
            kinds.POSITIONAL_ONLY if place < len(node.args.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if place < least else None,
        )
        for place, one in enumerate(plain)
    ]
    named = [
        kinds(one.arg, kinds.KEYWORD_ONLY, default=kinds.empty if default is None else None)
        for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    ]
    return [*found[1:], *named]


def call_of(
    request: ReproRequest,
    told: Methods,
    known: dict[str, Parameters],
    kwargs: Sequence[str],
    leaves: Sequence[str],
    *,
    several: bool,
) -> str:
    """Returns the expression that calls an operator: its forward pass, or, for the tensors `leaves` that autograd sees, both passes. The op may have `several` outputs.

    A backward pass whose parameters are not known, or mean nothing, is called with the gradient and the output.
    """
    declaration = request["op"]
    inputs = declared.names(declaration)
    forward = known.get(methods.name_of(told["forward"]))
    written = told["forward"]
    if not methods.is_call(written):
        by_keyword = forward is not None and set(inputs) <= {one.name for one in forward}
        given = [f"{name}={name}" if by_keyword else name for name in inputs]
        written = f"{written}({', '.join([*given, *(f'{name}={name}' for name in kwargs)])})"
    if not leaves:
        return f"entry.{written}"
    outputs = [str(one["name"]) for one in declaration.get("outputs") or ()]
    name = methods.name_of(told["backward"])
    try:
        back = methods.written_backward(told, forward, known.get(name), inputs, [*inputs, *kwargs], outputs)
    except TypeError:
        back = methods.by_names(None, name, (), (), {})
    passed = f"entry.{back}"
    if any(one in back for one in outputs):
        given = [*outputs, *(f"{methods.GRADIENT}_{one}" for one in outputs)]
        passed = f"(lambda {', '.join(given)}: {passed})({'*output, *grad' if several else 'output, grad'})"
    return f"Passes.apply(lambda: entry.{written}, lambda grad, output: {passed}, {', '.join(leaves)})"

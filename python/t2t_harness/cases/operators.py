"""An operator as a function that autograd differentiates: its forward pass is one method of an object, its backward pass another one.

So a check judges its gradients as it does those of a `torch.autograd.Function`. What the backward pass takes is kept as autograd keeps it: a tensor that changes in between is an error.
torch is imported only inside functions.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from t2t_harness.faults.misfit import Misfit
from t2t_harness.op import declaration as declared
from t2t_harness.sources import methods

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, Methods
    from t2t_harness.sources.entry import Entry

Arguments = Mapping[str, object]


@dataclass(frozen=True)
class Backward:
    """The backward pass of an operator in one case."""

    method: Entry
    call: ast.Call
    """How it is called: names are inputs, kwargs, `grad`, `output`, and declared outputs."""
    known: Arguments
    """Inputs and kwargs by name, as the forward pass has them."""
    outputs: tuple[str, ...]
    """The names of the outputs, where they are declared."""

    @functools.cached_property
    def needed(self) -> set[str]:
        """Returns the names that the call takes."""
        given = [*self.call.args, *(one.value for one in self.call.keywords)]
        return {node.id for one in given for node in ast.walk(one) if isinstance(node, ast.Name)}

    def __call__(self, known: Arguments, gradients: Sequence[object], made: object) -> object:
        """Returns what the method returns for the `gradients` that flow into what the forward pass made, `known` being what it takes of inputs and kwargs."""
        several = list(made) if isinstance(made, tuple) else [made]
        values: dict[str, object] = {}
        for name, output, gradient in zip(self.outputs, several, gradients, strict=False):
            values |= {name: output, f"{methods.GRADIENT}_{name}": gradient}
        values |= known
        values |= {
            methods.OUTPUT: made,
            methods.GRADIENT: tuple(gradients) if isinstance(made, tuple) else gradients[0],
        }
        args = [value_of(one, values) for one in self.call.args]
        return self.method(*args, **{str(one.arg): value_of(one.value, values) for one in self.call.keywords})


def name_in(call: ast.Call) -> str:
    """Returns the name of what is called."""
    return ast.unparse(call.func)


@dataclass(frozen=True)
class Operator:
    """A call of both passes, for one case."""

    forward: Entry
    backward: Backward
    leaves: Mapping[str, torch.Tensor]
    """The tensors among the inputs, the members of lists too."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Returns what the forward pass returns; autograd asks the other method for gradients, if it records and an input asks for one."""
        import torch

        if not torch.is_grad_enabled() or not any(one.requires_grad for one in self.leaves.values()):
            return self.forward(*args, **kwargs)
        return function().apply(self, args, kwargs, *self.leaves.values())


@functools.cache
def function() -> Any:
    """Returns the autograd function of all operators. It is made once torch is imported."""
    import torch

    class Passes(torch.autograd.Function):
        """The passes of an operator. Tensors are arguments of their own, so that autograd sees them."""

        @staticmethod
        def forward(ctx: Any, operator: Operator, args: Any, kwargs: Any, *leaves: torch.Tensor) -> Any:
            """Returns what the method of the forward pass returns; keeps what the other one takes."""
            made = operator.forward(*args, **kwargs)
            made = tuple(made) if isinstance(made, list) else made
            ctx.operator = operator
            needed = operator.backward.needed
            ctx.kept = {name: value for name, value in operator.backward.known.items() if name in needed}
            takes_outputs = bool(needed & {methods.OUTPUT, *operator.backward.outputs})
            ctx.made = made if takes_outputs else tuple(None for _ in made) if isinstance(made, tuple) else None
            ctx.kept, ctx.made = held(ctx, (ctx.kept, ctx.made))
            return made

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            """Returns the gradients that the method of the backward pass returns, one for each tensor."""
            operator: Operator = ctx.operator
            known, made = freed(ctx, (ctx.kept, ctx.made))
            found = operator.backward(known, gradients, made)
            return (None, None, None, *in_places(operator, found))

    return Passes


@dataclass(frozen=True)
class Place:
    """Where autograd keeps a tensor."""

    position: int


def held(ctx: Any, value: Any) -> Any:
    """Returns `value` with the place of each tensor in the tensor's place, and has autograd keep the tensors."""
    import torch

    tensors: list[torch.Tensor] = []

    def placed(one: Any) -> Any:
        if isinstance(one, torch.Tensor):
            tensors.append(one)
            return Place(len(tensors) - 1)
        if isinstance(one, dict):
            return {name: placed(part) for name, part in one.items()}
        return type(one)(map(placed, one)) if type(one) in (tuple, list) else one

    found = placed(value)
    ctx.save_for_backward(*tensors)
    return found


def freed(ctx: Any, value: Any) -> Any:
    """Returns `value` with the tensors that autograd kept in their places. Raises what autograd raises where one of them changed."""
    tensors = ctx.saved_tensors

    def found(one: Any) -> Any:
        if isinstance(one, Place):
            return tensors[one.position]
        if isinstance(one, dict):
            return {name: found(part) for name, part in one.items()}
        return type(one)(map(found, one)) if type(one) in (tuple, list) else one

    return found(value)


def in_places(operator: Operator, returned: object) -> list[torch.Tensor | None]:
    """Returns the gradient of each tensor among the inputs, None for one without.

    `returned` is a tensor, or a tuple of one for each of them, or for each whose dtype has gradients, in declared order. Raises Misfit where it is not.
    """
    import torch

    name = name_in(operator.backward.call)
    found = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    leaves = dict(operator.leaves)
    floating = {name: leaf for name, leaf in leaves.items() if leaf.dtype.is_floating_point or leaf.dtype.is_complex}
    if len(found) not in (len(leaves), len(floating)):
        told = f"{len(found)} gradients" if len(found) != 1 else "one gradient"
        raise Misfit("type", f"`{name}` returns {told}, and {len(floating)} inputs have one: {', '.join(floating)}")
    of = dict(zip(leaves if len(found) == len(leaves) else floating, found, strict=True))
    checked: dict[str, torch.Tensor] = {}
    for input_, gradient in of.items():
        if gradient is None:
            continue
        leaf = leaves[input_]
        if not isinstance(gradient, torch.Tensor):
            raise Misfit("type", f"`{name}` returns `{type(gradient).__qualname__}` for the gradient of `{input_}`")
        if gradient.shape != leaf.shape:
            words = f"shape {list(gradient.shape)} for the gradient of `{input_}`, which has {list(leaf.shape)}"
            raise Misfit("shape", f"`{name}` returns {words}")
        if gradient.dtype != leaf.dtype:
            kinds = [str(one.dtype).removeprefix("torch.") for one in (gradient, leaf)]
            raise Misfit("dtype", f"`{name}` returns {kinds[0]} for the gradient of `{input_}`, which is {kinds[1]}")
        checked[input_] = gradient
    return [checked.get(one) for one in leaves]


def backward_of(found: object, told: Methods, declaration: Declaration, known: Arguments) -> Backward:
    """Returns the backward pass of the operator `found`, which has the methods `told`, where inputs and kwargs are `known`.

    Raises TypeError for a parameter that means nothing.
    """
    method: Entry = getattr(found, methods.name_of(told["backward"]))
    forward: Entry = getattr(found, methods.name_of(told["forward"]))
    outputs = tuple(str(one["name"]) for one in declaration.get("outputs") or ())
    taken, given = methods.parameters_of(forward), methods.parameters_of(method)
    written = methods.written_backward(told, taken, given, declared.names(declaration), list(known), outputs)
    return Backward(method, parsed(written), known, outputs)


@functools.lru_cache(64)
def parsed(written: str) -> ast.Call:
    """Returns the call that is `written`, as in `entry(input, dim, keep=True)`. Raises ValueError where it is none."""
    tree = ast.parse(written, mode="eval").body
    if not isinstance(tree, ast.Call):
        raise ValueError(f"`{written}` is no call")
    return tree


def value_of(node: ast.expr, known: Arguments) -> object:
    """Returns the value of one argument of a call. Raises LookupError for a name that is not `known`."""
    if isinstance(node, ast.Name):
        if node.id not in known:
            raise LookupError(f"`call` names `{node.id}`, which this case does not have")
        return known[node.id]
    if isinstance(node, ast.List):
        return [value_of(one, known) for one in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(value_of(one, known) for one in node.elts)
    return ast.literal_eval(node)

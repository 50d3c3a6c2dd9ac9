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
    """The backward pass of an operator in one case. What can be found out once is, since calls are timed."""

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

    @functools.cached_property
    def takes_outputs(self) -> bool:
        """Returns whether it takes what the forward pass returned."""
        return bool(self.needed & {methods.OUTPUT, *self.outputs})

    @functools.cached_property
    def tensors(self) -> dict[str, list[torch.Tensor]]:
        """Returns the tensors that it takes of the inputs, by the name of the input."""
        import torch

        listed = {name: self.known[name] for name in self.known if name in self.needed}
        found: dict[str, list[Any]] = {
            name: value if isinstance(value, list) else [value] for name, value in listed.items()
        }
        return {name: value for name, value in found.items() if value and isinstance(value[0], torch.Tensor)}

    @functools.cached_property
    def constants(self) -> dict[str, object]:
        """Returns what else it takes of inputs and kwargs."""
        return {name: self.known[name] for name in self.known if name in self.needed and name not in self.tensors}

    @functools.cached_property
    def kept(self) -> tuple[torch.Tensor, ...]:
        """Returns the tensors that it takes of the inputs, in order."""
        return tuple(one for value in self.tensors.values() for one in value)

    def __call__(self, saved: Sequence[object], gradients: Sequence[object], *, several: bool) -> object:
        """Returns what the method returns for the `gradients` that flow in: `saved` are the tensors `kept`, and then the outputs if it takes them, of which there may be `several`."""
        values, place = dict(self.constants), 0
        for name, tensors in self.tensors.items():
            end = place + len(tensors)
            values[name] = list(saved[place:end]) if isinstance(self.known[name], list) else saved[place]
            place = end
        made = tuple(saved[place:])
        for position, (name, gradient) in enumerate(zip(self.outputs, gradients, strict=False)):
            values[f"{methods.GRADIENT}_{name}"] = gradient
            values[name] = made[position] if self.takes_outputs else None
        values[methods.OUTPUT] = made if several or not made else made[0]
        values[methods.GRADIENT] = tuple(gradients) if several else gradients[0]
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

    @functools.cached_property
    def floating(self) -> dict[str, torch.Tensor]:
        """Returns the leaves whose dtype has gradients."""
        return {
            name: leaf for name, leaf in self.leaves.items() if leaf.dtype.is_floating_point or leaf.dtype.is_complex
        }

    @functools.cached_property
    def asks(self) -> bool:
        """Returns whether an input asks for a gradient."""
        return any(one.requires_grad for one in self.leaves.values())

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Returns what the forward pass returns; autograd asks the other method for gradients, if it records and an input asks for one."""
        import torch

        if not self.asks or not torch.is_grad_enabled():
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
            outputs: tuple[object, ...] = tuple(made) if isinstance(made, (tuple, list)) else (made,)
            several = isinstance(made, (tuple, list))
            ctx.told = operator, several
            # What is no tensor is rejected by itself, and not kept.
            taken = outputs if operator.backward.takes_outputs else ()
            kept = (one if isinstance(one, torch.Tensor) else None for one in taken)
            ctx.save_for_backward(*operator.backward.kept, *kept)
            return outputs if several else made

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            """Returns the gradients that the method of the backward pass returns, one for each tensor."""
            operator, several = ctx.told
            found = operator.backward(ctx.saved_tensors, gradients, several=several)
            return (None, None, None, *in_places(operator, found))

    return Passes


def in_places(operator: Operator, returned: object) -> list[torch.Tensor | None]:
    """Returns the gradient of each tensor among the inputs, None for one without.

    `returned` is a tensor, or a tuple of one for each of them, or for each whose dtype has gradients, in declared order. Raises Misfit where it is not.
    """
    import torch

    found = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    leaves, floating = operator.leaves, operator.floating
    if len(found) not in (len(leaves), len(floating)):
        name = name_in(operator.backward.call)
        told = f"{len(found)} gradients" if len(found) != 1 else "one gradient"
        raise Misfit("type", f"`{name}` returns {told}, and {len(floating)} inputs have one: {', '.join(floating)}")
    checked: dict[str, torch.Tensor] = {}
    for input_, gradient in zip(leaves if len(found) == len(leaves) else floating, found, strict=True):
        if gradient is None:
            continue
        leaf = leaves[input_]
        if not isinstance(gradient, torch.Tensor) or gradient.shape != leaf.shape or gradient.dtype != leaf.dtype:
            raise misfit(name_in(operator.backward.call), input_, gradient, leaf)
        checked[input_] = gradient
    return [checked.get(one) for one in leaves]


def misfit(name: str, input_: str, gradient: object, leaf: torch.Tensor) -> Misfit:
    """Returns what is wrong with what the method `name` returned for the gradient of an input."""
    import torch

    of = f"for the gradient of `{input_}`"
    if not isinstance(gradient, torch.Tensor):
        return Misfit("type", f"`{name}` returns `{type(gradient).__qualname__}` {of}")
    if gradient.shape != leaf.shape:
        return Misfit("shape", f"`{name}` returns shape {list(gradient.shape)} {of}, which has {list(leaf.shape)}")
    kinds = [str(one.dtype).removeprefix("torch.") for one in (gradient, leaf)]
    return Misfit("dtype", f"`{name}` returns {kinds[0]} {of}, which is {kinds[1]}")


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

"""Functions that launch kernels as operators of torch: each with a fake kernel, so that `torch.compile` takes it as it is, and with the kernel's own gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

NAMESPACE = (__package__ or "").replace(".", "_")
"""Where torch has the operators: `torch.ops.NAMESPACE`."""

Function = Callable[..., Any]


class Saved:
    """Stands for a tensor that autograd keeps."""


def define(
    name: str, parameters: str, *, results: int, kernel: Function, definition: Function, differentiable: Sequence[str]
) -> Any:
    """Returns the operator `name`, which takes `parameters` (in torch's schema language) and gives as many tensors as `results` says.

    `kernel` computes them. `definition` is torch's own function: it says how large they are and of which dtype. `differentiable` names
    the parameters whose gradients were checked; without any the operator has no gradient.
    """
    returned = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"

    def computed(*given: Any) -> Any:
        return one_or_all(own(several(name, kernel(*given), results), given))

    def fake(*given: Any) -> Any:
        return one_or_all([like(one) for one in several(name, definition(*given), results)])

    operator = torch.library.custom_op(
        f"{NAMESPACE}::{name}", computed, mutates_args=(), schema=f"({parameters}) -> {returned}"
    )
    operator.register_fake(fake)
    if differentiable:
        backward = define_backward(name, parameters, results, kernel)
        named = [part.split()[-1] for part in parameters.split(",")]
        operator.register_autograd(flow_back(name, named, differentiable, backward), setup_context=keep)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def define_backward(name: str, parameters: str, results: int, kernel: Function) -> Any:
    """Returns the operator that gives the gradients of an operator's wanted tensors: it runs the kernel again, and then its own backward."""

    def computed(flows: Sequence[Any], wanted: Sequence[bool], *given: Any) -> list[torch.Tensor]:
        bare = mapped(given, torch.Tensor, lambda tensor: tensor.detach())
        leaves = [one.requires_grad_() for one, is_wanted in zip(tensors(bare), wanted, strict=True) if is_wanted]
        # Torch calls operators below autograd, where nothing that the wrapper does around its kernel would be recorded.
        autograd = torch._C.DispatchKey.AutogradFunctionality
        with torch.enable_grad(), torch._C._SetExcludeDispatchKeyGuard(autograd, False):
            ends = several(name, kernel(*bare), results)
            if not any(end.requires_grad for end in ends):
                raise RuntimeError(f"the kernel of `{name}` computes no gradient")
            pairs = [
                (end, flow) for end, flow in zip(ends, flows, strict=True) if end.requires_grad and flow is not None
            ]
            found = torch.autograd.grad(
                [end for end, _ in pairs], leaves, [flow for _, flow in pairs], allow_unused=True
            )
        whole = [torch.zeros_like(leaf) if one is None else one for one, leaf in zip(found, leaves, strict=True)]
        return own(whole, [*flows, *given])

    def fake(flows: Sequence[Any], wanted: Sequence[bool], *given: Any) -> list[torch.Tensor]:
        return [like(one) for one, is_wanted in zip(tensors(given), wanted, strict=True) if is_wanted]

    operator = torch.library.custom_op(
        f"{NAMESPACE}::{name}__backward",
        computed,
        mutates_args=(),
        schema=f"(Tensor?[] t2t_flows, bool[] t2t_wanted, {parameters}) -> Tensor[]",
    )
    operator.register_fake(fake)
    return getattr(getattr(torch.ops, NAMESPACE), f"{name}__backward").default


def keep(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    """Keeps what a call was given: an operator cannot keep what its kernel computed."""
    ctx.save_for_backward(*tensors(inputs))
    ctx.given = mapped(inputs, torch.Tensor, lambda _: Saved())


def flow_back(name: str, named: Sequence[str], differentiable: Sequence[str], backward: Any) -> Function:
    """Returns what autograd calls with the gradients of the results."""

    def flow(ctx: Any, *flows: Any) -> tuple[Any, ...]:
        saved = iter(ctx.saved_tensors)
        given = mapped(ctx.given, Saved, lambda _: next(saved))
        needs = [
            list(need) if isinstance(need, list | tuple) else [bool(need)] * len(list(tensors([value])))
            for value, need in zip(given, ctx.needs_input_grad, strict=True)
        ]
        for parameter, need in zip(named, needs, strict=True):
            if any(need) and parameter not in differentiable:
                raise RuntimeError(f"the gradient of `{name}` by `{parameter}` was not checked")
        found = iter(backward(list(flows), [one for need in needs for one in need], *given))
        back = [[next(found) if one else None for one in need] for need in needs]
        # A list of tensors has a list of gradients; what is no tensor has None.
        return tuple(
            (one if isinstance(value, list) else one[0]) if one else None
            for value, one in zip(given, back, strict=True)
        )

    return flow


def tensors(given: Sequence[Any]) -> Iterator[torch.Tensor]:
    """Yields the tensors among arguments, those in lists too."""
    for value in given:
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, torch.Tensor):
                yield one


def mapped(given: Sequence[Any], kind: type, function: Function) -> list[Any]:
    """Returns the arguments with what `function` makes of each `kind` in its place."""

    def of(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [of(one) for one in value]
        return function(value) if isinstance(value, kind) else value

    return [of(value) for value in given]


def several(name: str, found: Any, results: int) -> list[torch.Tensor]:
    """Returns the results of a call as a list. Raises RuntimeError where they are not as many tensors as `results` says."""
    held = list(found) if isinstance(found, list | tuple) else [found]
    if len(held) != results or not all(isinstance(one, torch.Tensor) for one in held):
        kinds = ", ".join(type(one).__name__ for one in held)
        all_tensors = all(isinstance(one, torch.Tensor) for one in held)
        helps = "name them in `outputs:`" if all_tensors else "an operator gives tensors alone, export `--as package`"
        raise RuntimeError(f"`{name}` gives {results} tensors as ops.yaml has it, got ({kinds}): {helps}")
    return held


def one_or_all(held: list[torch.Tensor]) -> Any:
    """Returns the results as the schema has them."""
    return held[0] if len(held) == 1 else tuple(held)


def like(one: torch.Tensor) -> torch.Tensor:
    """Returns an empty tensor as an operator gives it: contiguous."""
    return torch.empty(one.shape, dtype=one.dtype, device=one.device)


def own(held: Sequence[torch.Tensor], given: Sequence[Any]) -> list[torch.Tensor]:
    """Returns results that are contiguous, as the fake kernel says, and share no memory with what was given or each other, as torch asks of operators."""
    taken = {one.untyped_storage().data_ptr() for one in tensors(given)}
    owned = []
    for one in held:
        one = one.detach().contiguous()
        if one.untyped_storage().data_ptr() in taken - {0}:
            one = one.clone()
        taken.add(one.untyped_storage().data_ptr())
        owned.append(one)
    return owned

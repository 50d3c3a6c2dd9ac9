"""The text of the script that `t2t repro` writes, with places for what one case has."""

from __future__ import annotations

CHANGED = """
    # What is done to an output afterwards must not reach its gradients.
    changed = {name: value for name, value in results.items() if getattr(value, "requires_grad", False)}
    results.update((name, value.detach().clone()) for name, value in changed.items())
    for value in changed.values():
        value.add_(1)
"""

GRADIENTS = """
    leaves = {{{leaves}}}
    if isinstance(entry, torch.nn.Module):
        leaves.update((f"module.grad.{{name}}", value) for name, value in entry.named_parameters() if value.requires_grad)
    ends = [*outputs{changed}]
    upstream = {{position: stored.get(f"upstream.{{position}}") for position in range(len(ends))}}
    ends = [ends[position] for position in upstream if upstream[position] is not None]
    strides = {flows}
    flowing = [laid_out(value, strides[place]) for place, value in upstream.items() if value is not None]
    found = torch.autograd.grad(ends, list(leaves.values()), flowing, allow_unused=True)
    for (name, leaf), gradient in zip(leaves.items(), found):
        results[name] = torch.zeros_like(leaf) if gradient is None else gradient
"""

UNTIMED = """
from triton.runtime import autotuner

# Without a GPU nothing can be timed: the first configuration runs, as in a check.
autotuner.Autotuner._bench = lambda self, *args, **meta: [0.0]
"""
"""How a script does without the driver that Triton's autotuner asks for a timer (triton 3.6, `Autotuner.run`, which takes the first of the fastest)."""

LACKING = """        except Exception as error:
            import traceback

            if "libdevice." not in "".join(traceback.format_exception(error)):
                raise
            sys.exit("Triton's own interpreter has no libdevice, which a check supplies: run this file on a device")
"""
"""How a script ends whose kernel calls what Triton's interpreter takes for None (triton 3.6, `triton.language.extra.libdevice`)."""

CALLED = """        found = found if callable(found) else found.forward
"""

OPERATOR = """    elif not hasattr(found, {method}):
        # It makes an operator.
        found = found()
"""

BEGUN = """        def begin({names}):
            {call}

        # A call on other values comes before.
        begin(*(stored[f"first.{{name}}"].to(DEVICE) for name in "{names}".split(", ")))
"""
"""The lines for a case in which a class is called before."""

TEMPLATE = '''"""{target} on the case {case}, outside of t2t.

{told}

Written by `t2t repro`. Run it with the Python that has torch and triton, or under its debugger:
python -m pdb -c continue repro.py. What t2t adds to Triton's interpreter, and all of its limits, are not there.
"""

import contextlib
import importlib
import os
import sys
from pathlib import Path
{interpret}
sys.path.insert(0, {root})

import torch
from safetensors.torch import load_file

import {picture} as picture
{untimed}
DEVICE = {device}
NAMES = {results}
# Those of the kernel's first launch.
CONSTANTS = {constants}
# How each result is compared: the word, what indices are of, along which dim, atol and rtol, and what torch has where any value is right.
COMPARED = {compared}
stored = load_file(Path(__file__).parent / {tensors})


def laid_out(values, strides):
    """Return `values` with `strides` on the device; memory between the elements holds NaN, or zero for integers."""
    reach = 1 + sum((length - 1) * stride for length, stride in zip(values.shape, strides)) if values.numel() else 0
    gap = float("nan") if values.dtype.is_floating_point else 0
    memory = torch.full((reach,), gap, dtype=values.dtype, device=DEVICE)
    target = memory.as_strided(values.shape, strides)
    # Along a dim of stride 0 all elements are one.
    once = tuple(slice(None) if stride else slice(0, 1) for stride in target.stride())
    target[once].copy_(values[once])
    return target


def placed(module, dtype):
    """Return the module on the device, what is floating in it in `dtype`."""
    for value in [*module.parameters(), *module.buffers()]:
        is_rounded = dtype is not None and value.dtype.is_floating_point and value.dtype.itemsize > 1
        value.data = value.data.to(device=DEVICE, dtype=dtype if is_rounded else value.dtype)
    return module


def load():
    """Return the wrapper."""
    found = importlib.import_module({module})
    for part in {entry}.split("."):
        found = getattr(found, part)
    if isinstance(found, type):
        # A class is constructed as t2t does it, so that it has the same weights.
        torch.manual_seed({seed})
        found = found(**{init})
        if isinstance(found, torch.nn.Module):
            found = placed(found, {dtype})
{made}    if isinstance(found, torch.nn.Module):
        for name, value in [*found.named_parameters(), *found.named_buffers()]:
            if f"weights.{{name}}" in stored:
                value.data.copy_(stored[f"weights.{{name}}"])
    return found{passes}


def picked(source, index, dim):
    """Return the values of `source` at `index` along `dim`, and where `index` is outside of it."""
    index, shape = index.long(), index.shape
    if dim is None:
        source, dim = source.reshape(-1), 0
        index = index.reshape(-1)
    elif not isinstance(dim, int):
        source, dim = source.flatten(source.dim() - len(dim)), -1
        index = index.reshape(*source.shape[:-1], -1)
    elif index.dim() < source.dim():
        index = index.unsqueeze(dim)
    outside = (index < 0) | (index >= (source.shape[dim] if source.dim() else 1))
    return source.gather(dim, index.masked_fill(outside, 0)).reshape(shape), outside.reshape(shape)


def named_twice(index, dim):
    """Return where an index stands that stands earlier along `dim`, too."""
    if index.dim() == 0 or index.numel() == 0:
        return torch.zeros_like(index, dtype=torch.bool)
    ordered, places = index.sort(dim=dim, stable=True)
    is_same = ordered.diff(dim=dim, prepend=ordered.narrow(dim, 0, 1) - 1) == 0
    return torch.zeros_like(is_same).scatter(dim, places, is_same)


def in_order(value, how):
    """Return `value` with its elements or rows in order, where any order of them is right."""
    if how == "set":
        return value.sort().values
    if how == "rows":
        rows = value.flatten(1)
        for column in reversed(range(rows.shape[1])):
            rows = rows[rows[:, column].argsort(stable=True)]
        return rows.reshape(value.shape)
    return value


def is_right(name, got, expected, results, inputs, stored):
    """Return which elements are right, as a check sees them."""
    how, of, dim, atol, rtol, _ = COMPARED[name]
    if how == "indices":
        ours, theirs = (inputs[of],) * 2 if of in inputs else (results[of], stored[f"expected.{{of}}"])
        mine, outside = picked(ours.detach().cpu(), got, dim)
        right, _ = picked(theirs.detach().cpu(), expected, dim)
        atol, rtol = COMPARED[of][3:5] if of in COMPARED else (0.0, 0.0)
        is_same = torch.isclose(mine, right, rtol=rtol, atol=atol, equal_nan=True) & ~outside
        if isinstance(dim, int) and got.dim() == ours.dim():
            is_same &= ~named_twice(got, dim) | named_twice(expected, dim).any(dim=dim, keepdim=True)
        return is_same
    if how in ("pointed", "first"):
        plain, outside = picked(stored[f"plain.{{name}}"], got, dim)
        wide, _ = picked(stored[f"wide.{{name}}"], got, dim)
        pairs = [(plain, picked(stored[f"plain.{{name}}"], expected, dim)[0])]
        pairs.append((wide, picked(stored[f"wide.{{name}}"], expected, dim)[0]))
        ties = [(one == other) | ((one != one) & (other != other)) for one, other in pairs]
        is_whole = dim is not None and stored[f"plain.{{name}}"].dim() == got.dim() > 0
        allowed = stored[f"allowed.{{name}}"]
        allowed = allowed if is_whole or allowed.dim() == 0 or dim is None else allowed.squeeze(dim)
        is_same = (ties[0] | ((pairs[1][0] - pairs[1][1]).abs() <= allowed)) & ~outside
        if how == "first":
            # Of equal values torch names the first one.
            is_same &= ~(ties[0] & ties[1]) | (got == expected)
        if is_whole:
            is_same &= ~named_twice(got, dim) | named_twice(expected, dim).any(dim=dim, keepdim=True)
        return is_same
    if how == "finite":
        wide = stored.get(f"oracle.{{name}}", expected)
        return got.isfinite() | ~(expected.isfinite() & wide.isfinite())
    if how == "exact" or not expected.dtype.is_floating_point:
        return (got == expected) | ((got != got) & (expected != expected))
    right = torch.isclose(got.double(), expected.double(), rtol=rtol, atol=atol, equal_nan=True)
    if f"oracle.{{name}}" in stored and how == "close":
        right |= (got.double() - stored[f"oracle.{{name}}"]).abs() <= stored[f"bound.{{name}}"]
    return right


def first_values(entry):
    """Return what parameters and buffers hold, of large ones some elements, as bytes."""
    if not isinstance(entry, torch.nn.Module):
        return {{}}
    named = [*entry.named_parameters(), *entry.named_buffers()]
    flat = {{name: value.detach().reshape(-1) for name, value in named}}
    return {{name: bytes_of(value[:: max(1, -(-value.numel() // {sampled}))]) for name, value in flat.items()}}


def bytes_of(value):
    """Return the bytes of a tensor."""
    value = torch.view_as_real(value) if value.dtype.is_complex else value
    return value.cpu().clone().reshape(-1).view(torch.uint8)


def begins_alike(name, began, stored):
    """Tell whether what a module's result belongs to began as torch's did."""
    own = name.removeprefix("module.grad.").removeprefix("module.after.")
    theirs = stored.get(f"began.{{own}}")
    return own in began and theirs is not None and began[own].equal(bytes_of(theirs))


def difference(name, results, inputs, stored, began):
    """Return what is wrong with a result, in lines; none where nothing is. A picture lies beside this file then."""
    if COMPARED[name][0] == "ignore":
        return []
    got, expected = results.get(name), stored[f"expected.{{name}}"]
    is_of_module = name.startswith("module.")
    if is_of_module and got is None:
        return []
    if not isinstance(got, torch.Tensor):
        return [f"is {{type(got).__name__}}, and no tensor"]
    got = torch.view_as_real(got) if got.dtype.is_complex else got
    got = got.detach().cpu()
    if is_of_module and (got.shape != expected.shape or not begins_alike(name, began, stored)):
        # A check asks for what the module has by the same name, in the same shape, with the same first values.
        return []
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return [f"is {{got.dtype}}{{list(got.shape)}}, torch's is {{expected.dtype}}{{list(expected.shape)}}"]
    got, expected = in_order(got, COMPARED[name][0]), in_order(expected, COMPARED[name][0])
    right = is_right(name, got, expected, results, inputs, stored)
    unset = COMPARED[name][5]
    if unset is not None:
        right = right | (expected != expected if unset == "nan" else expected == unset)
    if bool(right.all()):
        return []
    first = tuple((~right).nonzero()[0].tolist())
    wrong = int((~right).sum())
    place = f"first {{list(first)}}: got {{got[first].item():.9g}}, torch has {{expected[first].item():.9g}}"
    drawn = Path(__file__).with_name(f"{{name}}.png")
    picture.save(drawn, got, expected, right)
    said = f"differs from torch's in {{wrong}} of {{right.numel()}} elements, {{place}}"
    return [said, *picture.told(got, expected, right, CONSTANTS), f"picture: {{drawn}}"]


def listed(result):
    """Return the tensors in what was returned, in order; those of a dict in the order of their names."""
    if isinstance(result, dict):
        result = [result[name] for name in sorted(result, key=str)]
    if not isinstance(result, (tuple, list)):
        return [result]
    parts = [one for part in result for one in (listed(part) if isinstance(part, (tuple, list, dict)) else [part])]
    return [one for one in parts if not isinstance(one, (type(None), bool, int, float, str))]


def main():
    """Run the case and say what differs."""
    entry = load()
    began = first_values(entry)
{arguments}
    inputs = {{{sources}}}
    held = {{name: bytes_of(value.detach()) for name, value in inputs.items() if name not in {mutated}}}
    with {recorded}:
{before}        try:
            result = {call}
        except SystemExit as error:
            raise RuntimeError(f"the kernel ended the process: exit({{error.code!r}})") from error
{lacking}    changed_inputs = [name for name, value in held.items() if not bytes_of(inputs[name].detach()).equal(value)]
    outputs = listed(result)
    results = {{str(position): value for position, value in enumerate(outputs)}}
    results.update({{{after_values}}})
    if isinstance(entry, torch.nn.Module):
        results.update((f"module.after.{{name}}", value.clone()) for name, value in entry.named_buffers())
{changed}{gradients}
    found = {{name: difference(name, results, inputs, stored, began) for name in NAMES}}
    wrong = [(NAMES[name], lines) for name, lines in found.items() if lines]
    for name, lines in wrong:
        print(f"{{name}} {{lines[0]}}", *lines[1:], sep="\\n")
    for name in changed_inputs:
        print(f"input `{{name}}` was changed, and `mutates` does not name it")
    if not wrong and not changed_inputs:
        print("as near to torch's as a check asks")
    assert not wrong and not changed_inputs, "the case differs"


if __name__ == "__main__":
    main()
'''
"""The file. Its docstring tells of the case; `stored` has the inputs and what torch made of them."""

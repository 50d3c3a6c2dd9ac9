"""The edges around a variant's blocks: lengths below, at, above and not a multiple of the constants of its first launch. Nothing here imports torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from t2t_harness.cases import bindings, cases

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Declaration


def length_edges(
    declaration: Declaration,
    constants: Mapping[str, int],
    limit: int = bindings.INTERPRETER_ELEMENTS,
    least: Mapping[str, int] | None = None,
) -> list[cases.Case]:
    """Returns the edge cases around a variant's blocks: lengths below, at, above and not a multiple of its constexpr
    integers; last, where an autotuner has several configurations, of which `least` are the smallest integers, an odd multiple of those.

    `constants` are those of the variant's first launch. A dim `M` is matched with a constant such as `BLOCK_M`; where
    no dim has one of its own, the last free dim is tried with the largest constant that keeps inputs within `limit`
    elements. Each tested dim meets each of the four lengths once, and no two dims meet the same one in one case, so
    that four cases cover all. Other free dims are at most 2.
    """
    blocks = {} if "blocks" in cases.edges_off(declaration) else _blocks(declaration, constants, limit)
    if not blocks:
        return []
    small = {dim: min(length, 2) for dim, length in bindings.free_lengths(declaration).items()}
    found = []
    for turn, kind in enumerate(LENGTHS):
        binding = {**bindings.fixed_lengths(declaration), **small}
        for position, (dim, block) in enumerate(blocks.items()):
            binding[dim] = _length(LENGTHS[(turn + position) % len(LENGTHS)], block)
        binding = bindings.stepped(declaration, binding)
        if not bindings.is_possible(declaration, binding):
            continue
        blocks_named = ",".join(f"{dim}={binding[dim]}" for dim in blocks)
        found.append(cases.Case(f"edge/{kind}-block[{blocks_named}]", "edge", "", binding))
    room = max(cases.EDGES - len(cases.edges_of(declaration, declaration["dtypes"][0], limit)), 1)
    named = []
    for position, dtype in enumerate(declaration["dtypes"]):
        for case in found[:room] if position == 0 else found[2:3]:
            named.append(replace(case, name=f"{case.name}/{dtype}", dtype=dtype))
    return [*named, *(_multiple(declaration, {**constants, **least}, limit) if least else ())]


def _multiple(declaration: Declaration, constants: Mapping[str, int], limit: int) -> list[cases.Case]:
    """Returns the case whose tested dims are three times the smallest of an autotuner's blocks, `constants`: a kernel that has no mask where this one divides is wrong with larger ones."""
    blocks = _blocks(declaration, constants, limit)
    small = {dim: min(length, 2) for dim, length in bindings.free_lengths(declaration).items()}
    binding = {**bindings.fixed_lengths(declaration), **small, **{dim: 3 * block for dim, block in blocks.items()}}
    binding = bindings.stepped(declaration, binding)
    if not blocks or not bindings.is_possible(declaration, binding):
        return []
    dtype, named = declaration["dtypes"][0], ",".join(f"{dim}={binding[dim]}" for dim in blocks)
    return [cases.Case(f"edge/multiple-block[{named}]/{dtype}", "edge", dtype, binding)]


LENGTHS = ("below", "at", "above", "off")


def _length(kind: str, block: int) -> int:
    """Returns a length below, at, above, or in the third of blocks that it is not a multiple of: a loop over them turns more than once."""
    off = 2 * block + max(block // 2, 1) + 1
    return {"below": max(block - 1, 1), "at": block, "above": block + 1, "off": off}[kind]


def _blocks(declaration: Declaration, constants: Mapping[str, int], limit: int) -> dict[str, int]:
    """Returns the dims to test with the block that each is tested with."""
    free = list(bindings.free_lengths(declaration))
    own = {dim: block for dim in free if (block := _own_block(dim, constants)) is not None}
    together: dict[str, int] = {}
    for dim, block in own.items():
        if _fits(declaration, {**together, dim: block}, limit):
            together[dim] = block
    if together:
        return together
    taken = {name for dim in bindings.dims(declaration) for name in _names(dim)}
    sizes = sorted((block for name, block in constants.items() if block > 1 and name not in taken), reverse=True)
    for dim, block in product(reversed(free[-1:]), sizes):
        if _fits(declaration, {dim: block}, limit):
            return {dim: block}
    return {}


def _fits(declaration: Declaration, blocks: Mapping[str, int], limit: int) -> bool:
    small = {dim: min(length, 2) for dim, length in bindings.free_lengths(declaration).items()}
    longest = {dim: _length("off", block) for dim, block in blocks.items()}
    fixed = bindings.fixed_lengths(declaration)
    # What fixed dims contribute cannot be helped, and does not count. Blocks may take four times what other edges take.
    share = max(math.prod(fixed.values()), 1)
    binding = {**fixed, **small, **longest}
    return bindings.is_possible(declaration, binding) and bindings.largest(declaration, binding) <= 4 * limit * share


def _own_block(dim: str, constants: Mapping[str, int]) -> int | None:
    found = [constants[name] for name in _names(dim) if constants.get(name, 0) > 1]
    return found[0] if found else None


def _names(dim: str) -> Sequence[str]:
    forms = "BLOCK_{} BLOCK_SIZE_{} BLOCK{} {}_BLOCK BLOCK_{}_SIZE TILE_{} TILE_SIZE_{} {} B{} B_{}".split()
    return [form.format(dim) for form in forms]

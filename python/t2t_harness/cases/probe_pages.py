"""What of a paged cache counts: a table of integers says in which pages the rows of a batch lie, and another input how long each row is. All else in the cache is free, and holds anything in practice.

torch is imported only inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_harness.cases import probing
from t2t_harness.op import expression
from t2t_harness.op.declaration import tensors

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import Declaration, TensorInput


LENGTHS = (23, 5, 3)
"""So many pages a cache has in a case, so many places a page, and so many pages a row at most: some pages are free, and others in part."""


@dataclass(frozen=True)
class Paging:
    """How one input is paged."""

    cache: str
    """The input that is paged."""
    lengths: str
    """The input that says how long each row is."""
    table: str
    """The input that says in which pages each row lies, along its last dim."""
    page: int
    """The dim of the cache along which pages lie."""
    place: int
    """The dim of the cache along which the places of a page lie."""


def pagings(declaration: Declaration) -> Iterator[Paging]:
    """Yields how inputs are paged: integers that point along a dim of another input, as many for each row as fit its greatest length, which integers for each row are drawn up to (`randint: [0, P*B+1]` of `P` pages of `B` places)."""
    held = [given for given in tensors(declaration) if given["name"] in probing.of_values(declaration)]
    whole = [given for given in tensors(declaration) if given["shape"] and given.get("list") is None]
    for table in [given for given in whole if dim_of(given) is not None]:
        *rows, last = map(str, table["shape"])
        for lengths in [given for given in whole if list(map(str, given["shape"])) == rows and is_bounded(given)]:
            size = page_of(bound_of(lengths), last)
            for cache in held:
                shape = list(map(str, cache["shape"]))
                if dim_of(table) in shape and size in shape:
                    places = shape.index(str(dim_of(table))), shape.index(size)
                    yield Paging(cache["name"], lengths["name"], table["name"], *places)


def paging_of(declaration: Declaration, by: str, of: str) -> Paging:
    """Returns how the input `of` is paged, of which `by` has the lengths."""
    return next(one for one in pagings(declaration) if (one.lengths, one.cache) == (by, of))


def lengths_of(declaration: Declaration, by: str, of: str) -> dict[str, int]:
    """Returns the lengths that the dims of the paged input `of`, of which `by` has the lengths, have in a case."""
    paging = paging_of(declaration, by, of)
    shapes = {given["name"]: given["shape"] for given in tensors(declaration)}
    shape = shapes[of]
    told = zip((shape[paging.page], shape[paging.place], shapes[paging.table][-1]), LENGTHS, strict=True)
    return {dim: length for dim, length in told if isinstance(dim, str)}


def page_of(bound: str, pages: str) -> str | None:
    """Returns the dim, or the number as text, that says how many places a page has where rows of so many `pages` are up to `bound` long; None where a page is a single place, or nothing says so."""
    named = expression.names(bound)
    if pages not in named or len(named) > 2:
        return None
    if len(named) == 2:
        return next(name for name in named if name != pages)
    more, fewer = (expression.value(bound, {pages: count}) for count in (2, 1))
    return str(more - fewer) if more - fewer > 1 else None


def is_bounded(given: TensorInput) -> bool:
    """Tells whether an input holds integers that are drawn up to an expression of dims."""
    return given["init"]["kind"] == "randint" and isinstance(given["init"]["high"], str)


def bound_of(given: TensorInput) -> str:
    """Returns what the integers of an input are drawn up to, which is an expression of dims; nothing for others."""
    init = given["init"]
    high = init["high"] if init["kind"] in ("randint", "distinct", "unique_between") else ""
    return high if isinstance(high, str) else ""


def dim_of(given: TensorInput) -> str | None:
    """Returns the dim that the integers of an input point along, None where they point along none."""
    bound = bound_of(given)
    return bound if bound and expression.names(bound) == [bound] else None


def is_free(paging: Paging, dense: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Returns where the cache is free, as booleans that broadcast over it."""
    import torch

    cache, table = dense[paging.cache], dense[paging.table]
    pages, places = cache.shape[paging.page], cache.shape[paging.place]
    rows = table.reshape(-1, table.shape[-1]).long()
    at = torch.arange(rows.shape[1] * places, device=cache.device).view(1, -1, places)
    is_used = at < dense[paging.lengths].reshape(-1, 1, 1)
    slots = rows.unsqueeze(-1) * places + torch.arange(places, device=cache.device)
    free = torch.ones(pages * places, dtype=torch.bool, device=cache.device)
    # Where pages are less than nothing no row lies.
    free[slots[is_used & (rows >= 0).unsqueeze(-1)]] = False
    shape = [1] * cache.dim()
    shape[paging.page], shape[paging.place] = pages, places
    free = free.view(pages, places)
    return (free if paging.page < paging.place else free.t()).reshape(shape)


def ending_within(paging: Paging, dense: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Returns the lengths with those of rows that end in the middle of a page, but for rows that have none."""
    says, pages, places = dense[paging.lengths], dense[paging.table].shape[-1], dense[paging.cache].shape[paging.place]
    full = (says // places).clamp(max=max(pages - 1, 0))
    return (full * places + places // 2).where(says > 0, says)

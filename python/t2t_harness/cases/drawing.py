"""The values of an input, as its `init` describes them: drawn from a generator that the case's name decides.

The same generator gives the same bits in every process on devices of one class, so no library for matrices has a part in it.
torch is imported only inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import (
        Init,
        InitBlockSparse,
        InitConstant,
        InitDistinct,
        InitFile,
        InitIllConditioned,
        InitLowRank,
        InitMask,
        InitNormal,
        InitOffsets,
        InitOnes,
        InitPermutation,
        InitRandint,
        InitSorted,
        InitTriangular,
        InitUniform,
        InitUnique,
        InitUniqueBetween,
        Quantity,
        TensorInput,
    )

Shape = Sequence[int]


def drawn(init: Init, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str) -> torch.Tensor:
    """Returns dense values on `device`, as the bound `init` says. Raises ValueError where no init is called so."""
    maker = MAKERS.get(init["kind"])
    if maker is None:
        raise ValueError(f"no init is called `{init['kind']}`")
    return maker(init, list(shape), dtype, generator, device)


def bounds(init: Init) -> tuple[int, int]:
    """Returns the least and the greatest integer that the bound `init` of random ones, in order or not, or of offsets draws."""
    own = init["of"] if init["kind"] == "sorted" else init
    if own["kind"] == "offsets":
        return 0, _whole(own["total"])
    if own["kind"] != "randint":
        raise ValueError(f"`{own['kind']}` draws no integers between bounds")
    return int(_number(own["low"])), int(_number(own["high"])) - 1


def allowed(given: TensorInput) -> tuple[float, float]:
    """Returns the least and the largest finite number that an input may hold as it is declared."""
    init = given["init"]
    low, high = (init["low"], init["high"]) if init["kind"] == "uniform" else (-math.inf, math.inf)
    if isinstance(low, str) or isinstance(high, str):
        # Bounds of integers: they are lengths of dims.
        return (math.inf, -math.inf)
    return (low, high)


def moved(values: torch.Tensor, by: float, to: float) -> torch.Tensor:
    """Returns `values` times `by` plus `to`, without the operations that would change nothing: a device has to load each."""
    scaled = values if by == 1 else values.mul(by)
    return scaled if to == 0 else scaled.add(to)


def _number(bound: Quantity) -> float:
    """Returns a number of a bound init, an integer as it is. Raises ValueError for an expression, which is not bound."""
    if isinstance(bound, str):
        raise ValueError(f"`{bound}` is not bound")
    return bound


def _whole(bound: Quantity) -> int:
    """Returns an integer of a bound init. Raises ValueError for anything else."""
    if not isinstance(bound, int):
        raise ValueError(f"`{bound}` is no integer")
    return bound


def _randn(shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str) -> torch.Tensor:
    import torch

    return torch.randn(shape, generator=generator, dtype=_drawn_in(dtype), device=device)


def _drawn_in(dtype: torch.dtype) -> torch.dtype:
    import torch

    return dtype if dtype.is_complex or dtype is torch.float64 else torch.float32


def _normal(
    init: InitNormal, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    return moved(_randn(shape, dtype, generator, device), _number(init["std"]), _number(init["mean"])).to(dtype)


def _uniform(
    init: InitUniform, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    import torch

    values = torch.rand(shape, generator=generator, dtype=_drawn_in(dtype), device=device)
    low, high = _number(init["low"]), _number(init["high"])
    return moved(values, high - low, low).to(dtype)


def _randint(
    init: InitRandint, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    import torch

    low, high = _whole(init["low"]), _whole(init["high"])
    return torch.randint(low, max(high, low + 1), list(shape), generator=generator, device=device).to(dtype)


def _constant(
    init: InitConstant, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    import torch

    return torch.full(list(shape), _number(init["value"]), dtype=dtype, device=device)


def _ones(init: InitOnes, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str) -> torch.Tensor:
    import torch

    return torch.ones(list(shape), dtype=dtype, device=device)


def _permutation(
    init: InitPermutation, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Each row holds the integers below its length, in random order."""
    import torch

    keys = torch.rand(list(shape), generator=generator, dtype=torch.float64, device=device)
    return keys.argsort(dim=-1, stable=True).to(dtype) if keys.dim() > 0 else torch.zeros_like(keys).to(dtype)


def _distinct(
    init: InitDistinct, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Each row holds integers between two bounds in random order, none twice. Where a row is longer than there are such, larger ones follow."""
    import torch

    low, length = _whole(init["low"]), shape[-1]
    count = max(_whole(init["high"]) - low, length)
    keys = torch.rand([*shape[:-1], count], generator=generator, dtype=torch.float64, device=device)
    return (keys.argsort(dim=-1, stable=True)[..., :length] + low).to(dtype)


def _sorted(
    init: InitSorted, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """What another init draws, each row in ascending order."""
    values = drawn(init["of"], shape, dtype, generator, device)
    return values.sort(dim=-1).values if values.dim() > 0 else values


def _offsets(
    init: InitOffsets, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Each row holds 0, integers in ascending order, and the total: the ends of segments of so many rows, of which some may have none."""
    import torch

    total = _whole(init["total"])
    values = torch.randint(0, total + 1, list(shape), generator=generator, device=device).sort(dim=-1).values
    return between(values, total).to(dtype)


def between(values: torch.Tensor, total: int) -> torch.Tensor:
    """Returns offsets: `values`, which are in ascending order along the last dim, with 0 for the first one of each row and `total` for the last, where there are two."""
    values[..., -1:] = total
    values[..., :1] = 0
    return values


def _unique(
    init: InitUnique, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Values around zero, no two equal as far as the dtype has so many."""
    import torch

    count = math.prod(shape)
    order = torch.randperm(count, generator=generator, device=device).reshape(list(shape))
    if not dtype.is_floating_point:
        return (order - (count // 2 if dtype.is_signed else 0)).to(dtype)
    if dtype in (torch.float16, torch.bfloat16):
        return _patterns(order, dtype)
    return ((order - count // 2).double() * (8 / max(count, 1))).to(dtype)


def _unique_between(
    init: InitUniqueBetween, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Integers between two bounds in random order, none twice in the whole tensor. Where it has more elements than there are such, larger ones follow."""
    import torch

    low, length = _whole(init["low"]), math.prod(shape)
    count = max(_whole(init["high"]) - low, length)
    order = torch.randperm(count, generator=generator, device=device)[:length]
    return (order + low).reshape(list(shape)).to(dtype)


def _patterns(order: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns the 16-bit floats whose magnitudes are the next ones above 1/256, with both signs."""
    import torch

    first = torch.tensor(1 / 256, dtype=dtype).view(torch.int16).item()
    span = int(torch.tensor(256.0, dtype=dtype).view(torch.int16).item() - first)
    bits = (first + (order // 2) % span).to(torch.int16)
    signs: torch.Tensor = (1 - 2 * (order % 2)).to(dtype)
    return bits.view(dtype).mul(signs)


def _mask(init: InitMask, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str) -> torch.Tensor:
    import torch

    values = torch.rand(list(shape), generator=generator, dtype=torch.float64, device=device)
    return values.lt(_number(init["p"])).to(dtype)


def _triangular(
    init: InitTriangular, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Normal values on one side of the diagonal of the last two dims and on it, zeros on the other; of booleans, true."""
    import torch

    values = torch.ones(list(shape), dtype=dtype, device=device) if not dtype.is_floating_point else None
    values = _randn(shape, dtype, generator, device).to(dtype) if values is None else values
    return values.tril() if init["side"] == "lower" else values.triu()


def _block_sparse(
    init: InitBlockSparse, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Normal values in some of the square blocks of the last two dims, zeros in the others; of booleans, true."""
    import torch

    block = int(_number(init["block"]))
    grid = [*shape[:-2], *(-(-length // block) for length in shape[-2:])]
    kept = torch.rand(grid, generator=generator, dtype=torch.float64, device=device) < _number(init["density"])
    wide: torch.Tensor = kept.repeat_interleave(block, -2).repeat_interleave(block, -1)
    wide = wide[..., : shape[-2], : shape[-1]]
    if not dtype.is_floating_point:
        return wide.to(dtype)
    values = _randn(shape, dtype, generator, device).to(dtype)
    return torch.where(wide, values, torch.zeros_like(values))


def _low_rank(
    init: InitLowRank, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """The sum of so many outer products of normal vectors, of unit variance, over the last two dims."""
    import torch

    rank = max(int(_number(init["rank"])), 1)
    columns = torch.randn([*shape[:-2], shape[-2], rank], generator=generator, dtype=torch.float64, device=device)
    rows = torch.randn([*shape[:-2], rank, shape[-1]], generator=generator, dtype=torch.float64, device=device)
    values = torch.zeros(list(shape), dtype=torch.float64, device=device)
    for one in range(rank):
        values += columns[..., :, one : one + 1] * rows[..., one : one + 1, :]
    return (values / math.sqrt(rank)).to(dtype)


def _ill_conditioned(
    init: InitIllConditioned, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str
) -> torch.Tensor:
    """Matrices whose singular values fall evenly, in their logarithms, from 1 to the inverse of the condition: a diagonal
    between two reflections."""
    import torch

    height, width = shape[-2], shape[-1]
    count = min(height, width)
    values = torch.zeros(list(shape), dtype=torch.float64, device=device)
    if values.numel() == 0:
        return values.to(dtype)
    steps = torch.arange(count, dtype=torch.float64, device=device) / max(count - 1, 1)
    values.diagonal(dim1=-2, dim2=-1).copy_(torch.pow(float(_number(init["condition"])), -steps))
    left, right = (_unit([*shape[:-2], length], generator, device) for length in (height, width))
    projected = (left[..., :, None] * values).sum(-2, keepdim=True)
    values = values - 2 * left[..., :, None] * projected
    projected = (values * right[..., None, :]).sum(-1, keepdim=True)
    return (values - 2 * projected * right[..., None, :]).to(dtype)


def _unit(shape: Shape, generator: torch.Generator, device: str) -> torch.Tensor:
    import torch

    values = torch.randn(list(shape), generator=generator, dtype=torch.float64, device=device)
    return values / (values * values).sum(-1, keepdim=True).sqrt()


def _file(init: InitFile, shape: Shape, dtype: torch.dtype, generator: torch.Generator, device: str) -> torch.Tensor:
    """Values of a safetensors file. Along a dim that is shorter than the file's they end earlier, along a longer one they
    begin again."""
    from safetensors import safe_open

    with safe_open(init["path"], "pt") as stored:
        if init["name"] not in stored.keys():  # noqa: SIM118 - the file is no mapping
            raise ValueError(f"{init['path']} has no tensor `{init['name']}`")
        values = stored.get_tensor(init["name"])
    if values.dim() != len(shape):
        raise ValueError(f"`{init['name']}` has {values.dim()} dims, the input has {len(shape)}")
    return _wrapped(values, shape).to(dtype).to(device)


def _wrapped(values: torch.Tensor, shape: Shape) -> torch.Tensor:
    import torch

    for dim, length in enumerate(shape):
        if values.shape[dim] != length:
            if values.shape[dim] == 0:
                raise ValueError("a tensor without elements has no values for an input")
            values = values.index_select(dim, torch.arange(length) % values.shape[dim])
    return values


Maker = Callable[..., "torch.Tensor"]

MAKERS: dict[str, Maker] = {
    "normal": _normal,
    "uniform": _uniform,
    "randint": _randint,
    "constant": _constant,
    "ones": _ones,
    "permutation": _permutation,
    "distinct": _distinct,
    "sorted": _sorted,
    "offsets": _offsets,
    "unique": _unique,
    "unique_between": _unique_between,
    "mask": _mask,
    "triangular": _triangular,
    "block_sparse": _block_sparse,
    "low_rank": _low_rank,
    "ill_conditioned": _ill_conditioned,
    "file": _file,
}
"""What draws the values of each kind of `init`."""

"""Checks the element-wise and row kernels (add, gelu, softmax, layernorm) against torch, on Triton's interpreter."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F

VARIANTS = ["v1_baseline", "v2_tiling", "v3_coalesced", "v4_optimized"]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-3}
INF, NAN = float("inf"), float("nan")

pytestmark = [
    pytest.mark.parametrize("variant", VARIANTS),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
]


def module(op: str, variant: str) -> ModuleType:
    return import_module(f"kernels.{op}.{variant}")


def wrapper(op: str, variant: str) -> Callable[..., torch.Tensor]:
    entry: Callable[..., torch.Tensor] = getattr(module(op, variant), f"triton_{op}")
    return entry


def assert_same(out: torch.Tensor, torch_out: torch.Tensor, oracle: torch.Tensor) -> None:
    """Asserts a check's verdict: torch's shape and dtype, the oracle's NaN and inf, torch's values or better ones."""
    assert type(out) is torch.Tensor
    assert (out.shape, out.dtype) == (torch_out.shape, torch_out.dtype)
    rounded = oracle.to(out.dtype)
    assert torch.equal(out.isnan(), rounded.isnan())
    assert torch.equal(out[out.isinf()], rounded[rounded.isinf()])
    finite = rounded.isfinite() & torch_out.isfinite()
    if torch.allclose(out[finite], torch_out[finite], atol=TOLERANCE[out.dtype], rtol=TOLERANCE[out.dtype]):
        return
    error = (out[finite].double() - oracle[finite]).abs().max()
    torch_error = (torch_out[finite].double() - oracle[finite]).abs().max()
    ulp = torch.finfo(out.dtype).eps * oracle[finite].abs().max()
    assert error <= 2 * torch_error + ulp


def double(value: object) -> object:
    return value.double() if isinstance(value, torch.Tensor) else value


def assert_op(op: str, variant: str, torch_op: Callable[..., torch.Tensor], **arguments: object) -> None:
    inputs = [(value, value.clone()) for value in arguments.values() if isinstance(value, torch.Tensor)]
    out = wrapper(op, variant)(**arguments)
    oracle = torch_op(**{name: double(value) for name, value in arguments.items()})
    assert_same(out, torch_op(**arguments), oracle)
    for value, before in inputs:
        assert torch.equal(value.nan_to_num(), before.nan_to_num())


# The lengths lie below, at, above and off the multiples of every block that an element-wise variant has (128 to 4096).
FLAT_LENGTHS = [0, 1, 2, 127, 128, 129, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 5000]


@pytest.mark.parametrize("length", FLAT_LENGTHS)
def test_add_takes_any_length(variant: str, length: int) -> None:
    assert_op("add", variant, torch.add, input=torch.randn(length), other=torch.randn(length), alpha=0.5)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 0, 2), (7, 5), (2, 3, 4, 5), (16, 16)])
def test_add_takes_any_shape(variant: str, shape: tuple[int, ...]) -> None:
    assert_op("add", variant, torch.add, input=torch.randn(shape), other=torch.randn(shape))


@pytest.mark.parametrize(
    ("shape", "other_shape"),
    [((5, 7), (7,)), ((5, 1), (1, 7)), ((5, 7), ()), ((), (3,)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((1,), (129,))],
)
def test_add_broadcasts_as_torch_does(variant: str, shape: tuple[int, ...], other_shape: tuple[int, ...]) -> None:
    assert_op("add", variant, torch.add, input=torch.randn(shape), other=torch.randn(other_shape), alpha=-2)


def test_add_takes_transposed_and_strided_views(variant: str) -> None:
    assert_op("add", variant, torch.add, input=torch.randn(33, 17).T, other=torch.randn(17, 33), alpha=3)
    assert_op("add", variant, torch.add, input=torch.randn(40, 60)[1::2, ::3], other=torch.randn(20, 20).T)
    assert_op("add", variant, torch.add, input=torch.randn(300)[7:], other=torch.randn(293).flip(0))


def test_add_takes_a_number(variant: str) -> None:
    assert_op("add", variant, torch.add, input=torch.randn(9, 9), other=2.5, alpha=2)


def test_add_promotes_dtypes(variant: str) -> None:
    half, single = torch.randn(20, 20).half(), torch.randn(20, 20)
    assert wrapper("add", variant)(half, single).dtype is torch.float32
    assert_op("add", variant, torch.add, input=half, other=single, alpha=0.5)
    assert_op("add", variant, torch.add, input=half, other=torch.randn(20).half(), alpha=0.5)


def test_add_handles_extreme_values(variant: str) -> None:
    x = torch.tensor([INF, -INF, NAN, 1e4, -1e4, 3e38, INF, 0.0])
    y = torch.tensor([1.0, 1.0, 1.0, 1e4, 1e-4, 3e38, -INF, -0.0])
    assert_op("add", variant, torch.add, input=x, other=y)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("length", FLAT_LENGTHS)
def test_gelu_takes_any_length(variant: str, approximate: str, length: int) -> None:
    assert_op("gelu", variant, F.gelu, input=3 * torch.randn(length), approximate=approximate)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_takes_any_shape_and_stride(variant: str, approximate: str) -> None:
    for shape in [(), (0, 3), (2, 3, 4, 5), (16, 16)]:
        assert_op("gelu", variant, F.gelu, input=torch.randn(shape), approximate=approximate)
    assert_op("gelu", variant, F.gelu, input=torch.randn(33, 17).T, approximate=approximate)
    assert_op("gelu", variant, F.gelu, input=torch.randn(40, 60)[1::2, ::3], approximate=approximate)
    assert_op("gelu", variant, F.gelu, input=torch.randn(16, 16).half(), approximate=approximate)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_handles_extreme_values(variant: str, approximate: str) -> None:
    x = torch.tensor([INF, -INF, NAN, 1e4, -1e4, 1e30, -1e30, 0.0, 88.0, -88.0, 5.5, -5.5, 1e-30])
    assert_op("gelu", variant, F.gelu, input=x, approximate=approximate)


def test_gelu_refuses_an_unknown_approximation(variant: str) -> None:
    with pytest.raises(ValueError, match="`none` or `tanh`, not `sigmoid`"):
        wrapper("gelu", variant)(torch.randn(3), approximate="sigmoid")


# Below, at, above and off the multiples of the tiles (1024 elements at least), and rows longer than any tile (16384).
ROW_LENGTHS = [1, 2, 15, 16, 17, 250, 256, 257, 1023, 1024, 1025, 2500, 4097, 16384, 16385, 40000]


@pytest.mark.parametrize("length", ROW_LENGTHS)
def test_softmax_takes_rows_of_any_length(variant: str, length: int) -> None:
    assert_op("softmax", variant, torch.softmax, input=torch.randn(3, length), dim=-1)


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 15, 17, 65])
def test_softmax_takes_any_number_of_rows(variant: str, rows: int) -> None:
    assert_op("softmax", variant, torch.softmax, input=torch.randn(rows, 64), dim=1)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_softmax_takes_any_dim(variant: str, dim: int) -> None:
    assert_op("softmax", variant, torch.softmax, input=torch.randn(5, 33, 18), dim=dim)


@pytest.mark.parametrize("length", [1023, 1025, 5000, 16385])
def test_softmax_takes_long_rows_of_an_outer_dim(variant: str, length: int) -> None:
    assert_op("softmax", variant, torch.softmax, input=torch.randn(2, length, 3), dim=1)


def test_softmax_takes_any_shape_and_stride(variant: str) -> None:
    for shape in [(), (1,), (0,), (0, 3), (3, 0), (7,), (2, 3, 4, 5)]:
        assert_op("softmax", variant, torch.softmax, input=torch.randn(shape), dim=-1)
    assert_op("softmax", variant, torch.softmax, input=torch.randn(33, 17).T, dim=-1)
    assert_op("softmax", variant, torch.softmax, input=torch.randn(33, 17).T, dim=0)
    assert_op("softmax", variant, torch.softmax, input=torch.randn(40, 60)[1::2, ::3], dim=-1)


def test_softmax_takes_a_dtype(variant: str) -> None:
    x = torch.randn(5, 40)
    assert_op("softmax", variant, torch.softmax, input=x.half(), dim=-1)
    assert_same(
        wrapper("softmax", variant)(x.half(), -1, torch.float32),
        x.half().float().softmax(-1),
        x.half().double().softmax(-1),
    )
    assert wrapper("softmax", variant)(x, -1, dtype=torch.float16).dtype is torch.float16


def test_softmax_refuses_a_dim_out_of_range(variant: str) -> None:
    with pytest.raises(IndexError):
        wrapper("softmax", variant)(torch.randn(3, 4), dim=2)


@pytest.mark.parametrize("length", [5, 3000, 20000])
def test_softmax_handles_extreme_values(variant: str, length: int) -> None:
    x = torch.randn(9, length)
    x[0] *= 1e4
    x[1] = 1e4
    x[2, -1] = NAN
    x[3, 2] = INF
    x[4] = -INF
    x[5, : length // 2] = -INF
    x[6, length // 2 :] = -INF
    x[7, 0], x[7, -1] = INF, -INF
    x[8, 1:] = -INF
    assert_op("softmax", variant, torch.softmax, input=x, dim=-1)


def layernorm_arguments(shape: tuple[int, ...], trailing: int = 1, eps: float = 1e-5) -> dict[str, Any]:
    normalized_shape = shape[len(shape) - trailing :]
    weight, bias = torch.randn(normalized_shape), torch.randn(normalized_shape)
    return {
        "input": torch.randn(shape),
        "normalized_shape": list(normalized_shape),
        "weight": weight,
        "bias": bias,
        "eps": eps,
    }


@pytest.mark.parametrize("length", ROW_LENGTHS)
def test_layernorm_takes_rows_of_any_length(variant: str, length: int) -> None:
    assert_op("layernorm", variant, F.layer_norm, **layernorm_arguments((3, length)))


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 15, 17, 65])
def test_layernorm_takes_any_number_of_rows(variant: str, rows: int) -> None:
    assert_op("layernorm", variant, F.layer_norm, **layernorm_arguments((rows, 64)))


@pytest.mark.parametrize("length", [40, 20000])
@pytest.mark.parametrize(("weight", "bias"), [(False, False), (True, False), (False, True)])
def test_layernorm_does_without_weight_or_bias(variant: str, length: int, weight: bool, bias: bool) -> None:
    arguments = layernorm_arguments((4, length), eps=0.1)
    absent = {name: None for name, is_given in (("weight", weight), ("bias", bias)) if not is_given}
    assert_op("layernorm", variant, F.layer_norm, **(arguments | absent))


def test_layernorm_takes_several_trailing_dims(variant: str) -> None:
    for trailing in (1, 2, 3):
        assert_op("layernorm", variant, F.layer_norm, **layernorm_arguments((3, 5, 7), trailing))
    x = torch.randn(6, 10)
    assert_same(wrapper("layernorm", variant)(x, (10,)), F.layer_norm(x, (10,)), F.layer_norm(x.double(), (10,)))


def test_layernorm_takes_empty_and_strided_inputs(variant: str) -> None:
    assert_op("layernorm", variant, F.layer_norm, **layernorm_arguments((0, 8)))
    assert_op("layernorm", variant, F.layer_norm, **layernorm_arguments((1,)))
    arguments = layernorm_arguments((17, 33))
    strided = {"weight": torch.randn(66)[::2], "bias": torch.randn(33, 2)[:, 1]}
    for x in (torch.randn(33, 17).T, torch.randn(34, 99)[::2, ::3], torch.randn(1, 33).expand(17, 33)):
        assert_op("layernorm", variant, F.layer_norm, **(arguments | strided | {"input": x}))


def test_layernorm_rounds_half_precision_once(variant: str) -> None:
    arguments = layernorm_arguments((6, 50))
    halves = {name: value.half() for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    assert_op("layernorm", variant, F.layer_norm, **(arguments | halves))


def test_layernorm_refuses_a_shape_that_the_input_does_not_end_in(variant: str) -> None:
    with pytest.raises(ValueError, match="does not end in normalized_shape"):
        wrapper("layernorm", variant)(torch.randn(3, 4), [3])


@pytest.mark.parametrize("length", [5, 3000, 20000])
def test_layernorm_handles_extreme_values(variant: str, length: int) -> None:
    arguments = layernorm_arguments((7, length))
    x = arguments["input"]
    x[0] *= 1e4
    x[1] += 1e4
    x[2] = 12345.678
    x[3, -1] = NAN
    x[4, 0] = INF
    x[5, 2] = -INF
    x[6, 0] = 1e4
    assert_op("layernorm", variant, F.layer_norm, **arguments)


@pytest.mark.parametrize("length", [7, 250, 3001, 20001])
def test_layernorm_of_equal_values_is_exactly_the_bias(variant: str, length: int) -> None:
    arguments = layernorm_arguments((20, length))
    x = (1e4 * torch.randn(20, 1)).expand(20, length)
    out = wrapper("layernorm", variant)(**(arguments | {"input": x}))
    assert torch.equal(out, arguments["bias"].expand(20, length))


@pytest.mark.parametrize("op", ["add", "gelu", "softmax", "layernorm"])
def test_every_configuration_is_right(variant: str, op: str, choose_config: Callable[[int], None]) -> None:
    for index in range(1, len(getattr(module(op, variant), "CONFIGS", []))):
        choose_config(index)
        x, y = torch.randn(67, 131), torch.randn(131)
        if op == "add":
            assert_op("add", variant, torch.add, input=x, other=y, alpha=0.5)
        elif op == "gelu":
            assert_op("gelu", variant, F.gelu, input=x, approximate="tanh")
        elif op == "softmax":
            assert_op("softmax", variant, torch.softmax, input=x, dim=-1)
            assert_op("softmax", variant, torch.softmax, input=x, dim=0)
        else:
            assert_op("layernorm", variant, F.layer_norm, **layernorm_arguments((67, 131)))

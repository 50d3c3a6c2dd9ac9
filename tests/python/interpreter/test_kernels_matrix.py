"""Holds the matrix product and attention kernels to torch's results on Triton's interpreter.

A result passes as in a check: close to torch's, or no row further from the float64 result than twice torch's distance.
"""

import importlib
import math
from collections.abc import Callable

import pytest
import torch

VARIANTS = ["v1_baseline", "v2_tiling", "v3_coalesced", "v4_optimized"]
TOLERANCE = {torch.float32: (1e-5, 1e-5), torch.float16: (1e-3, 1e-3)}
attention = torch.nn.functional.scaled_dot_product_attention


@pytest.fixture(params=VARIANTS)
def matmul(request: pytest.FixtureRequest) -> Callable[..., torch.Tensor]:
    return importlib.import_module(f"kernels.matmul.{request.param}").triton_matmul


@pytest.fixture(params=VARIANTS)
def mha(request: pytest.FixtureRequest) -> Callable[..., torch.Tensor]:
    return importlib.import_module(f"kernels.mha.{request.param}").triton_mha


def assert_right(out: torch.Tensor, expected: torch.Tensor, oracle: torch.Tensor) -> None:
    assert type(out) is torch.Tensor
    assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
    atol, rtol = TOLERANCE[out.dtype]
    if out.numel() == 0 or torch.allclose(out, expected, atol=atol, rtol=rtol):
        return
    oracle = oracle.to(out.dtype).double()
    ulp = oracle.abs().amax(-1) * torch.finfo(out.dtype).eps
    allowed = 2 * (expected - oracle).abs().amax(-1) + ulp
    assert bool(((out - oracle).abs().amax(-1) <= allowed).all())


def assert_multiplies(matmul: Callable[..., torch.Tensor], a: torch.Tensor, b: torch.Tensor) -> None:
    before = a.clone(), b.clone()
    out = matmul(input=a, other=b)
    assert_right(out, torch.matmul(a, b), torch.matmul(a.double(), b.double()))
    assert torch.equal(a, before[0])
    assert torch.equal(b, before[1])


def assert_attends(
    mha: Callable[..., torch.Tensor], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **kwargs: object
) -> None:
    out = mha(query=q, key=k, value=v, **kwargs)
    oracle = attention(q.double(), k.double(), v.double(), **kwargs)
    assert_right(out, attention(q, k, v, **kwargs), oracle)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (2, 2, 2), (16, 16, 16), (15, 17, 33), (2, 127, 3), (2, 128, 16), (1, 129, 17), (3, 513, 2)],
    ids=str,
)
def test_matmul_takes_lengths_below_at_and_above_blocks(
    matmul: Callable[..., torch.Tensor], m: int, n: int, k: int
) -> None:
    assert_multiplies(matmul, normal(m, k), normal(k, n))


@pytest.mark.parametrize("shape", [(65, 2, 2), (129, 1, 2), (2, 2, 65), (2, 2, 129), (2, 65, 33)], ids=str)
def test_matmul_takes_long_sides_one_at_a_time(
    matmul: Callable[..., torch.Tensor], shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    assert_multiplies(matmul, normal(m, k), normal(k, n))


def test_matmul_accumulates_float16_in_float32(matmul: Callable[..., torch.Tensor]) -> None:
    assert_multiplies(matmul, normal(9, 200, dtype=torch.float16), normal(200, 20, dtype=torch.float16))


def test_matmul_over_no_terms_is_zero(matmul: Callable[..., torch.Tensor]) -> None:
    assert torch.equal(matmul(torch.empty(3, 0), torch.empty(0, 5)), torch.zeros(3, 5))


@pytest.mark.parametrize(("m", "n"), [(0, 4), (4, 0), (0, 0)])
def test_matmul_takes_empty_results(matmul: Callable[..., torch.Tensor], m: int, n: int) -> None:
    assert_multiplies(matmul, normal(m, 3), normal(3, n))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (lambda: normal(20, 9).T, lambda: normal(18, 20).T),
        (lambda: normal(9, 40)[:, ::2], lambda: normal(20, 36)[:, ::2]),
        (lambda: normal(18, 20)[::2], lambda: normal(40, 18)[::2]),
        (lambda: normal(9, 1).expand(9, 20), lambda: normal(1, 18).expand(20, 18)),
        (lambda: normal(9, 21)[:, 1:], lambda: normal(21, 19)[1:, 1:]),
    ],
    ids=["transposed", "strided columns", "strided rows", "expanded", "offset"],
)
def test_matmul_takes_any_strides(
    matmul: Callable[..., torch.Tensor], a: Callable[[], torch.Tensor], b: Callable[[], torch.Tensor]
) -> None:
    assert_multiplies(matmul, a(), b())


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 5, 4), (2, 3, 4, 6)),
        ((2, 1, 5, 4), (3, 4, 6)),
        ((5, 4), (3, 4, 6)),
        ((0, 5, 4), (4, 6)),
        ((4,), (4, 6)),
        ((5, 4), (4,)),
        ((2, 5, 4), (4,)),
        ((4,), (2, 4, 6)),
        ((4,), (4,)),
    ],
    ids=str,
)
def test_matmul_broadcasts_leading_dims_as_torch_does(
    matmul: Callable[..., torch.Tensor], a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    assert_multiplies(matmul, normal(*a), normal(*b))


def test_matmul_keeps_infinities_and_nans_where_torch_has_them(matmul: Callable[..., torch.Tensor]) -> None:
    a, b = normal(4, 3), normal(3, 4)
    a[1, 2], a[2, 0] = math.inf, math.nan
    out, expected = matmul(a, b), torch.matmul(a, b)
    assert torch.equal(out.isnan(), expected.isnan())
    assert torch.equal(out.isinf(), expected.isinf())
    assert torch.equal(out[out.isinf()], expected[expected.isinf()])


def test_matmul_refuses_what_torch_refuses(matmul: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(ValueError, match="cannot be multiplied"):
        matmul(normal(2, 3), normal(2, 3))
    with pytest.raises(ValueError, match="cannot be multiplied"):
        matmul(torch.tensor(1.0), normal(2, 3))
    with pytest.raises(TypeError, match="float32, float16 or bfloat16"):
        matmul(normal(2, 3), normal(3, 2, dtype=torch.float16))


@pytest.mark.parametrize("s", [1, 2, 15, 16, 17, 33])
def test_mha_takes_lengths_below_at_and_above_blocks(mha: Callable[..., torch.Tensor], s: int) -> None:
    assert_attends(mha, normal(1, 2, s, 16), normal(1, 2, s, 16), normal(1, 2, s, 16))


@pytest.mark.parametrize(("m", "n"), [(1, 63), (2, 64), (1, 65), (2, 129), (65, 2), (129, 1), (17, 40)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_mha_takes_keys_of_another_length(mha: Callable[..., torch.Tensor], m: int, n: int, is_causal: bool) -> None:
    assert_attends(mha, normal(1, 1, m, 8), normal(1, 1, n, 8), normal(1, 1, n, 8), is_causal=is_causal)


@pytest.mark.parametrize("d", [1, 3, 16, 33, 80])
def test_mha_takes_any_head_size(mha: Callable[..., torch.Tensor], d: int) -> None:
    assert_attends(mha, normal(2, 1, 5, d), normal(2, 1, 6, d), normal(2, 1, 6, d))


def test_mha_takes_values_of_another_head_size(mha: Callable[..., torch.Tensor]) -> None:
    assert_attends(mha, normal(1, 2, 5, 24), normal(1, 2, 6, 24), normal(1, 2, 6, 40))


@pytest.mark.parametrize("is_causal", [False, True])
def test_mha_crosses_tiles_of_keys(mha: Callable[..., torch.Tensor], is_causal: bool) -> None:
    assert_attends(mha, normal(1, 1, 70, 16), normal(1, 1, 140, 16), normal(1, 1, 140, 16), is_causal=is_causal)


@pytest.mark.parametrize(
    ("scale", "is_causal"), [(1.0, False), (0.3, False), (0.3, True), (1, True), (0.0, False)], ids=str
)
def test_mha_honours_the_scale(mha: Callable[..., torch.Tensor], scale: float, is_causal: bool) -> None:
    assert_attends(mha, normal(1, 1, 9, 16), normal(1, 1, 9, 16), normal(1, 1, 9, 16), scale=scale, is_causal=is_causal)


def test_mha_honours_a_negative_scale(mha: Callable[..., torch.Tensor]) -> None:
    q, k, v = normal(1, 1, 9, 16), normal(1, 1, 9, 16), normal(1, 1, 9, 16)
    expected = attention(-q, k, v, scale=3.0)
    assert_right(mha(q, k, v, scale=-3.0), expected, attention(-q.double(), k.double(), v.double(), scale=3.0))


def test_mha_computes_float16_in_float32(mha: Callable[..., torch.Tensor]) -> None:
    q, k, v = (normal(1, 2, 20, 32, dtype=torch.float16) for _ in range(3))
    assert_attends(mha, q, k, v)
    assert_attends(mha, q, k, v, is_causal=True)


@pytest.mark.parametrize("magnitude", [1e2, 1e4, 1e8])
def test_mha_is_stable_for_large_logits(mha: Callable[..., torch.Tensor], magnitude: float) -> None:
    q, k = normal(1, 1, 12, 16).sign() * magnitude, normal(1, 1, 20, 16).sign()
    out, expected = mha(q, k, normal(1, 1, 20, 16)), attention(q, k, normal(1, 1, 20, 16))
    assert bool(out.isfinite().all()) and bool(expected.isfinite().all())
    v = normal(1, 1, 20, 16)
    assert_attends(mha, q, k, v)


def test_mha_of_equal_rows_is_their_mean(mha: Callable[..., torch.Tensor]) -> None:
    q, k, v = torch.full((1, 1, 5, 16), 3.0), torch.full((1, 1, 7, 16), 2.0), normal(1, 1, 7, 16)
    assert torch.allclose(mha(q, k, v), v.mean(2, keepdim=True).expand(1, 1, 5, 16), atol=1e-6)


def test_mha_without_keys_is_zero(mha: Callable[..., torch.Tensor]) -> None:
    out = mha(normal(1, 2, 3, 16), torch.empty(1, 2, 0, 16), torch.empty(1, 2, 0, 16))
    assert torch.equal(out, torch.zeros(1, 2, 3, 16))


@pytest.mark.parametrize("shape", [(0, 2, 3, 16), (2, 0, 3, 16), (2, 2, 0, 16)], ids=str)
def test_mha_takes_empty_results(mha: Callable[..., torch.Tensor], shape: tuple[int, ...]) -> None:
    assert mha(*(torch.empty(shape) for _ in range(3))).shape == shape


@pytest.mark.parametrize(
    "view",
    [
        lambda: normal(2, 9, 3, 16).transpose(1, 2),
        lambda: normal(2, 3, 16, 9).transpose(2, 3),
        lambda: normal(2, 3, 9, 32)[..., ::2],
        lambda: normal(1, 1, 9, 16).expand(2, 3, 9, 16),
    ],
    ids=["heads inside", "transposed", "strided", "expanded"],
)
def test_mha_takes_any_strides(mha: Callable[..., torch.Tensor], view: Callable[[], torch.Tensor]) -> None:
    q, k, v = view(), view(), view()
    before = [t.clone() for t in (q, k, v)]
    assert_attends(mha, q, k, v)
    assert all(torch.equal(t, b) for t, b in zip((q, k, v), before, strict=True))


def test_mha_refuses_masks_and_dropout(mha: Callable[..., torch.Tensor]) -> None:
    q = normal(1, 1, 2, 16)
    with pytest.raises(NotImplementedError, match="attn_mask"):
        mha(q, q, q, attn_mask=torch.zeros(2, 2))
    with pytest.raises(NotImplementedError, match="dropout_p"):
        mha(q, q, q, dropout_p=0.5)
    with pytest.raises(ValueError, match="4 dims"):
        mha(q[0], q[0], q[0])
    with pytest.raises(ValueError, match="fit together"):
        mha(q, normal(1, 1, 2, 8), q)
    with pytest.raises(TypeError, match="dtypes differ"):
        mha(q, q.half(), q)


@pytest.mark.parametrize("index", range(6))
def test_every_configuration_is_right(choose_config: Callable[[int], None], index: int) -> None:
    choose_config(index)
    matmul = importlib.import_module("kernels.matmul.v4_optimized").triton_matmul
    mha = importlib.import_module("kernels.mha.v4_optimized").triton_mha
    assert_multiplies(matmul, normal(150, 70), normal(70, 300))
    q, k, v = normal(1, 1, 70, 16), normal(1, 1, 90, 16), normal(1, 1, 90, 16)
    assert_attends(mha, q, k, v, scale=0.3)
    assert_attends(mha, q, k, v, is_causal=True)

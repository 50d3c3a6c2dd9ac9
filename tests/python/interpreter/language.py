"""Kernels in the manner of libraries, each with what it must compute: run as a program, it says of each how it went on the harness's interpreter.

A kernel of which the compiler or the interpreter takes something otherwise says the reason that a check would give.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language import arange, load, store
from triton.language.extra import libdevice
from triton.language.extra.libdevice import rsqrt
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

from t2t_harness.faults import lacking
from t2t_harness.triton import interpreting

THREE = tl.constexpr(3)
SIZE = 16

results: dict[str, str | None] = {}


def case(function: Callable[[], None]) -> None:
    """Runs `function` at once and keeps None, or what was wrong."""
    torch.manual_seed(0)
    try:
        function()
        results[function.__name__] = None
    except Exception as error:
        results[function.__name__] = lacking.reason(error) or f"own: {error!r}"


def values(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (SIZE,)))


def same(found: torch.Tensor, right: torch.Tensor, within: float = 0.0) -> None:
    torch.testing.assert_close(found, right, rtol=0, atol=within, equal_nan=True)


interpreting.install()


@triton.jit
def and_kernel(x_ptr, out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = (i >= low) and (i < high)
    outside = not inside
    both = WHOLE or inside
    x = tl.load(x_ptr + i, mask=inside or outside, other=0.0)
    tl.store(out_ptr + i, tl.where(both and not (i > 4 and i < 6), x, -1.0), mask=i < BLOCK and i >= 0)


@case
def and_or_not_of_blocks() -> None:
    x, out, i = values(), torch.empty(SIZE), torch.arange(SIZE)
    and_kernel[(1,)](x, out, 3, 11, WHOLE=False, BLOCK=SIZE)
    same(out, torch.where((i >= 3) & (i < 11) & (i != 5), x, -1.0))
    and_kernel[(1,)](x, out, 3, 11, WHOLE=True, BLOCK=SIZE)
    same(out, torch.where(i != 5, x, -1.0))


@triton.jit
def masked_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    r, c = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    mask = r < rows and c < columns
    x = tl.load(x_ptr + r * columns + c, mask=mask, other=0.0)
    tl.store(out_ptr + r * columns + c, x * 2, mask=mask)


@triton.jit
def truth_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    total = tl.sum(x, axis=0)
    missing = (x != x) & (total != total)
    tl.store(out_ptr + i, tl.where((total != total) | missing, 1.0, 0.0) + tl.where(missing, 1.0, 0.0))


@case
def a_comparison_of_a_block_and_one_of_a_sum() -> None:
    x, out = values(), torch.empty(SIZE)
    x[3] = float("nan")
    for given in (x, x.bfloat16()):
        truth_kernel[(1,)](given, out, BLOCK=SIZE)
        same(out, given.isnan().float() + 1)
        truth_kernel[(1,)](given.nan_to_num(), out, BLOCK=SIZE)
        same(out, torch.zeros(SIZE))


@case
def and_of_a_row_and_a_column() -> None:
    # Far enough to leave the memory of a tensor where a part of the mask is lost.
    x = values(3, 5)
    out = torch.zeros(3, 5)
    masked_kernel[(1,)](x, out, 3, 5, BLOCK=8)
    same(out, x * 2)


@triton.jit
def library_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = libdevice.tanh(x) + rsqrt(tl.abs(x) + 1) + tl.extra.cuda.libdevice.erf(x) * THREE
    y = tl.where(libdevice.isnan(x), 0.0, y)
    tl.store(out_ptr + i, libdevice.pow(tl.abs(y), 0.5), mask=i < n)


@case
def libdevice_by_all_its_names() -> None:
    x, out = values(), torch.empty(SIZE)
    library_kernel[(1,)](x, out, SIZE, BLOCK=SIZE)
    same(out, (x.tanh() + (x.abs() + 1).rsqrt() + 3 * x.erf()).abs().sqrt(), within=1e-6)


@triton.jit
def least_of(dtype: tl.constexpr):
    kind = dtype.value
    if kind.is_floating():
        value: tl.constexpr = float("-inf")
        return value
    bits: tl.constexpr = kind.primitive_bitwidth
    value: tl.constexpr = -(2 ** (bits - 1))
    return value


@triton.jit
def least_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    least = least_of(x_ptr.dtype.element_ty)
    x = tl.load(x_ptr + i, mask=i < n, other=least)
    tl.store(out_ptr, tl.max(x, 0).to(tl.float32) + least_of(tl.int32).to(tl.float32))


@case
def a_helper_that_returns_a_constant() -> None:
    x, out = -values().abs() - 1, torch.empty(1)
    least_kernel[(1,)](x, out, 5, BLOCK=SIZE)
    same(out, (x[:5].max() - 2.0**31).reshape(1))


@triton.jit
def scalar_kernel(out_ptr, n, alpha, flag, nothing, pair, BLOCK: tl.constexpr):
    total = n.to(tl.float32) * alpha.to(tl.float32)
    if flag:
        total += 1
    if nothing is not None:
        total += 100
    first, second = pair
    for j in range(0, n, 2):
        total += j.to(tl.float32)
    for j in tl.range(2, num_stages=2):
        total += j.to(tl.float32)
    for j in tl.static_range(2):
        total += j
    arm = 1.5 if n > 3 else 0.0
    bound: tl.float32 = 0.0
    bound += min(n, BLOCK) + max(n, BLOCK)
    tl.store(out_ptr, total + first + second)
    tl.store(out_ptr + 1, arm.to(tl.float32) + bound)


@case
def numbers_are_scalars() -> None:
    out = torch.empty(2)
    scalar_kernel[(1,)](out, 5, 0.5, True, None, (1, 2.0), BLOCK=8)
    same(out, torch.tensor([2.5 + 1 + 6 + 1 + 1 + 3, 1.5 + 13]))


@triton.jit
def half_kernel(x_ptr, out_ptr, alpha, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * alpha)


@case
def a_number_of_a_launch_is_a_float() -> None:
    # A constant would keep the product in float16, a scalar of the launch does not.
    x, out = torch.full((SIZE,), 0.1).half(), torch.empty(SIZE)
    half_kernel[(1,)](x, out, 3.0, BLOCK=SIZE)
    same(out, x.float() * 3.0)


@triton.jit
def better(value, index, other, other_index):
    is_better = value > other or (value == other and index < other_index)
    return tl.where(is_better, value, other), tl.where(is_better, index, other_index)


@triton.jit
def better_by_if(value, index, other, other_index):
    if value > other:
        best, at = value, index
    else:
        best, at = other, other_index
    return best, at


@triton.jit
def reduce_kernel(x_ptr, i_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x, own = tl.load(x_ptr + i), tl.load(i_ptr + i)
    best, at = tl.reduce((x, own), -1, better)
    _, at_if = tl.reduce((x, own), 1, better_by_if)
    tl.store(out_ptr + tl.arange(0, BLOCK), at)
    tl.store(out_ptr + BLOCK + tl.arange(0, BLOCK), at_if)
    all_best, all_at = tl.reduce((tl.reshape(x, (BLOCK * BLOCK,)), tl.reshape(own, (BLOCK * BLOCK,))), 0, better)
    tl.store(out_ptr + 2 * BLOCK, all_at)


@case
def reductions_of_two_operands() -> None:
    x, own, out = values(8, 8), torch.randperm(64, dtype=torch.int32).reshape(8, 8), torch.empty(17, dtype=torch.int32)
    reduce_kernel[(1,)](x, own, out, BLOCK=8)
    right = own.gather(1, x.argmax(1, keepdim=True)).flatten()
    same(out, torch.cat([right, right, own.flatten()[x.argmax()].reshape(1)]))


@triton.jit
def philox_kernel(out_ptr, seed, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for word in tl.static_range(4):
        tl.store(out_ptr + word * (BLOCK + 1) + i, tl.randint4x(seed, i, ROUNDS)[word])
        tl.store(out_ptr + word * (BLOCK + 1) + BLOCK, tl.randint4x(seed, tl.program_id(0), ROUNDS)[word])


def philox(seed: int, counter: int, rounds: int) -> list[int]:
    """The words that Random123 makes of a counter of one word, as integers without bounds."""
    words, low, high = [counter, 0, 0, 0], seed & 0xFFFFFFFF, seed >> 32
    for _ in range(rounds):
        first, third = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [
            (third >> 32) ^ words[1] ^ low,
            third & 0xFFFFFFFF,
            (first >> 32) ^ words[3] ^ high,
            first & 0xFFFFFFFF,
        ]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return words


@case
def words_of_philox() -> None:
    # The first known answer of Random123 1.14 for philox4x32 (tests/kat_vectors).
    assert philox(0, 0, 10) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    for seed in (0, 7, (5 << 32) + 11):
        for rounds in (10, 7):
            out = torch.empty(4 * (SIZE + 1), dtype=torch.uint32)
            philox_kernel[(1,)](out, seed, ROUNDS=rounds, BLOCK=SIZE)
            right = [philox(seed, counter, rounds) for counter in (*range(SIZE), 0)]
            assert out.reshape(4, SIZE + 1).T.tolist() == right


@triton.jit
def composed(a, b, c, d):
    return c * a, c * b + d


@triton.jit
def scan_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    _, state = tl.associative_scan((x, y), 0, composed)
    _, back = tl.associative_scan((x, y), -1, composed, reverse=True)
    tl.store(out_ptr + i, state)
    tl.store(out_ptr + BLOCK + i, back)


def recurrent(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    state, states = torch.zeros(()), []
    for a, b in zip(x, y, strict=True):
        state = a * state + b
        states.append(state)
    return torch.stack(states)


@case
def scans_of_two_operands() -> None:
    x, y, out = values(), values(), torch.empty(2 * SIZE)
    scan_kernel[(1,)](x, y, out, BLOCK=SIZE)
    same(out, torch.cat([recurrent(x, y), recurrent(x.flip(0), y.flip(0)).flip(0)]), within=1e-4)


@triton.jit
def imported_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = arange(0, BLOCK)
    store(out_ptr + i, load(x_ptr + i) + 1)


@case
def functions_imported_one_by_one() -> None:
    x, out = values(), torch.empty(SIZE)
    imported_kernel[(1,)](x, out, BLOCK=SIZE)
    same(out, x + 1)


def made(activation: Any) -> Any:
    @triton.jit
    def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, activation(tl.load(x_ptr + i)))

    return kernel


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


@case
def a_kernel_that_closes_over_a_function() -> None:
    x, out = values(), torch.empty(SIZE)
    made(relu)[(1,)](x, out, BLOCK=SIZE)
    same(out, x.relu())


GENERATED = """from __future__ import annotations
import triton
import triton.language as tl

@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
"""


@case
def kernels_made_at_run_time() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "generated.py"
        file.write_text(GENERATED)
        spec = importlib.util.spec_from_file_location("generated", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    linecache.cache["<generated>"] = (len(GENERATED), None, GENERATED.splitlines(keepends=True), "<generated>")
    scope: dict[str, Any] = {"__name__": "generated_too"}
    exec(compile(GENERATED, "<generated>", "exec"), scope)
    for kernel in (module.doubled, scope["doubled"]):
        x, out = values(), torch.empty(SIZE)
        kernel[(1,)](x, out, SIZE, BLOCK=SIZE)
        same(out, x * 2)


@triton.autotune(configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)
    else:
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@case
def launchers_ask_for_types_and_attributes() -> None:
    assert isinstance(tuned_kernel, Autotuner) and isinstance(tuned_kernel.fn, Heuristics)
    kernel = tuned_kernel.fn.fn
    assert isinstance(kernel, JITFunction) and isinstance(kernel, triton.JITFunction)
    assert not isinstance(tuned_kernel, JITFunction) and not isinstance(made, JITFunction)
    assert kernel.arg_names == ["x_ptr", "out_ptr", "n", "BLOCK", "EVEN"]
    assert [one.name for one in kernel.params if one.is_constexpr] == ["BLOCK", "EVEN"] and kernel.constexprs == [3, 4]
    assert kernel.src.startswith("def tuned_kernel(") and len(kernel.cache_key) == 64
    assert kernel.__globals__ is globals() and kernel.__module__ == __name__ and kernel.__qualname__ == "tuned_kernel"
    assert not hasattr(kernel, "device_caches") and not hasattr(kernel, "no_such_thing")
    x, out = values(), torch.empty(13)
    tuned_kernel.fn[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, out, 13, BLOCK=8)
    same(out, x[:13] + 1)


@case
def a_grid_is_a_list_or_asks_for_tensors() -> None:
    x, out = values(), torch.empty(SIZE)
    imported_kernel[[1]](x, out, BLOCK=SIZE)
    imported_kernel[lambda meta: (meta["x_ptr"].numel() // meta["BLOCK"],)](x, out, BLOCK=SIZE)
    launched = imported_kernel[(1,)](x, out.zero_(), BLOCK=SIZE)
    launched[(1,)](x, out.zero_(), SIZE)
    imported_kernel.run(x, out, grid=(1,), warmup=False, BLOCK=SIZE)
    same(out, x + 1)


class Pointer:
    """Stands for a tensor with another shape, as libraries have it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.dtype = tensor, tensor.dtype

    def data_ptr(self) -> int:
        return self.tensor.data_ptr()


@case
def an_argument_that_only_points() -> None:
    x, out = values(), torch.empty(SIZE)
    imported_kernel[(1,)](Pointer(x), Pointer(out), BLOCK=SIZE)
    same(out, x + 1)


@case
def a_kernel_in_an_operator_of_torch() -> None:
    @torch.library.triton_op("t2t_test::plus_one", mutates_args={})
    def plus_one(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        torch.library.wrap_triton(imported_kernel)[(1,)](x, out, BLOCK=SIZE)
        return out

    x = values()
    same(plus_one(x), x + 1)


@triton.jit
def nan_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.maximum(x, 0.0))
    tl.store(out_ptr + BLOCK + i, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out_ptr + 2 * BLOCK + i, tl.clamp(x, 0.0, 1.0))
    tl.store(out_ptr + 3 * BLOCK + i, tl.clamp(x, 0.0, 1.0, propagate_nan=tl.PropagateNan.ALL))


@case
def the_greater_of_nan_and_a_number_is_the_number() -> None:
    x, out = values(), torch.empty(4 * SIZE)
    x[3] = float("nan")
    nan_kernel[(1,)](x, out, BLOCK=SIZE)
    plain = x.nan_to_num(0.0)
    same(out, torch.cat([plain.relu(), x.relu(), plain.clamp(0, 1), x.clamp(0, 1)]))


@triton.jit
def divided_kernel(x_ptr, y_ptr, out_ptr, rest_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(out_ptr + at, x // y)
    tl.store(rest_ptr + at, x % y)


@case
def a_whole_number_divided_by_zero_has_all_bits_set() -> None:
    x, y = torch.tensor([7, -7, 7, 0], dtype=torch.int32), torch.tensor([2, 2, 0, 0], dtype=torch.int32)
    out, rest = torch.empty_like(x), torch.empty_like(x)
    divided_kernel[(1,)](x, y, out, rest, BLOCK=4)
    assert out.tolist() == [3, -3, -1, -1], out
    assert rest.tolist() == [1, -1, -1, -1], rest


@triton.jit
def fused_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.fma(x, x, -(x * x)))


@case
def a_fused_product_is_rounded_once() -> None:
    x, out = values(), torch.empty(SIZE)
    fused_kernel[(1,)](x, out, BLOCK=SIZE)
    same(out, (x.double() ** 2 - (x * x).double()).float())


@triton.jit
def narrow_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, x + y)
    tl.store(out_ptr + BLOCK + i, x * y - 0.1)
    tl.store(out_ptr + 2 * BLOCK + i, tl.where(x > y, x, -y))
    tl.store(out_ptr + 3 * BLOCK + i, tl.exp(x.to(tl.float32)).to(tl.bfloat16))
    tl.store(out_ptr + 4 * BLOCK + i, tl.maximum(x, y) / y)
    tl.store(out_ptr + 5 * BLOCK + i, tl.sum(x.to(tl.float32)) + tl.max(y) + tl.full((BLOCK,), 0.1, tl.bfloat16))
    tl.store(out_ptr + 6 * BLOCK + i, tl.fma(x, y, x))
    tl.store(out_ptr + 7 * BLOCK + i, (i * 1001).to(tl.bfloat16))


@case
def bfloat16_is_rounded_after_each_operation() -> None:
    x, y, out = values().bfloat16(), values().bfloat16(), torch.empty(8, SIZE).bfloat16()
    narrow_kernel[(1,)](x, y, out, BLOCK=SIZE)
    tenth = torch.tensor(0.1).bfloat16()
    right = [x + y, x * y - tenth, torch.where(x > y, x, -y), x.float().exp().bfloat16()]
    right.append((torch.maximum(x, y).float() / y.float()).bfloat16())
    right.append((x.float().sum() + y.float().max() + tenth.float().expand(SIZE)).bfloat16())
    right.append((x.double() * y.double() + x.double()).float().bfloat16())
    right.append((torch.arange(SIZE) * 1001).bfloat16())
    same(out, torch.stack(right))


@triton.jit
def narrow_sum_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.static_assert(tl.sum(x).dtype == x_ptr.dtype.element_ty)
    tl.store(out_ptr, tl.sum(x).to(tl.float32))


@case
def a_sum_of_narrow_floats_is_rounded_at_each_step() -> None:
    # Half an ulp of 1024 and of 128: two of them are seen where they meet first, one is not.
    for kind, large, least in ((torch.float16, 1024.0, 0.5), (torch.bfloat16, 128.0, 0.5)):
        x, out = torch.tensor([large, least, 0.0, least], dtype=kind), torch.empty(1)
        narrow_sum_kernel[(1,)](x, out, BLOCK=4)
        same(out, torch.tensor([large]))


@triton.jit
def narrow_dot_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + i, tl.dot(tl.load(x_ptr + i), tl.load(y_ptr + i)))


@case
def products_of_bfloat16_are_summed_in_float32() -> None:
    x, y, out = values(16, 16).bfloat16(), values(16, 16).bfloat16(), torch.empty(16, 16)
    narrow_dot_kernel[(1,)](x, y, out, BLOCK=16)
    same(out, (x.double() @ y.double()).float(), within=1e-5)


@triton.jit
def narrow_atomic_kernel(out_ptr, x_ptr):
    tl.atomic_add(out_ptr, tl.load(x_ptr))


@case
def an_atomic_sum_in_bfloat16() -> None:
    narrow_atomic_kernel[(1,)](torch.zeros(1).bfloat16(), torch.ones(1).bfloat16())


@triton.jit
def sorted_kernel(x_ptr, i_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.sort(x, descending=True))
    tl.store(out_ptr + BLOCK + i, tl.gather(x, tl.load(i_ptr + i), 0))
    tl.store(out_ptr + 2 * BLOCK + i, tl.cumsum(x, 0, reverse=True))
    tl.store(out_ptr + 3 * BLOCK + i, tl.flip(x, 0))


@case
def sorting_gathering_and_sums() -> None:
    x, order, out = values(), torch.randperm(SIZE, dtype=torch.int32), torch.empty(4 * SIZE)
    sorted_kernel[(1,)](x, order, out, BLOCK=SIZE)
    sums = x.flip(0).cumsum(0).flip(0)
    same(out, torch.cat([x.sort(descending=True)[0], x[order.long()], sums, x.flip(0)]), within=1e-5)


@triton.jit
def assembly_kernel(out_ptr):
    x = tl.load(out_ptr)
    tl.store(out_ptr, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], tl.float32, is_pure=True, pack=1))


@case
def inline_assembly() -> None:
    assembly_kernel[(1,)](torch.zeros(1))


@triton.jit
def reciprocal_kernel(out_ptr):
    tl.store(out_ptr, tl.extra.cuda.libdevice.rcp64h(tl.load(out_ptr)))


@case
def a_library_function_that_is_not_there() -> None:
    reciprocal_kernel[(1,)](torch.zeros(1, dtype=torch.float64))


@case
def an_attribute_of_a_compiled_kernel() -> None:
    _ = imported_kernel.warmup(torch.float32, torch.float32, SIZE, grid=(1,)).n_regs


@triton.jit
def chained_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i, mask=0 <= i < n)


@case
def a_chained_comparison() -> None:
    chained_kernel[(1,)](torch.zeros(SIZE), 5, BLOCK=SIZE)


@triton.jit
def block_if_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if i < n:
        tl.store(out_ptr + i, i)


@case
def a_condition_on_a_block() -> None:
    block_if_kernel[(1,)](torch.zeros(SIZE), 5, BLOCK=SIZE)


@triton.jit
def unequal_kernel(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i + tl.arange(0, 2 * BLOCK))


@case
def blocks_of_unequal_lengths() -> None:
    unequal_kernel[(1,)](torch.zeros(SIZE), BLOCK=SIZE)


@triton.jit
def attribute_kernel(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i.missing)


@case
def an_attribute_that_no_block_has() -> None:
    attribute_kernel[(1,)](torch.zeros(SIZE), BLOCK=SIZE)


@triton.jit
def nameless_kernel(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, nowhere.exp(i))  # noqa: F821


@case
def a_name_that_nothing_has() -> None:
    nameless_kernel[(1,)](torch.zeros(SIZE), BLOCK=SIZE)


@triton.jit
def misspelt_kernel(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.expp(i))


@case
def an_attribute_that_no_module_has() -> None:
    misspelt_kernel[(1,)](torch.zeros(SIZE), BLOCK=SIZE)


@triton.jit
def assert_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    assert i < n, "too short"
    tl.store(out_ptr + i, i)


@case
def an_assertion_of_the_kernel() -> None:
    assert_kernel[(1,)](torch.zeros(SIZE), 5, BLOCK=SIZE)


@triton.jit
def static_assert_kernel(out_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 8, "too long")


@case
def an_assertion_of_the_compiler() -> None:
    static_assert_kernel[(1,)](torch.zeros(SIZE), BLOCK=SIZE)


@case
def what_a_wrapper_raises() -> None:
    raise ValueError("of the wrapper")


@case
def what_a_wrapper_raises_after_the_interpreter() -> None:
    try:
        assembly_kernel[(1,)](torch.zeros(1))
    except Exception as error:
        raise RuntimeError("the launch failed") from error


@case
def a_grid_of_fractions() -> None:
    imported_kernel[(1.5,)](values(), torch.empty(SIZE), BLOCK=SIZE)


@case
def a_launch_without_warps() -> None:
    imported_kernel[(1,)](values(), torch.empty(SIZE), BLOCK=SIZE, num_warps=0)


@case
def what_torch_raises() -> None:
    values(3).view(2, 2)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    json.dump(results, sys.stdout)

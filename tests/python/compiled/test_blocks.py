"""What the compiler makes of `and`, `or`, `not`, of conditions and of numbers: the interpreter is given the same (tests/python/interpreter/language.py)."""

from __future__ import annotations

import re
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def words(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i >= low and i < high or not (i > 3 or i < 3)
    tl.store(out_ptr + i, i, mask=WHOLE or mask and i < BLOCK)


@triton.jit
def signs(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = ((i >= low) & (i < high)) | (~((i > 3) | (i < 3)))
    tl.store(out_ptr + i, i, mask=mask & (i < BLOCK))


@triton.jit
def whole(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = ((i >= low) & (i < high)) | (~((i > 3) | (i < 3)))  # noqa: F841
    tl.store(out_ptr + i, i, mask=True)


@triton.jit
def chained(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i, mask=low <= i < high)


@triton.jit
def block_if(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if i < high:
        tl.store(out_ptr + i, i)


@triton.jit
def integers_joined(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    if low and high:
        tl.store(out_ptr, low)


@triton.jit
def missing(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.arange(0, BLOCK).missing)


@triton.jit
def twice(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    a = b = low
    tl.store(out_ptr, a + b)


@triton.jit
def counting(out_ptr, low, high, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    for j in range(0, high):
        tl.store(out_ptr + j, j.to(tl.int32))
    arm = 1 if high > 3 else 0
    tl.store(out_ptr, arm.to(tl.int32))


@triton.jit
def half(x_ptr, out_ptr, alpha, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * alpha)


def ttir(kernel: Any, whole_: bool = False) -> str:
    """Returns the first stage of a kernel, without places and names."""
    signature = {"out_ptr": "*i32", "low": "i32", "high": "i32", "WHOLE": "constexpr", "BLOCK": "constexpr"}
    return stage(kernel, signature, {"WHOLE": whole_, "BLOCK": 16})


def stage(kernel: Any, signature: dict[str, str], constants: dict[str, Any]) -> str:
    source = ASTSource(kernel, signature=signature, constexprs=constants)
    text = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]
    plain = re.sub(r' ?loc\([^)]*\)+|^#.*$|"[^"]*"', "", text, flags=re.MULTILINE).replace(kernel.__name__, "kernel")
    names: dict[str, str] = {}
    return re.sub(r"%[\w]+", lambda found: names.setdefault(found[0], f"%{len(names)}"), plain)


@pytest.fixture(autouse=True)
def cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.mark.filterwarnings("ignore:Logical operators")
def test_and_or_not_of_blocks_are_those_of_their_elements() -> None:
    assert ttir(words) == ttir(signs)
    assert "arith.andi" in ttir(words) and "arith.ori" in ttir(words)


@pytest.mark.filterwarnings("ignore:Logical operators")
def test_a_constant_decides_as_in_python() -> None:
    assert ttir(words, whole_=True) == ttir(whole, whole_=True)


@pytest.mark.parametrize("kernel", [chained, block_if, integers_joined, missing, twice], ids=lambda one: one.__name__)
def test_the_compiler_refuses_what_the_interpreter_is_made_to_refuse(kernel: Any) -> None:
    with pytest.raises((triton.CompilationError, AssertionError, TypeError)):
        ttir(kernel)


def test_what_is_counted_and_chosen_is_a_scalar() -> None:
    assert "scf.for" in ttir(counting)


def test_a_number_of_a_launch_makes_a_product_of_halves_a_float() -> None:
    signature = {"x_ptr": "*fp16", "out_ptr": "*fp32", "alpha": "fp32", "BLOCK": "constexpr"}
    assert "arith.extf" in stage(half, signature, {"BLOCK": 16})
    signature["alpha"] = "constexpr"
    assert "arith.mulf" in (text := stage(half, signature, {"BLOCK": 16, "alpha": 3.0}))
    assert text.index("arith.mulf") < text.index("arith.extf")


@triton.jit
def narrow(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x * x - x)
    tl.store(out_ptr + i, tl.exp(x.to(tl.float32)).to(tl.bfloat16))


def test_operations_of_bfloat16_have_results_of_bfloat16_rounded_to_nearest() -> None:
    signature = {"x_ptr": "*bf16", "out_ptr": "*bf16", "BLOCK": "constexpr"}
    source = ASTSource(narrow, signature=signature, constexprs={"BLOCK": 128})
    stages = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm
    assert re.search(r"arith.mulf .*xbf16>", stages["ttir"]) and re.search(r"arith.subf .*xbf16>", stages["ttir"])
    assert "cvt.rn.bf16" in stages["ptx"]

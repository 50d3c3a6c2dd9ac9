"""Honest kernels in the ways that torch and Triton themselves recommend, which pass; and failures whose words are the interpreter's, which are not excused by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, tensor, verdict

COPY = """
@triton.jit
def kernel(x_ptr, out_ptr, M, N, sm, sn, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < M * N
    x = tl.load(x_ptr + i // N * sm + i % N * sn, mask=mask)
    tl.store(out_ptr + i, x, mask=mask)


def wrapper(input, p=0.5, training=False):
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](input, out, *input.shape, *input.stride(), BLOCK=128)
    return out
"""

TUTORIAL = """
import triton.runtime.driver
DEVICE = triton.runtime.driver.active.get_active_torch_device()
from triton.runtime import driver
properties = driver.active.utils.get_device_properties(torch.cuda.current_device())
NUM_SM = properties["multiprocessor_count"]
NUM_REGS, SIZE_SMEM, WARP = properties["max_num_regs"], properties["max_shared_mem"], properties["warpSize"]
target = triton.runtime.driver.active.get_current_target()
def is_hip():
    return triton.runtime.driver.active.get_current_target().backend == "hip"
def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"
assert is_cuda() and not is_hip()
def supports_tma():
    return is_cuda() and torch.cuda.get_device_capability()[0] >= 9
HAS=supports_tma()
kernels = {}
"""
"""What the tutorials ask of the driver when they are imported."""

OPERATOR = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, %s, mask=i < n)


@torch.library.%s("mine%s::twice", mutates_args={})
def twice(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        %s[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), BLOCK=128)
    return out


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def wrapper(input, other):
    return twice(input)
"""
"""An operator of the wrapper's own, the way that torch recommends."""

RAISES = """
def wrapper(input):
    raise KeyError("libdevice: 'active drivers' 0 active drivers ([]). There should only be one.")
"""

NAMED = """
@triton.jit
def libdevice(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def libdevice_table(input):
    return {}["libdevice"]


def wrapper(input):
    libdevice_table(input)
"""
"""A kernel and a frame whose names are those of the interpreter's parts."""


def copies(torch_name: str = "torch.clone", **kwargs: Any) -> dict[str, Any]:
    return declared(torch_name, [tensor("input", ["M", "N"])], {"M": 16, "N": 16}, kwargs=kwargs)


def doubles() -> dict[str, Any]:
    return copies("torch.mul", other=2) | {"edges": {"kwargs": None}}


@pytest.mark.parametrize(
    "op",
    [copies(), copies("torch.positive"), copies("torch.nn.functional.dropout", training=False)],
    ids=["clone", "positive", "dropout in evaluation"],
)
def test_an_identity_has_cases_that_are_fit(tmp_path: Path, op: dict[str, Any]) -> None:
    assert verdict(tmp_path / "honest", op, COPY) == (None, "")
    wrong = COPY.replace("i % N * sn", "i % N").replace("i // N * sm", "i // N * N")
    assert verdict(tmp_path / "wrong", op, wrong)[0] in ("mismatch", "nan")


def test_a_driver_may_be_asked_at_import(tmp_path: Path) -> None:
    assert verdict(tmp_path, copies(), TUTORIAL + COPY) == (None, "")


STREAM = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    stream = torch.cuda.current_stream(x.device)
    stream.wait_stream(torch.cuda.default_stream())
    with torch.cuda.device(x.device), torch.cuda.stream(stream):
        if out.numel():
            kernel[(triton.cdiv(out.numel(), 128),)](x, out, out.numel(), BLOCK=128)
    return out
"""


@pytest.mark.parametrize("launched", ["kernel", "torch.library.wrap_triton(kernel)"])
def test_a_stream_may_be_chosen_and_a_kernel_be_wrapped(tmp_path: Path, launched: str) -> None:
    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 5, "N": 24})
    assert verdict(tmp_path, op, STREAM.replace("            kernel[", f"            {launched}[")) == (None, "")


CAST = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < n).to(tl.float32)), mask=at < n)


def wrapper(input):
    x = input.contiguous()
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 256),)](x, out, out.numel(), BLOCK=256)
    return out.to(x.dtype)
"""


@pytest.mark.parametrize("allow", [[], ["_to_copy"]])
def test_what_torch_copies_of_a_kernels_result_is_told_with_what_allows_it(tmp_path: Path, allow: list[str]) -> None:
    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 5, "N": 24}, dtypes=["bfloat16"], allow=allow)
    class_, message = verdict(tmp_path, op, CAST)
    assert class_ == (None if allow else "torch-fallback")
    assert allow or "torch copied it there, by aten._to_copy" in message and "`allow: [_to_copy]`" in message


@pytest.mark.parametrize("way", ["custom_op", "triton_op"])
def test_an_operator_of_the_wrappers_own_passes_and_a_wrong_one_does_not(tmp_path: Path, way: str) -> None:
    kernel = "kernel" if way == "custom_op" else "torch.library.wrap_triton(kernel)"
    assert verdict(tmp_path / "honest", doubles(), OPERATOR % ("x + x", way, "honest", kernel)) == (None, "")
    assert verdict(tmp_path / "wrong", doubles(), OPERATOR % ("x * 3", way, "wrong", kernel))[0] == "mismatch"


@pytest.mark.parametrize("kernel", [RAISES, RAISES + "\n\nwrapper(None)\n", NAMED], ids=["call", "import", "names"])
def test_words_and_names_excuse_nothing(tmp_path: Path, kernel: str) -> None:
    found = check(tmp_path, copies(), kernel)["verdict"]
    assert (found["verdict"], found["class"]) == ("rejected", "exception")

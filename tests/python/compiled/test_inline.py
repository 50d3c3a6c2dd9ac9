"""CUDA C++ that a Python file has torch build: what torch would build, its kernels apart from torch's headers, modules in the process that calls them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import cpp_extension

from t2t_harness.counting import counting
from t2t_harness.cuda import (
    extension,
    files,
    images,
    inline,
    modules,
    noting,
    providing,
    split,
    t2t_cuda,
    watching,
)
from t2t_harness.phases import compile_inline
from t2t_harness.triton import launching

TEXT = """\
#include <torch/types.h>
#include "own.cuh"
#define STEP 2
constexpr int THREADS = 256;
static inline int blocks_of(int n) { return (n + THREADS - 1) / THREADS; }
__device__ float half_of(float x) { return x / STEP; }
namespace own {
template <typename T, int N>
__global__ void __launch_bounds__(256) halved(const T* __restrict__ x, T* y) {
#pragma unroll
  for (int i = 0; i < N; ++i) y[i] = half_of(x[i]);  // }
}
}  // namespace own
__global__ void zero(float* y);
__global__ void zero(float* y) { *y = 0; }
int counter = 0;
torch::Tensor half(torch::Tensor x) {
  zero<<<1, 1>>>(x.data_ptr<float>());
  own::halved<float, 4><<<dim3(blocks_of(4)), THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), x.data_ptr<float>());
  return x;
}
"""


def test_kernels_are_apart_from_what_needs_torchs_headers() -> None:
    found = split.halves(TEXT, "cuda.cu")
    assert "torch" not in found.device and "counter" not in found.device and "half_of(x[i])" in found.device
    assert "half_of" not in found.host and "int counter = 0;" in found.host
    for both in (
        '#include "own.cuh"',
        "#define STEP 2",
        "constexpr int THREADS = 256;",
        "blocks_of",
        "namespace own {",
    ):
        assert both in found.device and both in found.host, both
    assert "halved(const T* __restrict__ x, T* y) ;" in found.host
    assert "t2t_launch(zero, 1, 1)(x.data_ptr<float>());" in found.host
    assert "t2t_launch(own::halved<float, 4>, dim3(blocks_of(4)), THREADS, 0, at::cuda::" in found.host
    assert '#line 17 "cuda.cu"\ntorch::Tensor half' in found.host
    edited = split.halves(TEXT.replace("half_of(x[i])", "half_of(x[i] + 1)"), "cuda.cu")
    assert edited.host == found.host and edited.device != found.device, "the host half knows no body of a kernel"


def test_templates_are_made_where_the_host_half_asks_for_them() -> None:
    found = split.halves(TEXT, "cuda.cu")
    assert found.templates == {"halved"}
    symbols = ["void own::halved<float, 4>(float const*, float*)", "zero(float*)", "void at::other<int>(int)"]
    assert split.instantiated(found, symbols).endswith(
        "template __global__ void own::halved<float, 4>(float const*, float*);\n"
    )
    assert "Half.h" not in split.instantiated(found, symbols)
    assert "Half.h" in split.instantiated(found, ["void own::halved<c10::Half, 4>(c10::Half const*, c10::Half*)"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#ifdef FAST\n#endif\n", "`#ifdef` outside of functions"),
        ("__global__ void k() {\n#if TORCH_VERSION_MAJOR > 1\n#endif\n}", "may depend on headers"),
        ("static __global__ void k() {}", "a kernel is `static`"),
        ("namespace {\n__global__ void k() {}\n}", "a namespace without a name"),
        ("__global__ void k(at::Half* x) {}", "a kernel speaks of torch"),
        ("__device__ float f() { return c10::zero(); }", "on the device speaks of torch"),
        ("template <> __global__ void k<int>(int* x) {}", "is specialized"),
        ("void f() { table[0]<<<1, 1>>>(); }", "what is launched is no name"),
        ("#define RUN(k) k<<<1, 1>>>()\n", "outside of functions"),
        ("void f() { {", "braces do not match"),
        ('auto text = R"(})', "a raw string does not end"),
    ],
)
def test_what_could_mean_something_else_in_halves_is_compiled_whole(text: str, why: str) -> None:
    with pytest.raises(split.Whole, match=why):
        split.halves(text, "cuda.cu")


def test_a_condition_on_the_architecture_is_the_files_own() -> None:
    text = "#define N 4\n__global__ void k() {\n#if defined(__CUDA_ARCH__) && N > 2\n#endif\n}"
    assert "__CUDA_ARCH__" in split.halves(text, "cuda.cu").device


def test_a_type_is_whole_in_both_halves_however_it_begins() -> None:
    text = "struct __align__(16) Four { float x[4]; };\nenum class Kind : int { one };\nconst int table[] = {1, 2};\n"
    found = split.halves(text, "cuda.cu")
    assert found.host == found.device and found.host.replace("\n", "").count("}") == 3
    lines = [line for line in found.device.splitlines() if not line.startswith("#line")]
    assert "".join(lines) == text.replace("\n", "")


CALLS: list[dict[str, Any]] = [
    {"cpp_sources": "int f();", "cuda_sources": "int f() { return 1; }", "functions": "f"},
    {"cpp_sources": ["int f();", "int g();"], "cuda_sources": ["a", "b"], "functions": ["f", "g"]},
    {"cpp_sources": "int f();", "functions": {"f": "tells"}, "with_pytorch_error_handling": False},
    {"cpp_sources": "", "cuda_sources": "PYBIND11_MODULE", "no_implicit_headers": True},
]


@pytest.mark.parametrize("call", CALLS)
def test_what_is_built_has_the_texts_that_torch_writes(
    call: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cpp_extension, "_jit_compile", lambda *args, **kwargs: None)
    copied = {name: list(value) if isinstance(value, list) else value for name, value in call.items()}
    own = inline.called("m", **call)
    assert call == copied, "the caller's lists stay as they are"
    cpp_extension.load_inline("m", **call, build_directory=str(tmp_path))
    assert (tmp_path / "main.cpp").read_text() == own.main_text
    assert not own.cuda or (tmp_path / "cuda.cu").read_text() == own.cuda_text
    assert own.with_cuda == ("cuda_sources" in call)


def test_calls_are_noted_and_nothing_is_built() -> None:
    before = cpp_extension.load_inline
    with noting.recording("/") as seen:
        tensor = torch.zeros(2)
        made: Any = cpp_extension.load_inline("m", "int f();", verbose=True)
        assert made.f(tensor) is tensor
        cpp_extension.load_inline("m", ["int f();"], build_directory="/nowhere")
    assert cpp_extension.load_inline is before and [one.name for one in seen] == ["m"]
    assert inline.called("m", "int f();", extra_cflags=["-O1"]).digest() != seen[0].digest()
    with pytest.raises(inline.Refused, match="SYCL"):
        inline.called("m", "", sycl_sources="x")


def held_of(own: inline.Extension, **others: str) -> dict[str, modules.Held]:
    """Returns an archive's only module, which fits this process but for `others`."""
    return {own.digest(): modules.Held(own.name, frozenset({"k"}), b"", modules.abi() | others)}


def test_only_what_was_built_is_loaded_and_only_where_it_fits(tmp_path: Path) -> None:
    own = inline.called("m", "int f();")
    load = providing.provider(held_of(own), tmp_path)
    with pytest.raises(inline.Refused, match="`m` is given other sources or flags here .* which made `m`"):
        load("m", "int g();")
    for name, other in (("torch", "1.0"), ("python", "cpython-27"), ("cxx11", "False")):
        load = providing.provider(held_of(own, **{name: other}), tmp_path)
        with pytest.raises(inline.AbiMismatch, match=f"`m` was compiled for {name} {other}, and here is ") as refused:
            load("m", "int f();")
        assert watching.class_of(refused.value) == "abi"


def test_a_call_counts_as_a_launch_where_it_launches_a_kernel_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = counting.Counted(is_known=True)
    heard = [["k"], ["k", "sneaked_in"], ["sneaked_in"]]
    monkeypatch.setattr(counting, "_present", counted)
    monkeypatch.setattr(counting, "_leave", lambda: heard.pop(0))
    recorder, given, made = launching.Recorder(), torch.zeros(2), torch.ones(2)

    def call() -> object:
        return watching.called(recorder, "m.f", frozenset({"k"}), ([given], 1), lambda: (made,))

    assert call() == (made,)
    (launch,) = recorder.launches
    assert launch.kernel == "m.f"
    assert launch.storages == [given.untyped_storage().data_ptr(), made.untyped_storage().data_ptr()]
    call()
    assert counted.unaccounted == ["sneaked_in"] and len(recorder.launches) == 2
    call()
    assert len(recorder.launches) == 2, "without a kernel of its own a call is no launch"


def test_an_error_is_told_at_its_line_in_the_python_file(tmp_path: Path) -> None:
    own = inline.called("m", "int f();", ["int a;\nint b;\n", "int c;\nint d = x;\n"])
    (tmp_path / "v.py").write_text(f'TEXT = r"""{own.cuda[3]}"""\nOTHER = r"""{own.cuda[4]}"""\n')
    request: Any = {"root": str(tmp_path), "files": ["v.py"]}
    line = own.cuda_text.splitlines().index("int d = x;") + 1
    failure = compile_inline.refused(request, own, f'cuda.cu({line}): error: identifier "x" is undefined').record
    assert failure["place"] == {"file": "v.py", "line": 5, "column": None}
    assert (failure["class"], failure["excerpt"]) == ("compile-error", "int d = x;")
    made = compile_inline.refused(request, own, "main.cpp:2:5: error: wrong").record
    assert made["place"] is None and made["message"] == "`m`: main.cpp: wrong"


PLAIN = """\
#include <Python.h>
int two();
static PyObject* call(PyObject*, PyObject*) { return PyLong_FromLong(two()); }
static PyMethodDef functions[] = {{"two", call, METH_NOARGS, ""}, {}};
static PyModuleDef own = {PyModuleDef_HEAD_INIT, "plain", "", -1, functions};
PyMODINIT_FUNC PyInit_plain() { return PyModule_Create(&own); }
"""
KERNEL = "template <int N> __global__ void k(int* y) { *y = N; }\nint two() { k<7><<<1, 1>>>(nullptr); return 2; }\n"


@pytest.mark.skipif(t2t_cuda.find_nvcc() is None, reason="there is no nvcc here: `uv sync --extra cuda` installs it")
def test_parts_that_stay_the_same_are_not_compiled_again(tmp_path: Path) -> None:
    compiler = t2t_cuda.find_nvcc()
    assert compiler is not None
    own = extension.tools(compiler, ["sm_90a", "sm_80"])

    def built(kernel: str, parts: extension.Parts, folder: str) -> extension.Built:
        wanted = inline.called("plain", PLAIN, kernel, no_implicit_headers=True)
        return extension.build(wanted, files.sources_of(wanted, tmp_path, ()), own, parts, tmp_path / folder)

    first = extension.Parts({})
    module = built(KERNEL, first, "first")
    assert len(first.made) == 3 and module.is_whole is None
    assert sorted(module.stages) == ["sm_80", "sm_90a"] and module.stages["sm_80"]["cubin"].startswith(b"\x7fELF")
    again = extension.Parts(dict(first.used))
    assert built(KERNEL, again, "again").told == module.told and len(again.made) == 0
    edited = extension.Parts(dict(first.used))
    assert built(KERNEL.replace("*y = N", "*y = N + 1"), edited, "edited").is_whole is None
    assert len(edited.made) == 1, "a kernel's body is in the device half alone"
    whole = extension.Parts(dict(first.used))
    why = built("#if 1\n" + KERNEL + "#endif\n", whole, "whole").is_whole
    assert len(whole.made) == 1 and why == "it has `#if` outside of functions"
    with pytest.raises(extension.Failed, match="identifier"):
        built(KERNEL.replace("= N", "= M"), extension.Parts(dict(first.used)), "wrong")

    wanted = inline.called("plain", PLAIN, KERNEL, no_implicit_headers=True)
    held = modules.Held("plain", frozenset({"k"}), module.library, modules.abi())
    loaded: Any = providing.provider({wanted.digest(): held}, tmp_path / "modules")(
        "plain", PLAIN, KERNEL, no_implicit_headers=True
    )
    assert loaded.two() == 2
    seen: list[str] = []

    def watch(name: str, kernels: frozenset[str], args: tuple[object, ...], call: Any) -> object:
        seen.append(name)
        return call()

    modules.watcher = watch
    try:
        assert loaded.two() == 2 and seen == ["plain.two"]
    finally:
        modules.watcher = None


def test_an_archive_says_what_its_modules_are() -> None:
    own = inline.called("m", "int f();")
    index: images.Index = {
        "file": "v.py",
        "compiler": "nvcc",
        "architectures": [],
        "abi": {"torch": "1"},
        "modules": {own.digest(): {"name": "m", "kernels": ["k"]}},
    }
    files = {Path(images.library(own.digest())).name: b"made"}
    held = modules.held_in(index, files)[own.digest()]
    assert dataclasses.astuple(held) == ("m", frozenset({"k"}), b"made", {"torch": "1"}, ())

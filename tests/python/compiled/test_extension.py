"""Files in C++ and CUDA C++ that a Python file has torch build: what they are with what they include, and the operators that they register."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import cpp_extension

from t2t_harness.cuda import (
    extension,
    files,
    images,
    inline,
    modules,
    noting,
    operators,
    providing,
    split,
    t2t_cuda,
)
from t2t_harness.judging import watch
from t2t_harness.phases import compile_inline


def written(root: Path, **texts: str) -> None:
    """Writes files into `kernels/a`, by names in which `_` stands for the dot."""
    folder = root / "kernels/a"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text)


def flat(root: Path, file: str = "kernels/a/v.cu", known: frozenset[str] | None = None) -> files.Source:
    """Returns a file with what it includes of all that is there, or of what is `known`."""
    found = {str(path.relative_to(root)) for path in root.rglob("*.*")}
    own = files.called(str(root), "m", [file])
    return files.sources_of(own, root, found if known is None else known)[0]


def lines_of(source: files.Source) -> list[str]:
    """Returns the lines of a source that are not empty."""
    return [line for line in source.text.split("\n") if line]


def told_place(marked: str, wanted: str) -> tuple[str, int]:
    """Returns where a compiler says that a line stands."""
    place = ("", 0)
    for line in marked.split("\n"):
        if found := re.match(r'#line (\d+) "(.*)"', line):
            place = (found[2], int(found[1]) - 1)
            continue
        place = (place[0], place[1] + 1)
        if line == wanted:
            return place
    raise AssertionError(wanted)


def test_what_a_file_includes_stands_in_the_place_of_the_include(tmp_path: Path) -> None:
    written(
        tmp_path,
        v_cu='#include <torch/extension.h>\n#include "h.cuh"  // ours\n// #include "none.h"\n#include "h.cuh"\n#include "system.h"\nint v = x;\n',
        h_cuh='#pragma once\n#include "../a/i.h"\nint x;\n',
        i_h="#ifndef I_H\n#define I_H\n#if 0\n#endif\nint i;\n#endif\n",
    )
    source = flat(tmp_path)
    assert lines_of(source) == [
        "#include <torch/extension.h>",
        "#define I_H",
        "#if 0",
        "#endif",
        "int i;",
        "int x;",
        '// #include "none.h"',
        '#include "system.h"',
        "int v = x;",
    ]
    assert source.lines is not None
    places = dict(zip(source.text.split("\n"), source.lines, strict=True))
    assert places["int i;"] == ("kernels/a/i.h", 5)
    assert places["int x;"] == ("kernels/a/h.cuh", 3) and places["int v = x;"] == ("kernels/a/v.cu", 6)
    assert told_place(source.marked, "int i;") == ("kernels/a/i.h", 5)
    assert told_place(source.marked, "int v = x;") == ("kernels/a/v.cu", 6)
    # A file that no key holds is not there.
    assert '#include "h.cuh"' in flat(tmp_path, known=frozenset({"kernels/a/v.cu"})).text


@pytest.mark.parametrize(
    "text",
    [
        "#ifndef H\n#define H\n#else\n#endif\n",
        "#ifndef H\n#define G\n#endif\n",
        "#ifndef H\n#define H\n#endif\nint x;\n#ifdef G\n#endif\n",
        "int x;\n#ifndef H\n#define H\n#endif\n",
    ],
)
def test_a_condition_that_is_no_guard_stays(text: str) -> None:
    assert files.guards(split.tokens_of(text)) == set()


def test_a_file_that_includes_itself_is_the_compilers_to_refuse(tmp_path: Path) -> None:
    written(tmp_path, v_cu='int v;\n#include "v.cu"\n')
    assert lines_of(flat(tmp_path)) == ["int v;", '#include "v.cu"']


def test_halves_say_where_a_line_of_an_included_file_stands(tmp_path: Path) -> None:
    written(
        tmp_path, v_cu='#include "h.cuh"\nvoid f() { k<<<1, 1>>>(); }\n', h_cuh="\n__global__ void k() { one(); }\n"
    )
    source = flat(tmp_path)
    found = split.halves(source.text, source.file, source.lines)
    assert '#line 2 "kernels/a/h.cuh"\n__global__ void k() { one(); }' in found.device
    assert '#line 2 "kernels/a/v.cu"\nvoid f() { t2t_launch(k, 1, 1)(); }' in found.host


def test_a_build_is_known_by_paths_and_flags_and_is_the_same_in_another_clone(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        root = tmp_path / name
        written(root, v_cu="")
        here = str(root / "kernels/a")
        call = {"extra_cuda_cflags": ["-O3", f"-I{here}"], "extra_include_paths": [here], "verbose": True}
        made.append(files.called(str(root), "m", [f"{here}/v.cu"], **call))  # type: ignore[arg-type]
    assert made[0] == made[1] and made[0].digest() == made[1].digest()
    own = made[0]
    assert own.files == ("kernels/a/v.cu",) and own.include_paths == ("kernels/a",) and own.with_cuda
    assert own.cuda_cflags == ("-O3", "-Ikernels/a") and files.includes_below(own)
    root = str(tmp_path / "one")
    assert files.flags(root, [f"-I{root}", f"-I{root}s/x", f"-I/y{root}", "-DX=a/b"]) == (
        "-I.",
        f"-I{root}s/x",
        f"-I/y{root}",
        "-DX=a/b",
    )
    assert files.called(str(tmp_path / "one"), "m", "kernels/a/v.cu").files == own.files
    assert files.called(str(tmp_path), "m", ["x.cpp"]).with_cuda is False
    for path in ("/usr/x.cu", "../x.cu"):
        with pytest.raises(inline.Refused, match="which is no file of the workspace"):
            files.called(str(tmp_path), "m", [path])
    with pytest.raises(inline.Refused, match="is a program"):
        files.called(str(tmp_path), "m", ["x.cpp"], is_standalone=True)


def test_loads_are_noted_and_nothing_is_built(tmp_path: Path) -> None:
    with noting.recording(str(tmp_path)) as seen:
        module: Any = cpp_extension.load("m", ["v.cu"])
        assert module.f(1) == 1
        assert cpp_extension.load("n", ["n.cpp"], is_python_module=False) == "n.so"
    assert [one.files for one in seen] == [("v.cu",), ("n.cpp",)]
    with pytest.raises(AttributeError) as missing:
        _ = torch.ops.t2t_nobodys.forward
    assert noting.wants_operators(missing.value) and not noting.wants_operators(AttributeError("no `x`"))


def request_of(root: Path, known: list[str]) -> Any:
    """Returns what of a request the looks at a file need."""
    return {"root": str(root), "variant": {"cuda": "kernels/a/v.cu", "file": "kernels/a/v.py"}, "files": known}


def test_what_no_key_holds_is_refused_and_so_is_a_cu_that_nothing_loads(tmp_path: Path) -> None:
    other = files.called(str(tmp_path), "m", ["kernels/a/v.cu", "kernels/a/b.cpp"])
    written(tmp_path, v_cu="")
    with pytest.raises(compile_inline.Refused, match="`kernels/a/b.cpp`, which is not there"):
        compile_inline.require_found(request_of(tmp_path, ["kernels/a/v.cu"]), [other])
    written(tmp_path, b_cpp="")
    with pytest.raises(compile_inline.Refused, match=r"`m` is built of `kernels/a/b.cpp`, and no key holds it"):
        compile_inline.require_found(request_of(tmp_path, ["kernels/a/v.cu"]), [other])
    compile_inline.require_found(request_of(tmp_path, ["kernels/a/v.cu", "kernels/a/b.cpp"]), [other])
    for seen in ([], [inline.called("m", "int f();")]):
        with pytest.raises(compile_inline.Refused, match=r"kernels/a/v.py: nothing loads `v.cu`"):
            compile_inline.require_found(request_of(tmp_path, ["kernels/a/v.cu"]), seen)


def test_an_error_is_told_at_its_line_in_the_file(tmp_path: Path) -> None:
    written(tmp_path, h_cuh="int a;\nint b = x;\n")
    own = files.called(str(tmp_path), "m", ["kernels/a/v.cu"])
    told = 'kernels/a/h.cuh(2): error: identifier "x" is undefined'
    failure = compile_inline.refused(request_of(tmp_path, ["kernels/a/h.cuh"]), own, told).record
    assert failure["place"] == {"file": "kernels/a/h.cuh", "line": 2, "column": None}
    assert failure["excerpt"] == "int b = x;" and failure["message"] == '`m`: identifier "x" is undefined'


def test_a_module_that_runs_on_no_such_device_is_refused() -> None:
    own = inline.called("m", "int f();")
    index: images.Index = {
        "file": "v.cu",
        "compiler": "nvcc",
        "architectures": ["sm_80", "compute_86"],
        "abi": {},
        "modules": {own.digest(): {"name": "m", "kernels": ["k"]}},
    }
    name = Path(images.library(own.digest())).name
    held = modules.held_in(index, {name: b""})[own.digest()]
    for fits in ((8, 0), (8, 9), (9, 0)):
        modules.require_image(held, fits)
    with pytest.raises(
        images.NoImage, match="compute capability 7.5, and the kernels are compiled for compute_86, sm_80"
    ):
        modules.require_image(held, (7, 5))
    # Flags that name architectures say nothing of those, nor does a module without kernels.
    facts: list[images.ModuleFacts] = [
        {"name": "m", "kernels": ["k"], "names_architectures": True},
        {"name": "m", "kernels": []},
    ]
    for one in facts:
        index["modules"] = {own.digest(): one}
        modules.require_image(modules.held_in(index, {name: b""})[own.digest()], (7, 5))


LIBRARY = """\
#include <ATen/ATen.h>
#include <torch/library.h>
at::Tensor copied(const at::Tensor& x) { return x.clone(); }
at::Tensor computed(const at::Tensor& x) { return at::relu(x); }
TORCH_LIBRARY(t2t_unit, m) {
  m.def("copied(Tensor x) -> Tensor");
  m.def("computed(Tensor x) -> Tensor");
  m.def("composite", &computed);
}
TORCH_LIBRARY_IMPL(t2t_unit, CPU, m) {
  m.impl("copied", &copied);
  m.impl("computed", &computed);
}
"""


@pytest.mark.skipif(t2t_cuda.find_nvcc() is None, reason="there is no nvcc here: `uv sync --extra cuda` installs it")
def test_operators_of_a_library_are_the_candidates_own_and_what_they_call_is_seen(tmp_path: Path) -> None:
    compiler = t2t_cuda.find_nvcc()
    assert compiler is not None
    written(tmp_path, own_cpp=LIBRARY)
    call: Any = ("t2t_unit", ["kernels/a/own.cpp"], None, None, None, None, None, None, False, None, None, False)
    own = files.called(str(tmp_path), *call)
    sources = files.sources_of(own, tmp_path, own.files)
    made = extension.build(own, sources, extension.tools(compiler, []), extension.Parts({}), tmp_path / "built")
    held = modules.Held(own.name, frozenset({"k"}), made.library, modules.abi())

    def of_files(*args: Any) -> inline.Extension:
        return files.called(str(tmp_path), *args)

    place = providing.provider({own.digest(): held}, tmp_path / "modules", of_files)(*call)
    assert place == str(tmp_path / "modules" / own.digest()[:16] / "t2t_unit.so")
    assert {"t2t_unit::copied", "t2t_unit::computed", "t2t_unit::composite"} <= operators.BUILT

    calls: list[str] = []

    def noted(name: str, kernels: frozenset[str], args: tuple[object, ...], call: Any) -> object:
        calls.append(f"{name} {sorted(kernels)}")
        return call()

    x = torch.tensor([-1.0, 1.0])
    modules.watcher = noted
    try:
        with watch.watching(frozenset(), 0) as found:
            assert torch.ops.t2t_unit.copied(x).tolist() == [-1, 1]
        assert found.computed == {} and calls == ["t2t_unit.copied ['k']"]
        for call_of in (torch.ops.t2t_unit.computed, torch.ops.t2t_unit.computed.default, torch.ops.t2t_unit.composite):
            with watch.watching(frozenset(), 0) as found:
                assert call_of(x).tolist() == [0, 1]
            assert found.computed == {"relu": 1}, "torch computed"
    finally:
        modules.watcher = None
    assert len(calls) == 4, "each call is watched once"

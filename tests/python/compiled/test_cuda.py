"""CUDA C++: what nvcc says, which of its images a device runs, and how launches are passed and watched, with a driver made up."""

from __future__ import annotations

import concurrent.futures
import ctypes
import gzip
import io
import json
import sys
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from t2t_harness.counting import counting
from t2t_harness.cuda import images, nvcc, t2t_cuda, watching
from t2t_harness.phases import compile_cuda
from t2t_harness.triton import launching

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'scale' for 'sm_90a'
ptxas info    : Function properties for scale
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 128 bytes smem
ptxas info    : Compile time = 2.752 ms
ptxas info    : Compiling entry function 'add' for 'sm_90a'
ptxas info    : Function properties for add
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""


def test_what_ptxas_says_is_read_kernel_by_kernel() -> None:
    assert nvcc.usages(PTXAS) == [nvcc.Usage("add", 8, 0, 0), nvcc.Usage("scale", 40, 3, 128)]
    assert nvcc.usages("") == []
    assert nvcc.warnings(PTXAS + 'a.cu(3): warning #177-D: variable "x" was declared') == (
        'a.cu(3): warning #177-D: variable "x" was declared'
    )


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            'kernels/a/v.cu(7): error: identifier "foo" is undefined\n      x = foo;\n',
            nvcc.Refused("kernels/a/v.cu", 7, None, 'identifier "foo" is undefined'),
        ),
        (
            "In file included from kernels/a/v.cu:1:\nkernels/a/h.cuh:3:10: fatal error: none.h: No such file or directory\n",
            nvcc.Refused("kernels/a/h.cuh", 3, 10, "none.h: No such file or directory"),
        ),
        (
            "ptxas fatal   : Unresolved extern function 'f'\n",
            nvcc.Refused(None, None, None, "ptxas fatal   : Unresolved extern function 'f'"),
        ),
        ("", nvcc.Refused(None, None, None, "nvcc failed and said nothing")),
    ],
)
def test_the_first_error_has_its_place(told: str, expected: nvcc.Refused) -> None:
    assert nvcc.refusal(told) == expected


def test_a_device_runs_its_own_cubin_or_an_earlier_one_or_ptx() -> None:
    files = {
        name: name.encode() for name in ("sm_80.cubin", "sm_86.cubin", "sm_90a.cubin", "sm_90a.ptx", "sm_90a.sass")
    }
    assert images.image(files, (9, 0)) == b"sm_90a.cubin"
    assert images.image(files, (8, 9)) == b"sm_86.cubin"
    assert images.image(files, (8, 0)) == b"sm_80.cubin"
    with pytest.raises(images.NoImage, match="capability 10.0, and the kernels are compiled for sm_80, sm_86, sm_90a"):
        images.image(files, (10, 0))
    files |= {
        name: name.encode() for name in ("compute_75.ptx", "compute_90.ptx", "compute_100a.ptx", "compute_120.ptx")
    }
    assert images.image(files, (10, 0)) == b"compute_90.ptx\0"
    assert images.image(files, (7, 5)) == b"compute_75.ptx\0"
    with pytest.raises(images.NoImage):
        images.image(files, (7, 0))


class Driver:
    """NVIDIA's driver, as far as it is called: notes what is launched, with parameters of the given sizes."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.launched: list[tuple[Any, ...]] = []
        self.loaded: list[bytes] = []

    def cuCtxGetCurrent(self, context: Any) -> int:
        """Gives a context."""
        context._obj.value = 77
        return 0

    def cuCtxGetDevice(self, device: Any) -> int:
        """Gives the first device."""
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        """Gives compute capability 9.0."""
        value._obj.value = {t2t_cuda.MAJOR: 9, t2t_cuda.MINOR: 0}[attribute]
        return 0

    def cuModuleLoadData(self, module: Any, image: Any) -> int:
        """Notes the image."""
        self.loaded.append(image.value)
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:
        """Has one kernel."""
        function._obj.value = 5
        return 0 if name.value == b"scale" else 500

    def cuFuncGetParamInfo(self, function: Any, place: Any, offset: Any, size: Any) -> int:
        """Gives the size of a parameter."""
        if place.value >= len(self.sizes):
            return t2t_cuda.INVALID_VALUE
        size._obj.value = self.sizes[place.value]
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: Any, value: Any) -> int:
        """Notes the shared memory that is asked for."""
        self.launched.append(("attribute", attribute.value, value.value))
        return 0

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        """Notes the launch: six sides, shared memory, stream, and the bytes of each argument."""
        *sides, shared, stream, pointers, _ = rest
        values = [ctypes.string_at(pointers[place], size) for place, size in enumerate(self.sizes)]
        self.launched.append((*sides, shared, stream.value, values))
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Puts a driver with a kernel `scale(pointer, int, float, double, short)` in the place of NVIDIA's, and an image in the place of nvcc's."""
    made = Driver(8, 4, 4, 8, 2)
    monkeypatch.setattr(t2t_cuda, "_driver", made)
    monkeypatch.setattr(t2t_cuda, "provider", lambda source, capability: f"{source.name} {capability}".encode())
    monkeypatch.setattr(t2t_cuda, "stream_of", lambda stream: 0 if stream is None else int(stream))
    return made


def test_arguments_have_the_sizes_of_the_parameters(driver: Driver) -> None:
    scale = t2t_cuda.load("/somewhere/v.py").scale
    tensor = torch.zeros(4)
    scale[3, (32, 2)](tensor, -2, 0.5, 0.25, 7)
    scale[(3, 1, 2), 64, 50_000, 9](None, ctypes.c_uint32(2**32 - 1), 0.5, 0.25, 7)
    assert driver.loaded == [b"v.cu (9, 0)"]
    first, attribute, second = driver.launched
    *_, values = first
    assert first[:8] == (3, 1, 1, 32, 2, 1, 0, None)
    assert values[0] == tensor.data_ptr().to_bytes(8, "little")
    assert values[1:3] == [bytes(ctypes.c_int32(-2)), bytes(ctypes.c_float(0.5))]
    assert values[3:] == [bytes(ctypes.c_double(0.25)), bytes(ctypes.c_int16(7))]
    assert attribute == ("attribute", t2t_cuda.DYNAMIC_SHARED, 50_000)
    assert second[:8] == (3, 1, 2, 64, 1, 1, 50_000, 9) and second[8][:2] == [bytes(8), b"\xff" * 4]


class Pair(ctypes.Structure):
    """Two numbers that a kernel takes as one parameter."""

    _fields_ = (("low", ctypes.c_int32), ("high", ctypes.c_int32))


def test_a_parameter_has_the_bits_of_what_it_is_given(driver: Driver) -> None:
    scale = t2t_cuda.load("/somewhere/v.py").scale
    scale[1, 1](Pair(1, 2), 2**32 - 1, 1e300, float("inf"), 2**16 - 1)
    scale[1, 1](Pair(3, 4), -(2**31), -1.5, -0.0, -(2**15))
    scale[1, 1](-1, True, 0.1, 1, False)
    scale[1, 1](2**64 - 1, 0.5, 7, 2.0, ctypes.c_uint16(3))
    first, second, third, fourth = (launched[8] for launched in driver.launched)
    assert first == [
        bytes(Pair(1, 2)),
        b"\xff" * 4,
        bytes(ctypes.c_float(1e300)),
        bytes(ctypes.c_double(float("inf"))),
        b"\xff" * 2,
    ]
    assert second[:2] == [bytes(Pair(3, 4)), bytes(ctypes.c_int32(-(2**31)))]
    assert second[2:] == [bytes(ctypes.c_float(-1.5)), bytes(ctypes.c_double(-0.0)), bytes(ctypes.c_int16(-(2**15)))]
    assert third == [b"\xff" * 8, b"\1\0\0\0", bytes(ctypes.c_float(0.1)), bytes(ctypes.c_int64(1)), b"\0\0"]
    assert fourth == [b"\xff" * 8, bytes(ctypes.c_float(0.5)), b"\7\0\0\0", bytes(ctypes.c_double(2.0)), b"\3\0"]
    for number in (2**32, -(2**31) - 1):
        with pytest.raises(OverflowError, match=f"argument 1 of `scale` has 4 bytes, and {number} is too large"):
            scale[1, 1](None, number, 0.0, 0.0, 0)


def test_launches_of_several_threads_at_once_have_their_own_arguments(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = t2t_cuda.load("/somewhere/v.py").scale
    scale[1, 1](0, 0, 0.0, 0.0, 0)
    note, together = driver.cuLaunchKernel, threading.Barrier(8)

    def late(*arguments: Any) -> int:
        # All of them have packed what they were given.
        together.wait(timeout=60)
        return note(*arguments)

    monkeypatch.setattr(driver, "cuLaunchKernel", late)
    again = t2t_cuda.load("/somewhere/v.py").scale
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for round in range(3):
            launches = [pool.submit(again[1, 1], number, number, 0.0, 0.0, round) for number in range(8)]
            for launch in launches:
                launch.result()
    seen = sorted(
        tuple(int.from_bytes(launched[8][place], "little") for place in (4, 0, 1)) for launched in driver.launched[1:]
    )
    assert seen == [(round, number, number) for round in range(3) for number in range(8)]


def test_a_launch_goes_to_the_current_stream_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Driver()
    monkeypatch.setattr(t2t_cuda, "_driver", made)
    monkeypatch.setattr(t2t_cuda, "provider", lambda source, capability: b"")
    scale = t2t_cuda.load("/somewhere/v.py").scale
    raw = SimpleNamespace(_cuda_getDevice=lambda: 1, _cuda_getCurrentRawStream=lambda device: 40 + device)
    public = SimpleNamespace(current_stream=lambda: SimpleNamespace(cuda_stream=50))
    for torch_here in (SimpleNamespace(_C=raw), SimpleNamespace(_C=object(), cuda=public), None):
        monkeypatch.setitem(sys.modules, "torch", torch_here)
        scale[1, 1]()
    scale[1, 1, 0, SimpleNamespace(cuda_stream=60)]()
    scale[1, 1, 0, 70]()
    assert [launched[7] for launched in made.launched] == [41, 50, None, 60, 70]


def test_what_a_kernel_does_not_take_is_named(driver: Driver) -> None:
    module = t2t_cuda.load("/somewhere/v.py", "other.cu")
    with pytest.raises(TypeError, match="`scale` takes 5 arguments, and is given 2"):
        module.scale[1, 1](0, 0)
    with pytest.raises(TypeError, match="argument 0 of `scale` has 8 bytes, and is given str"):
        module.scale[1, 1]("x", 0, 0.0, 0.0, 0)
    with pytest.raises(OverflowError, match="argument 1 of `scale` has 4 bytes"):
        module.scale[1, 1](None, 2**40, 0.0, 0.0, 0)
    with pytest.raises(TypeError, match="argument 4 of `scale` has 2 bytes, and is given float"):
        module.scale[1, 1](None, 0, 0.0, 0.0, 0.5)
    with pytest.raises(t2t_cuda.CudaError, match='other.cu has no kernel `none`; is it `extern "C"`'):
        module.none[1, 1]()
    assert module.kernel("scale") is module.scale and module.kernel("source").name == "source"
    with pytest.raises(TypeError, match="is launched as in"):
        module.scale[1]
    with pytest.raises(TypeError, match="one to three sides"):
        module.scale[(1, 2, 3, 4), 1]
    module.scale[(2, 0), 1](None, 0, 0.0, 0.0, 0)
    assert driver.launched == [], "a grid of no blocks launches nothing"


def test_without_a_compiler_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(t2t_cuda, "find_nvcc", lambda: None)
    with pytest.raises(FileNotFoundError, match=r"no nvcc to compile .*v\.cu: install it .*t2t\[cuda\]"):
        t2t_cuda.compiled(tmp_path / "v.cu", (9, 0))
    request: Any = {
        "root": str(tmp_path),
        "scratch": str(tmp_path),
        "variant": {"cuda": "v.cu"},
        "architectures": ["sm_90a"],
    }
    reply = compile_cuda.compile_cuda(request)
    assert (reply["outcome"], reply["class"]) == ("rejected", "no-compiler")
    assert "t2t[cuda]" in str(reply["documents"]["failure"]["hint"])


def test_an_nvcc_of_the_environment_comes_before_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place in ("site/nvidia/cu13/bin/nvcc", "home/bin/nvcc"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
        (tmp_path / place).chmod(0o755)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert t2t_cuda.find_nvcc() == tmp_path / "site/nvidia/cu13/bin/nvcc"
    monkeypatch.setattr(sys, "path", [])
    found = t2t_cuda.find_nvcc()
    assert found == tmp_path / "home/bin/nvcc"
    (tmp_path / "home/version.json").write_text('{"cuda_cccl": {"version": "13.0.85"}, "nsight": {"version": "1"}}')
    assert found is not None and nvcc.identity(found) == "13.0.88 (cuda_cccl 13.0.85)"


EXAMPLE = Path(__file__).resolve().parents[3] / "examples/cuda/kernels/softmax/cuda_plain.cu"


@pytest.mark.skipif(t2t_cuda.find_nvcc() is None, reason="there is no nvcc here: `uv sync --extra cuda` installs it")
def test_a_file_is_compiled_where_nobody_has_done_so(tmp_path: Path) -> None:
    assert t2t_cuda.compiled(EXAMPLE, (9, 0)).startswith(b"\x7fELF")
    wrong = tmp_path / "v.cu"
    wrong.write_text("int x = y;")
    with pytest.raises(
        RuntimeError, match=r'cannot compile .*v\.cu:\n.*v\.cu\(1\): error: identifier "y" is undefined'
    ):
        t2t_cuda.compiled(wrong, (9, 0))


def archive_of(folder: Path, file: str, target: str) -> Path:
    """Returns an archive as a compile leaves it, whose cubin is its name."""
    made = [compile_cuda.Compiled(target, {"cubin": b"made"}, [])]
    index: images.Index = {"file": file, "compiler": "nvcc", "architectures": [target]}
    archive = folder / "triton.tar.gz"
    compile_cuda.pack(index, made, archive)
    return archive


def test_an_archive_is_the_same_bytes_for_the_same_content(tmp_path: Path) -> None:
    first = archive_of(tmp_path, "kernels/a/v.cu", "sm_90a").read_bytes()
    assert archive_of(tmp_path, "kernels/a/v.cu", "sm_90a").read_bytes() == first
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first))) as tar:
        names = tar.getnames()
        index = tar.extractfile("CUDA/index.json")
        assert index is not None and json.loads(index.read())["file"] == "kernels/a/v.cu"
    assert names == ["CUDA/index.json", "CUDA/sm_90a.cubin"]


def test_kernel_code_gets_what_was_compiled_of_its_own_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(t2t_cuda, "provider", None)
    archive = archive_of(tmp_path, "kernels/a/v.cu", "sm_90a")
    request: Any = {"root": str(tmp_path), "warm": [str(archive)]}
    watching.provide(request)
    given: Any = t2t_cuda.provider
    assert given(tmp_path / "kernels/a/../a/v.cu", (9, 0)) == b"made"
    with pytest.raises(
        FileNotFoundError, match=r"`w\.cu` is not the `\.cu` of this variant: what is compiled is v\.cu"
    ):
        given(tmp_path / "kernels/a/w.cu", (9, 0))
    with pytest.raises(images.NoImage) as refused:
        given(tmp_path / "kernels/a/v.cu", (8, 0))
    assert watching.class_of(refused.value) == "architecture"
    assert watching.class_of(ValueError()) == "exception"


def test_a_launch_is_recorded_with_its_tensors_and_accounts_for_its_own_kernel(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = counting.Counted(is_known=True)
    heard = [["scale"], ["scale", "sneaked_in"]]
    monkeypatch.setattr(counting, "_present", counted)
    monkeypatch.setattr(counting, "_leave", lambda: heard.pop(0) if heard else [])
    recorder = launching.Recorder()
    tensor = torch.zeros(4)

    def watch(kernel: Any, grid: Any, stream: int, args: Any, launch: Any) -> None:
        watching.watched(recorder, kernel, grid, None, args, launch)

    monkeypatch.setattr(t2t_cuda, "watcher", watch)
    scale = t2t_cuda.load("/somewhere/v.py").scale
    scale[(3, 2), 32](tensor, 1, 0.5, 0.5, 1)
    (launch,) = recorder.launches
    assert (launch.kernel, launch.grid) == ("scale", [3, 2, 1])
    assert launch.storages == [tensor.untyped_storage().data_ptr()]
    assert counted.unaccounted == []
    heard[:] = [["scale", "sneaked_in"], []]
    scale[1, 32](tensor, 1, 0.5, 0.5, 1)
    assert counted.unaccounted == ["sneaked_in"], "a kernel of another name is nobody's"
    with pytest.raises(TypeError):
        scale[1, 32](tensor)
    assert len(recorder.launches) == 2 and isinstance(recorder.faults[0], TypeError)


def test_a_variant_is_not_judged_where_it_does_not_run() -> None:
    variant: Any = {"lanes": ["cuda"], "cuda": "kernels/a/v.cu"}
    assert watching.not_judged("interpreter", variant) == "CUDA C++ runs on a CUDA device alone"
    assert watching.not_judged("cuda", variant) is None
    del variant["cuda"]
    assert watching.not_judged("interpreter", variant) == "the variant is not for the interpreter lane"


def test_the_public_module_imports_nothing_of_others() -> None:
    text = Path(t2t_cuda.__file__).read_text()
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= {"__future__", *sys.stdlib_module_names}
    assert SimpleNamespace(**vars(t2t_cuda)).provider is None

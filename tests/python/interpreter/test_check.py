"""Runs the three children of a check on small kernels, right ones and one for each way to be wrong.

Each child is a process of its own, as in a build; the interpreter of Triton runs the kernels.
"""

from __future__ import annotations

import atexit
import copy
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HARNESS = Path(__file__).resolve().parents[3] / "python"

SERVER = """
import faulthandler, json, os, sys
sys.path[:0] = sys.argv[1:]
import torch
import preloaded
from importlib import import_module
torch.set_num_threads(1)
for line in sys.stdin:
    asked = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        faulthandler.enable()
        code = 1
        try:
            reply = getattr(import_module("t2t_harness.phases." + asked["module"]), asked["function"])(asked["request"])
            open(asked["reply"], "w").write(json.dumps(reply, allow_nan=False))
            code = 0
        except SystemExit as left:
            code = left.code
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""

HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + x, mask=mask)


def run(x, out, n=None):
    n = x.numel() if n is None else n
    if n:
        double_kernel[(triton.cdiv(n, 32),)](x, out, n, BLOCK=32)
    return out


"""

GOOD = """def triton_double(input, other):
    assert input.is_cuda
    x = input.contiguous()
    return run(x, torch.empty(x.shape, dtype=x.dtype, device="cuda"))
"""


def given(name: str) -> dict[str, Any]:
    init = {"kind": "normal", "mean": 0.0, "std": 1.0}
    return {
        "name": name,
        "shape": ["M", "N"],
        "dtype": None,
        "init": init,
        "requires_grad": False,
        "layout": "contiguous",
    }


def declaration(**changes: Any) -> dict[str, Any]:
    """Returns `torch.mul(input, 2)` as an op of one input, whose kernels may have the factor written into them."""
    return {
        "name": "double",
        "torch": "torch.mul",
        "inputs": [given("input")],
        "kwargs": {"other": 2},
        "edges": {"kwargs": None},
        "dtypes": ["float32"],
        "sizes": {"small": {"M": 8, "N": 16}, "large": {"M": 64, "N": 64}},
        "check_sizes": {"small": {"M": 8, "N": 16}},
        "seeds": 2,
        "tolerances": {"float32": [1e-5, 1e-5], "float16": [1e-3, 1e-3], "bfloat16": [1.6e-2, 1e-2]},
        "precision": "ieee",
        "mutates": [],
        "overwrites": [],
        "backward": False,
        "broadcast": False,
        "deterministic": True,
        "cases": None,
        **changes,
    }


@functools.cache
def server() -> subprocess.Popen[str]:
    """Returns a process that has imported what `preloaded` names, and forks a child per request."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SERVER, str(HARNESS), str(HARNESS.parent / "tests/python")]
    started = subprocess.Popen(command, text=True, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(started.kill)
    return started


def child(
    module: str, function: str, request: dict[str, Any], folder: Path
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Returns the reply of a child, or None, and how it ended."""
    log, reply = folder / f"{module}.log", folder / f"{module}.reply"
    asked = {"module": module, "function": function, "request": request, "log": str(log), "reply": str(reply)}
    process = server()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    code = int(process.stdout.readline())
    end: dict[str, Any] = {"kind": "reply", "stdout": "", "stderr": log.read_text(encoding="utf-8", errors="replace")}
    if reply.exists():
        return json.loads(reply.read_text(encoding="utf-8")), end
    kind = "signal" if code < 0 else "exit" if code else "no-reply"
    return None, {**end, "kind": kind, "code": code if kind == "exit" else None, "signal": -code if code < 0 else None}


def check(
    tmp_path: Path, kernel: str, op: dict[str, Any] | None = None, deadline_s: float | None = None, **variant: Any
) -> dict[str, Any]:
    """Returns the judge's reply for a variant whose file is HEAD and `kernel`."""
    root, scratch = tmp_path / "workspace", tmp_path / "scratch"
    file = root / "kernels/double/v1.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch.mkdir(parents=True)
    file.write_text(HEAD + kernel, encoding="utf-8")
    request = {"op": op or declaration(), "root": str(root), "scratch": str(scratch), "lane": "interpreter"}
    request["deadline_s"] = deadline_s
    folder = None
    if request["op"]["cases"] is not None:
        prepared, end = child("prepare", "prepare", request, tmp_path)
        assert prepared is not None, end["stderr"]
        if prepared["outcome"] == "rejected":
            return prepared
        folder = str(scratch)
    request["variant"] = {
        "name": "v1",
        "file": "kernels/double/v1.py",
        "entry": "triton_double",
        "lanes": ["interpreter"],
        "deterministic": True,
        **variant,
    }
    _, end = child("candidate", "run", {**request, "inputs": folder}, tmp_path)
    folders = {"prepared": folder, "candidate": str(scratch)}
    judged, judge_end = child("judge", "judge", {**request, **folders, "end": end}, tmp_path)
    assert judged is not None, judge_end["stderr"]
    return judged


def line_of(kernel: str, text: str) -> int:
    """Returns the line of the variant's file that holds `text`."""
    return next(number for number, line in enumerate((HEAD + kernel).splitlines(), 1) if text in line)


def wrapper(body: str) -> str:
    return "def triton_double(input, other):\n" + "".join(f"    {line}\n" for line in body.splitlines())


MAKE = "x = input.contiguous()\nout = torch.empty_like(x)\n"

BAD = {
    "exception": ("exception", wrapper("raise RuntimeError('broken wrapper')")),
    "missing module": ("exception", "import no_such_module\n\n\n" + GOOD),
    "no entry": ("source", "def other():\n    pass\n"),
    "syntax": ("source", "def triton_double(:\n    pass\n"),
    "os._exit(0)": ("no-reply", wrapper("import os; os._exit(0)")),
    "os._exit(7)": ("exit", wrapper("import os; os._exit(7)")),
    "sys.exit": ("exit", wrapper("import sys; sys.exit(3)")),
    "segfault": ("crash", wrapper("import ctypes; ctypes.string_at(0)")),
    "wrong shape": ("shape", wrapper(MAKE + "return run(x, out)[:, :-1]")),
    "wrong dtype": ("dtype", wrapper(MAKE + "return run(x, out.double())")),
    "not a tensor": ("type", wrapper("return 3")),
    "a tuple": ("type", wrapper(MAKE + "return (run(x, out),)")),
    "a subclass": ("type", wrapper(MAKE + "return torch.nn.Parameter(run(x, out))")),
    "last element": ("mismatch", wrapper(MAKE + "out.zero_()\nreturn run(x, out, max(x.numel() - 1, 0))")),
    "last element unwritten": ("nan", wrapper(MAKE + "return run(x, out, max(x.numel() - 1, 0))")),
    "never written": (
        "nan",
        wrapper(MAKE + "run(x, torch.empty_like(x))\nrun(x, out, 1 if x.numel() else 0)\nreturn out"),
    ),
    "nan": ("nan", wrapper(MAKE + "run(x, out)\nout.fill_(float('nan'))\nreturn out")),
    "mutated": ("mutated-input", wrapper(MAKE + "run(x, out)\ninput.zero_()\nreturn out")),
    "torch": ("torch-fallback", wrapper("return input * other")),
    "torch, and a kernel": ("torch-fallback", wrapper(MAKE + "run(x, out)\nreturn torch.mul(x, 2)")),
    "numpy": ("torch-fallback", wrapper(MAKE + "run(x, out)\nreturn torch.from_numpy(x.numpy() * 2)")),
    "no launch": ("no-kernel-launched", wrapper("return input.clone()")),
    "no launch, old memory": ("no-kernel-launched", wrapper("return torch.empty_like(input)")),
    "zero blocks": ("nan", wrapper(MAKE + "double_kernel[(0,)](x, out, x.numel(), BLOCK=32)\nreturn out")),
    "patched": (
        "nan",
        "torch.allclose = torch.equal = lambda *a, **k: True\n\n\n" + wrapper(MAKE + "return run(x, out, 1)"),
    ),
    "nondeterministic": (
        "nondeterministic",
        "CALLS = []\n\n\n"
        + wrapper(
            MAKE
            + "CALLS.append(1)\nrun(x, out)\nfirst = out.view(-1)[:1]\n"
            + "if out.numel():\n    first.fill_(float(first) * (1 + 1e-6 * (len(CALLS) % 8)))\nreturn out"
        ),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_kernel_is_rejected_with_its_class(name: str, tmp_path: Path) -> None:
    class_, kernel = BAD[name]
    reply = check(tmp_path, kernel)
    verdict, record = reply["documents"]["verdict"], reply["documents"]["evidence"]["failure"]
    assert (reply["outcome"], reply["class"], verdict["class"]) == ("rejected", class_, class_), record
    assert record["class"] == class_ and record["message"]


def test_a_right_kernel_passes_every_case(tmp_path: Path) -> None:
    reply = check(tmp_path, GOOD, declaration(dtypes=["float32", "float16", "bfloat16"]))
    evidence = reply["documents"]["evidence"]
    assert reply["outcome"] == "passed", evidence["failure"]
    assert {row["verdict"] for row in evidence["cases"]} == {"passed"}
    assert {row["dtype"] for row in evidence["cases"]} == {"float32", "float16", "bfloat16"}
    assert evidence["constants"] == {"BLOCK": 32} and evidence["repeat"] == "identical" and evidence["unfit"] == []
    lengths = {row["binding"]["N"] for row in evidence["cases"] if "block" in row["name"]}
    assert lengths == {31, 32, 33, 81}
    assert set(evidence["lint"]) >= {"zeros", "ones", "first-input", "mean", "previous", "tail-unwritten", "tf32"}


CUSTOM = """@torch.library.custom_op("t2t_test::double", mutates_args=())
def double(input: torch.Tensor) -> torch.Tensor:
    x = input.contiguous()
    return BODY


def triton_double(input, other):
    return double(input)
"""

DEFINED = """library = torch.library.Library("t2t_test_library", "DEF")
library.define("double(Tensor input) -> Tensor")


def double(input):
    x = input.contiguous()
    return BODY


library.impl("double", double, "CompositeExplicitAutograd")


def triton_double(input, other):
    return torch.ops.t2t_test_library.double(input)
"""


@pytest.mark.parametrize("form", [CUSTOM, DEFINED], ids=["custom_op", "library"])
def test_the_operator_that_a_wrapper_registers_is_its_own_and_what_it_calls_is_seen(form: str, tmp_path: Path) -> None:
    right = check(tmp_path / "right", form.replace("BODY", "run(x, torch.empty_like(x))"))
    assert right["outcome"] == "passed", right["documents"]["evidence"]["failure"]
    torchs = check(tmp_path / "torch", form.replace("BODY", "run(x, torch.empty_like(x)) if x.numel() else x * 2"))
    assert torchs["class"] == "torch-fallback"
    assert torchs["documents"]["evidence"]["failure"]["message"] == "torch computes for the wrapper: aten.mul"
    wrong = check(tmp_path / "wrong", form.replace("BODY", "run(x, torch.empty_like(x), 1)"))
    assert wrong["class"] == "nan"


def test_an_exception_cites_the_line_of_the_wrapper(tmp_path: Path) -> None:
    kernel = wrapper(MAKE + "raise RuntimeError('broken wrapper')")
    reply = check(tmp_path, kernel)
    record = reply["documents"]["evidence"]["failure"]
    assert reply["cites"] and record["message"] == "RuntimeError: broken wrapper"
    assert record["place"]["file"] == "kernels/double/v1.py"
    assert record["place"]["line"] == line_of(kernel, "broken wrapper")
    assert record["excerpt"] == "raise RuntimeError('broken wrapper')"
    assert all(line.startswith("kernels/") for line in record["traceback"])


def test_an_exception_inside_a_kernel_cites_the_line_of_the_kernel(tmp_path: Path) -> None:
    kernel = """@triton.jit
def broken_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.static_assert(BLOCK == 1, "too wide")


def triton_double(input, other):
    broken_kernel[(1,)](input, BLOCK=8)
"""
    record = check(tmp_path, kernel)["documents"]["evidence"]["failure"]
    assert record["class"] == "exception"
    assert record["place"]["line"] == line_of(kernel, "too wide"), record


def test_earlier_cases_keep_their_verdict_when_a_later_one_crashes(tmp_path: Path) -> None:
    kernel = "CALLS = []\n\n\n" + wrapper(
        "CALLS.append(1)\nif len(CALLS) == 6:\n    import os; os._exit(9)\n" + MAKE + "return run(x, out)"
    )
    verdict = check(tmp_path, kernel)["documents"]["verdict"]
    assert (verdict["class"], list(verdict["cases"].values())[:3]) == ("exit", ["passed", "rejected", "not-judged"])


def test_one_wrong_row_of_many_is_seen(tmp_path: Path) -> None:
    body = MAKE + "run(x, out)\nif x.shape[0] > 4:\n    out[3].zero_()\nreturn out"
    record = check(tmp_path, wrapper(body))["documents"]["evidence"]["failure"]
    assert (record["class"], record["bad"], record["index"]) == ("mismatch", 16, [3, 0])


TF32 = """@triton.jit
def tf32_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    bits = (x + x).to(tl.int32, bitcast=True)
    rounded = ((bits + 4096) & -8192).to(tl.float32, bitcast=True)
    tl.store(out_ptr + offsets, rounded, mask=offsets < n)


def triton_double(input, other):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        tf32_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
    return out
"""


def test_tf32_is_rejected_even_below_the_absolute_tolerance(tmp_path: Path) -> None:
    op = declaration()
    op["inputs"][0]["init"]["std"] = 1e-3
    # Of its own, it does not shrink with the result.
    own = {"float32": op["tolerances"]["float32"]}
    op["outputs"] = [{"name": "doubled", "compare": "close", "of": None, "dim": None, "tolerances": own}]
    reply = check(tmp_path, TF32, op)
    assert reply["class"] == "mismatch"
    assert "relative error of the whole output" in reply["documents"]["evidence"]["failure"]["message"]


def test_cases_that_accept_wrong_results_are_unfit(tmp_path: Path) -> None:
    op = declaration()
    op["inputs"][0]["init"] = {"kind": "constant", "value": 0.0}
    reply = check(tmp_path, GOOD, op)
    assert (reply["outcome"], reply["class"]) == ("rejected", "unfit-cases")
    assert "zeros (float32)" in reply["documents"]["evidence"]["unfit"]


def test_declared_run_to_run_differences_pass(tmp_path: Path) -> None:
    reply = check(tmp_path, BAD["nondeterministic"][1], declaration(deterministic=False))
    assert reply["outcome"] == "passed", reply["documents"]["evidence"]["failure"]
    assert reply["documents"]["evidence"]["repeat"] == "declared run-to-run"


def test_a_variant_of_another_lane_is_not_judged(tmp_path: Path) -> None:
    reply = check(tmp_path, GOOD, lanes=["cuda"])
    verdict = reply["documents"]["verdict"]
    assert (reply["outcome"], verdict["verdict"]) == ("not-judged", "not-judged")
    assert verdict["reason"].endswith("cases not judged: the variant is not for the interpreter lane")


def test_a_check_whose_declared_cases_were_not_judged_does_not_pass_by_its_edges(tmp_path: Path) -> None:
    kernel = """@triton.jit
def wrong_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    if n > 0:
        x = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + offsets, x * 3.0 + 1.0, mask=offsets < n)


def triton_double(input, other):
    out = torch.empty_like(input)
    wrong_kernel[(1,)](input, out, out.numel(), BLOCK=16)
    return out
"""
    reply = check(tmp_path, kernel)
    verdict = reply["documents"]["verdict"]
    assert verdict["cases"]["edge/empty/float32"] == "passed"
    assert (reply["outcome"], reply["reason"]) == ("not-judged", verdict["reason"])
    left = sum(one == "not-judged" for one in verdict["cases"].values())
    assert verdict["reason"].startswith(f"{left} of {len(verdict['cases'])} cases not judged: ")
    assert "inline_asm" in verdict["reason"]


HALF_BY_ASSEMBLY = """@triton.jit
def assembly_kernel(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, tl.inline_asm_elementwise("mov.b16 $0, $1;", "=h,h", [x], tl.float16, is_pure=True, pack=1))


def triton_double(input, other):
    out = torch.empty(input.shape, dtype=input.dtype, device="cuda")
    if input.dtype == torch.float16 and out.numel():
        assembly_kernel[(1,)](out)
    return run(input.contiguous(), out)
"""


def test_a_dtype_that_was_not_judged_is_named_beside_a_pass(tmp_path: Path) -> None:
    verdict = check(tmp_path, HALF_BY_ASSEMBLY, declaration(dtypes=["float32", "float16"]))["documents"]["verdict"]
    (told,) = verdict["not_judged"]
    assert (verdict["verdict"], told["dtype"]) == ("passed", "float16")
    # Of an empty input nothing is launched.
    assert told["cases"] == told["of"] - 1


def test_a_check_whose_first_dtype_was_not_judged_does_not_pass(tmp_path: Path) -> None:
    verdict = check(tmp_path, HALF_BY_ASSEMBLY, declaration(dtypes=["float16", "float32"]))["documents"]["verdict"]
    assert verdict["verdict"] == "not-judged"
    assert verdict["reason"].endswith("Triton's interpreter lacks inline assembly (inline_asm)")


UNSUPPORTED = {
    "__nv_rcp64h": (
        "from triton.language.extra import libdevice\n\n\n",
        "libdevice.rcp64h(x.to(tl.float64)).to(tl.float32)",
    ),
    "Cannot make_shape_compatible": ("", "tl.sum(tl.arange(0, 4) + tl.arange(0, 8)).to(tl.float32) + x"),
    "inline_asm": (
        "",
        'tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)',
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_the_interpreter_lacks_is_not_judged(name: str, tmp_path: Path) -> None:
    imports, expression = UNSUPPORTED[name]
    kernel = f"""{imports}@triton.jit
def lacking_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, {expression})


def triton_double(input, other):
    out = torch.empty_like(input)
    if out.numel():
        lacking_kernel[(1,)](input, out, BLOCK=1)
    return out
"""
    reply = check(tmp_path, kernel)
    verdict = reply["documents"]["verdict"]
    assert verdict["verdict"] == "not-judged", reply["documents"]["evidence"]["failure"]
    assert name in verdict["reason"]


LIBRARY = """from triton.language.extra.libdevice import tanh
from triton.runtime.jit import JITFunction

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def library_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i >= 0 and i < n
    x = tl.load(x_ptr + i, mask=inside).to(tl.float32)
    tl.store(out_ptr + i, x * factor.to(tl.float32) + (tanh(x) - tanh(x)), mask=inside)


def triton_double(input, other):
    assert isinstance(library_kernel, JITFunction) and input.device == DEVICE
    x = input.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=DEVICE)
    library_kernel[(triton.cdiv(out.numel(), 64),)](x, out, float(other), out.numel(), BLOCK=64)
    return out
"""


def test_a_launcher_of_a_library_with_libdevice_and_words_between_blocks_is_judged(tmp_path: Path) -> None:
    (tmp_path / "right").mkdir()
    reply = check(tmp_path / "right", LIBRARY)
    assert reply["documents"]["verdict"]["verdict"] == "passed", reply["documents"]["evidence"]["failure"]
    (tmp_path / "wrong").mkdir()
    wrong = check(tmp_path / "wrong", LIBRARY.replace("i < n", "i < n - 1"))
    assert wrong["outcome"] == "rejected"


OWN_TUNER = """class Tuner(triton.runtime.Autotuner):
    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        times = {self._bench(*args, config=config, **kwargs)[0]: config for config in self.configs}
        return self.fn.run(*args, **kwargs, **times[min(times)].all_kwargs())


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x + x, mask=offsets < n)


own = Tuner(tuned_kernel.fn, tuned_kernel.arg_names, tuned_kernel.configs, ["n"], None, None)


class Pointer:
    def __init__(self, tensor):
        self.data_ptr, self.dtype = tensor.data_ptr, tensor.dtype


def triton_double(input, other):
    x = input.contiguous()
    out = torch.empty_like(x)
    before = torch.cuda.default_generators[0].get_state()
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)
    own[grid](Pointer(x), Pointer(out), out.numel())
    tuned_kernel[grid](Pointer(x), Pointer(out), out.numel())
    assert tuned_kernel.best_config.kwargs["BLOCK"] in (32, 64) and before.view(torch.int64).numel() == 2
    return out
"""


def test_a_library_that_tunes_by_itself_and_passes_pointers_is_judged(tmp_path: Path) -> None:
    reply = check(tmp_path, OWN_TUNER)
    assert reply["documents"]["verdict"]["verdict"] == "passed", reply["documents"]["evidence"]["failure"]


def test_what_torchs_device_generator_draws_follows_its_seed(tmp_path: Path) -> None:
    kernel = (
        wrapper(
            "before = torch.initial_seed()\n"
            "torch.manual_seed(7)\ngenerator = torch.cuda.default_generators[0]\ngenerator.set_offset(4)\n"
            "assert generator.get_state().view(torch.int64).tolist() == [7, 4] and torch.cuda.initial_seed() == 7\n"
            "torch.manual_seed(7)\nassert generator.get_offset() == 0\ntorch.manual_seed(before)\n"
        )
        + GOOD.partition("\n")[2]
    )
    reply = check(tmp_path, kernel)
    assert reply["documents"]["verdict"]["verdict"] == "passed", reply["documents"]["evidence"]["failure"]


GLUON = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def gluon_kernel(x_ptr, out_ptr):
    gl.store(out_ptr, gl.load(x_ptr))


def triton_double(input, other):
    out = torch.empty_like(input)
    gluon_kernel[(1,)](input, out, num_warps=1)
    return out
"""


def test_gluon_is_not_judged_on_the_interpreter(tmp_path: Path) -> None:
    verdict = check(tmp_path, GLUON)["documents"]["verdict"]
    assert verdict["verdict"] == "not-judged" and verdict["reason"].endswith("Triton's interpreter lacks Gluon")


TUNED = """@triton.autotune(
    configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 16})], key=["n"]
)
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * 32 + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def triton_double(input, other):
    x = input.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        tuned_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel())
    return out
"""


def test_a_configuration_that_would_not_win_must_be_right_too(tmp_path: Path) -> None:
    reply = check(tmp_path, TUNED)
    evidence = reply["documents"]["evidence"]
    assert reply["class"] == "nan" and "configuration 2" in evidence["failure"]["message"]
    assert evidence["configurations"]["tried"] == 3 and evidence["cases"][0]["configs"] == 3


DIFFERENTIABLE = """class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        return run(x, torch.empty_like(x))

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        return run(gradient, torch.empty_like(gradient)SCALE)


def triton_double(input, other):
    return Double.apply(input)
"""


def test_gradients_are_judged(tmp_path: Path) -> None:
    (tmp_path / "right").mkdir()
    (tmp_path / "wrong").mkdir()
    op = declaration(backward=True)
    right = check(tmp_path / "right", DIFFERENTIABLE.replace("SCALE", ""), op)
    assert right["outcome"] == "passed", right["documents"]["evidence"]["failure"]
    wrong = check(tmp_path / "wrong", DIFFERENTIABLE.replace("SCALE", ", 1 if gradient.numel() else 0"), op)
    assert wrong["class"] == "nan" and wrong["documents"]["evidence"]["failure"]["message"].startswith(
        "gradient of `input`"
    )


HOOK = """import torch


class Case:
    def __init__(self, name, inputs, kwargs=None):
        self.name, self.inputs, self.kwargs = name, inputs, kwargs


def cases(spec, generator):
    x = torch.randn(5, 7, generator=generator)
    yield Case("odd", {"input": x.t()})
    yield Case("tripled", {"input": x}, {"other": 3})
"""


def hook(tmp_path: Path, text: str) -> dict[str, Any]:
    file = tmp_path / "workspace/kernels/double/cases.py"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return check(tmp_path, GOOD, declaration(cases="kernels/double/cases.py"))


def test_the_cases_of_a_hook_are_judged_with_their_own_arguments(tmp_path: Path) -> None:
    reply = hook(tmp_path, HOOK)
    cases = reply["documents"]["verdict"]["cases"]
    assert (cases["hook/odd"], cases["hook/tripled"], reply["class"]) == ("passed", "rejected", "mismatch")


def test_a_hook_may_not_import_a_variant(tmp_path: Path) -> None:
    reply = hook(tmp_path, "from kernels.double import v1\n" + HOOK)
    assert reply["class"] == "unfit-cases"
    assert "may not import `kernels.double.v1`" in reply["documents"]["evidence"]["failure"]["message"]


def test_the_example_is_not_changed_by_a_check(tmp_path: Path) -> None:
    op = declaration()
    before = copy.deepcopy(op)
    check(tmp_path, GOOD, op)
    assert op == before

"""What a module holds: gradients of its parameters, buffers that a call changes, and outputs that it keeps. Beside each fault the honest kernel, which passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks import check, declared, require_passed, tensor, verdict

FILES = Path(__file__).resolve().parents[2] / "gpu_kernels" / "modules"
"""A reference and kernels in classes, which are tried on a device, too."""


def kernel(name: str) -> str:
    """Returns the text of a kernel in a class, which is called `wrapper` here."""
    text = (FILES / f"{name}.py").read_text(encoding="utf-8")
    return text.replace(f"class {name.capitalize()}(", "class wrapper(")


REFERENCES = (
    (FILES / "reference.py").read_text(encoding="utf-8")
    + """

class Counted(Centered):
    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Normed(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.bias = torch.nn.Parameter(torch.zeros(dim))
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        return (x - self.mean) * self.weight + self.bias


class Tied(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(dim))
        self.b, self.held = self.a, [self.a]
        self.whole = torch.nn.Parameter(torch.ones(dim, dtype=torch.int32), requires_grad=False)

    def forward(self, x):
        return x * self.held[0] * self.b


class Frozen(Scaled):
    def __init__(self, dim):
        super().__init__(dim)
        self.weight.requires_grad_(False)
"""
)

SCALED, CENTERED = kernel("scaled"), kernel("centered")


def of_class(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    """Returns the op of a class among the references, which are written into `folder`."""
    (folder / "reference.py").write_text(REFERENCES, encoding="utf-8")
    reference = {"file": "reference.py", "name": name, "init": {"dim": "N"}, "root": str(folder)}
    return declared("", [tensor("x", ["M", "N"])], {"M": 7, "N": 24}, torch=None, reference=reference, **more)


def test_gradients_of_parameters_are_judged(tmp_path: Path) -> None:
    op = of_class(tmp_path, "Scaled", backward=True)
    require_passed(tmp_path / "honest", op, SCALED)
    for name, instead in (("zero", "return multiplied(grad, weight), torch.zeros_like(weight)"), ("none", "None")):
        written = "return multiplied(grad, weight), of_weight"
        wrong = written.replace("of_weight", "None") if name == "none" else instead
        class_, message = verdict(tmp_path / name, op, SCALED.replace(written, wrong))
        assert (class_, message.partition(":")[0]) == ("mismatch", "gradient of the parameter `weight`"), name


def test_a_parameter_of_another_name_is_told(tmp_path: Path) -> None:
    documents = check(
        tmp_path / "other",
        of_class(tmp_path, "Scaled", backward=True),
        SCALED.replace("self.weight", "self.scale"),
    )
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    notes = "; ".join(documents["evidence"]["notes"])
    assert "none of that name, shape and first values: gradient of the parameter `weight`" in notes


def test_buffers_that_a_call_changes_are_judged(tmp_path: Path) -> None:
    op = of_class(tmp_path, "Centered")
    require_passed(tmp_path / "honest", op, CENTERED)
    written = "    tl.store(mean_ptr + col, 0.9 * mean + 0.1 * (tl.sum(x) / M))\n"
    assert written in CENTERED
    class_, message = verdict(tmp_path / "careless", op, CENTERED.replace(written, ""))
    assert (class_, message.partition(":")[0]) == ("mismatch", "buffer `running` after the call")


KEPT = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * tl.load(w_ptr + at % N, mask=at < n), mask=at < n)


class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight, self.out = torch.nn.Parameter(torch.randn(dim)), None

    def forward(self, x):
        x = x.contiguous()
        if self.out is None or self.out.shape != x.shape:
            self.out = torch.empty_like(x)
        if x.numel():
            kernel[(triton.cdiv(x.numel(), 256),)](x, self.weight, self.out, x.numel(), x.shape[1], BLOCK=256)
        return self.out
"""

RING = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


buffers, turns = {}, {}


def wrapper(input):
    x, key = input.contiguous(), (tuple(input.shape), input.dtype)
    ring = buffers.setdefault(key, [])
    turns[key] = (turns.get(key, -1) + 1) % COUNT
    if len(ring) <= turns[key]:
        ring.append(torch.empty_like(x))
    out = ring[turns[key]]
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""


def test_an_output_that_a_module_keeps_is_seen(tmp_path: Path) -> None:
    op = of_class(tmp_path, "Scaled")
    assert verdict(tmp_path / "careless", op, KEPT)[0] == "aliased"
    require_passed(
        tmp_path / "honest", op, KEPT.replace("if self.out is None or self.out.shape != x.shape:", "if True:")
    )


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_buffers_that_hold_results_in_turns_are_seen(tmp_path: Path, count: int) -> None:
    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 7, "N": 24})
    assert verdict(tmp_path, op, RING.replace("COUNT", str(count)))[0] == "aliased"


def test_a_result_of_each_call_passes(tmp_path: Path) -> None:
    op = declared("torch.exp", [tensor("input", ["M", "N"])], {"M": 7, "N": 24})
    require_passed(tmp_path, op, RING.replace("ring[turns[key]]", "torch.empty_like(x)").replace("COUNT", "2"))


NORMED = """
@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, m_ptr, out_ptr, N, sm, sn, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sm + at * sn, mask=at < N) - tl.load(m_ptr + at, mask=at < N)
    y = x * tl.load(w_ptr + at, mask=at < N) + tl.load(b_ptr + at, mask=at < N)
    tl.store(out_ptr + row * N + at, y, mask=at < N)


class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.bias = torch.nn.Parameter(torch.zeros(dim))
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if out.numel():
            own = self.weight, self.bias, self.mean
            kernel[(M,)](x, *own, out, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
        return out
"""


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("x * tl.load(w_ptr + at, mask=at < N)", "x"),
        (" + tl.load(b_ptr + at, mask=at < N)", ""),
        (" - tl.load(m_ptr + at, mask=at < N)", ""),
    ],
    ids=["a weight of ones", "a bias of zeros", "a buffer of zeros"],
)
def test_what_a_constructor_makes_one_or_zero_is_not_left_out(tmp_path: Path, written: str, instead: str) -> None:
    op = of_class(tmp_path, "Normed")
    require_passed(tmp_path / "honest", op, NORMED)
    assert written in NORMED
    documents = check(tmp_path / "careless", op, NORMED.replace(written, instead))
    assert documents["evidence"]["failure"]["case"] == "edge/weights/float32"


def test_weights_that_a_class_has_otherwise_stay_as_they_are(tmp_path: Path) -> None:
    folded = NORMED.replace("torch.nn.Parameter(torch.zeros(dim))", "torch.zeros(dim)").replace(
        "self.bias", "self.shift"
    )
    documents = check(tmp_path / "folded", of_class(tmp_path, "Normed"), folded)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    (row,) = [row for row in documents["evidence"]["cases"] if row["name"] == "edge/weights/float32"]
    assert (row["verdict"], row["reason"]) == ("dropped", "the kernel's class holds other tensors than the reference")


ODD = """
@triton.jit
def kernel(x_ptr, a_ptr, b_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    a, b = tl.load(a_ptr + at % N, mask=at < n), tl.load(b_ptr + at % N, mask=at < n)
    tl.store(out_ptr + at, x * a * b, mask=at < n)


class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(dim))
        self.b, self.held, self.calls = self.a, [self.a], 0
        self.whole = torch.nn.Parameter(torch.ones(dim, dtype=torch.int32), requires_grad=False)

    def forward(self, x):
        x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
        assert self.a is self.b is self.held[0] and self.a.dtype == x.dtype and self.whole.dtype == torch.int32
        if out.numel():
            kernel[(triton.cdiv(out.numel(), 128),)](x, self.a, self.b, out, out.numel(), x.shape[1], BLOCK=128)
        return out
"""


def test_tensors_that_are_tied_or_held_elsewhere_stay_so_in_each_dtype(tmp_path: Path) -> None:
    dtypes = ["float32", "float16"]
    require_passed(tmp_path / "tied", of_class(tmp_path, "Tied", dtypes=dtypes), ODD)


def test_a_frozen_weight_has_no_gradient_and_one_that_a_kernel_freezes_lacks_one(tmp_path: Path) -> None:
    frozen = SCALED.replace("torch.randn(dim))", "torch.randn(dim), requires_grad=False)")
    frozen = frozen.replace("return multiplied(grad, weight), of_weight", "return multiplied(grad, weight), None")
    require_passed(tmp_path / "both", of_class(tmp_path, "Frozen", backward=True), frozen)
    class_, message = verdict(tmp_path / "one", of_class(tmp_path, "Scaled", backward=True), frozen)
    assert (class_, message.partition(":")[0]) == ("mismatch", "gradient of the parameter `weight`")


def test_weights_of_one_name_that_begin_otherwise_are_not_compared(tmp_path: Path) -> None:
    halved = SCALED.replace("torch.nn.Parameter(torch.randn(dim))", "torch.nn.Parameter(torch.randn(dim) / 2)")
    halved = halved.replace(
        "Product.apply(x.contiguous(), self.weight)", "Product.apply(x.contiguous(), self.weight + self.weight)"
    )
    op = of_class(tmp_path, "Scaled", backward=True, allow=["add", "add_"])
    documents = check(tmp_path / "halved", op, halved)
    assert documents["verdict"]["verdict"] == "passed", documents["evidence"]["failure"]
    assert "first values: gradient of the parameter `weight`" in "; ".join(documents["evidence"]["notes"])


COUNTED = """
class wrapper(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("running", torch.zeros(dim))

    def forward(self, x):
        self.calls += 1
        M, N = x.shape
        out = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if N:
            kernel[(N,)](x, self.running, out, M, N, *x.stride(), BLOCK=triton.next_power_of_2(max(M, 1)))
        return out
"""


def test_a_module_may_count_its_calls_by_torch(tmp_path: Path) -> None:
    counted = CENTERED[: CENTERED.index("class wrapper")] + COUNTED
    op = of_class(tmp_path, "Counted")
    require_passed(tmp_path / "counts", op, counted)
    class_, message = verdict(tmp_path / "does not", op, counted.replace("self.calls += 1", "pass"))
    assert (class_, message.partition(":")[0]) == ("mismatch", "buffer `calls` after the call")

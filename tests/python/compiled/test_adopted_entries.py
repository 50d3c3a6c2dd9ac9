"""Entries that `t2t adopt` writes for references of kinds that kernel libraries have: their shapes, what holds places, what is changed in place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from t2t_harness.phases import adopt, trial_calls
from t2t_harness.phases.arranged import Unclear
from t2t_harness.sources import usage

REFERENCE = '''"""References in the manner of kernel libraries."""

import torch
import torch.nn.functional as F


def append(cache, new, slots):
    cache[slots] = new


def through_data(state, x):
    state.data.mul_(0.5).add_(x)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    c, s = cos[None, :, None, :], sin[None, :, None, :]
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def looked_up(ids, table):
    return table[ids]


def loss(logits, target, ignore_index):
    return F.cross_entropy(logits, target, ignore_index=ignore_index, reduction="none")


def pooled(x, offsets):
    lengths = offsets[1:] - offsets[:-1]
    rows = torch.repeat_interleave(torch.arange(lengths.numel()), lengths)
    return torch.zeros(lengths.numel(), x.shape[1]).index_add(0, rows, x)


def counted(x, segment, num_segments):
    return torch.zeros(num_segments, x.shape[1]).index_add(0, segment, x)


def gated(gates, c):
    i, f, g = gates.chunk(3, -1)
    return f.sigmoid() * c + i.sigmoid() * g.tanh()


def experts(logits, k, renormalize):
    weights, ids = logits.softmax(-1).topk(k, -1)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return weights, ids


def grouped(x, group_size):
    rows = x.view(x.shape[0], -1, group_size)
    return rows / rows.abs().amax(-1, keepdim=True)


def hadamard(x):
    return x.view(x.shape[0], -1, 64).flip(-1).reshape(x.shape)


def selected(x, mask):
    return torch.where(mask, x, 0.0)


def unpacked(packed, scale):
    low, high = packed & 15, (packed >> 4) & 15
    return torch.stack((low, high), -1).flatten(-2) * scale[:, None]


def shifted(packed, scale):
    shifts = torch.arange(0, 32, 4)
    return ((packed[..., None] >> shifts) & 15).flatten(-2) * scale[:, None]


def product(x_q, w_q, scale):
    return x_q.float() @ w_q.float().T * scale


def told_dtypes(a, b, rows, keep):
    """a: [M, K] int8, b: float8_e4m3fn [N, K]

    rows: (M,) int32
    keep: (M,), bool
    """
    return torch.where(keep[:, None], a.float() @ b.float().T, rows[:, None])


def normed(x, weight=None, bias=None):
    y = x / x.square().mean(-1, keepdim=True).sqrt()
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def weighted(x, weight=None):
    return x * weight


def _gathered(values, where):
    return values[where]


def _mixed(one, flag, *, where):
    batch, rows, width = one.shape
    return _gathered(one, where) if flag else one


def through_helpers(table, ids, flag):
    return _mixed(table, flag, where=ids)


def bounded(x, bounds):
    lengths = bounds.diff()
    rows = torch.repeat_interleave(torch.arange(lengths.numel()), lengths)
    return torch.zeros(lengths.numel(), x.shape[1]).index_add(0, rows, x)


def scan(x, decay, start):
    """A recurrence over time.

    x: (B, T, D), the input
    decay (Tensor): a factor in [0, 1], of shape [B, T, D]
    start: (B, D)
    """
    out, state = [], start
    for at in range(x.shape[1]):
        state = state * decay[:, at] + x[:, at]
        out.append(state)
    return torch.stack(out, 1)


def looped(a, b):
    state, out = torch.zeros_like(a[:, 0]), []
    for at in range(a.shape[1]):
        state = a[:, at] * state + b[:, at]
        out.append(state)
    return torch.stack(out, 1)


def attention(q, k, v, scale):
    B, H, S, D = q.shape
    return torch.softmax(q @ k.transpose(2, 3) * scale, -1) @ v


def linear(x, weight):
    return x @ weight.T


def stencil(u, c):
    return u + c * (torch.roll(u, 1, 1) - u)


def nothing(x):
    print("nothing is returned")


def words(x, mode):
    return {"twice": 2 * x}[mode]
'''

INT = {"dtype": "int64"}


def entry(folder: Path, name: str, wrapper: str = "", parameters: str | None = None) -> dict[str, Any]:
    """Returns the entry of one of the references, for a wrapper of the same parameters."""
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    given = parameters or next(
        line.split("(", 1)[1].removesuffix("):") for line in REFERENCE.splitlines() if line.startswith(f"def {name}(")
    )
    (folder / "kernel.py").write_text(f"def {name}({given}):\n    {wrapper or 'pass'}\n", encoding="utf-8")
    request = {"root": str(folder), "name": name, "what": "kernel.py", "file": "kernel.py", "module": None}
    asked: Any = {**request, "entry": None, "torch": None, "reference": f"reference.py::{name}"}
    found: Any = adopt.entry_for(asked)
    return {**found, "inputs": {one.pop("name"): one for one in found["inputs"]}}


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("looked_up", {"ids": {"shape": ["M"], **INT, "init": {"randint": [0, "M"]}}, "table": {"shape": ["M", "N"]}}),
        ("gated", {"gates": {"shape": ["M", "3*N"]}, "c": {"shape": ["M", "N"]}}),
        ("hadamard", {"x": {"shape": ["M", "64*N"]}}),
        ("looped", {"a": {"shape": ["M", "N"]}, "b": {"shape": ["M", "N"]}}),
        ("linear", {"x": {"shape": ["M", "N"]}, "weight": {"shape": ["K", "N"]}}),
        (
            "rotate",
            {
                "x": {"shape": ["B", "H", "S", "2*D"]},
                "cos": {"shape": ["H", "D"]},
                "sin": {"shape": ["H", "D"]},
            },
        ),
        (
            "scan",
            {
                "x": {"shape": ["B", "T", "D"]},
                "decay": {"shape": ["B", "T", "D"]},
                "start": {"shape": ["B", "D"]},
            },
        ),
        (
            "pooled",
            {
                "x": {"shape": ["M", "N"]},
                "offsets": {"shape": ["G+1"], "dtype": "int32", "init": {"offsets": "M"}},
            },
        ),
        (
            "selected",
            {"x": {"shape": ["M", "N"]}, "mask": {"shape": ["M", "N"], "dtype": "bool", "init": {"mask": 0.5}}},
        ),
        (
            "unpacked",
            {
                "packed": {"shape": ["M", "N"], "dtype": "uint8", "init": {"randint": [0, 256]}},
                "scale": {"shape": ["M"]},
            },
        ),
        (
            "shifted",
            {
                "packed": {"shape": ["M", "N"], "dtype": "int32", "init": {"randint": [0, 2147483647]}},
                "scale": {"shape": ["M"]},
            },
        ),
        (
            "told_dtypes",
            {
                "a": {"shape": ["M", "K"], "dtype": "int8", "init": {"randint": [-127, 128]}},
                "b": {"shape": ["N", "K"], "dtype": "float8_e4m3fn"},
                "rows": {"shape": ["M"], "dtype": "int32", "init": {"randint": [0, "V"]}},
                "keep": {"shape": ["M"], "dtype": "bool", "init": {"mask": 0.5}},
            },
        ),
    ],
)
def test_shapes_and_dtypes_are_those_that_the_code_shows(tmp_path: Path, name: str, inputs: dict[str, Any]) -> None:
    found = entry(tmp_path, name)
    assert found["inputs"] == inputs
    assert (found["kwargs"], found["mutates"]) == ({}, [])


@pytest.mark.parametrize(
    ("name", "kwargs", "inputs"),
    [
        ("experts", {"k": 4, "renormalize": True}, {"logits": {"shape": ["M", "N"]}}),
        ("grouped", {"group_size": 4}, {"x": {"shape": ["M", "4*N"]}}),
        (
            "loss",
            {"ignore_index": -100},
            {"logits": {"shape": ["M", "N"]}, "target": {"shape": ["M"], **INT, "init": {"randint": [0, "N"]}}},
        ),
        (
            "counted",
            {"num_segments": 4},
            {"x": {"shape": ["M", "N"]}, "segment": {"shape": ["M"], **INT, "init": {"randint": [0, 4]}}},
        ),
    ],
)
def test_numbers_and_flags_are_arguments(
    tmp_path: Path, name: str, kwargs: dict[str, Any], inputs: dict[str, Any]
) -> None:
    found = entry(tmp_path, name)
    assert (found["kwargs"], found["inputs"]) == (kwargs, inputs)


def test_what_a_reference_changes_in_place_is_named(tmp_path: Path) -> None:
    found = entry(tmp_path, "append")
    assert found["mutates"] == ["cache"]
    # Twice at one place would be in no order.
    assert found["inputs"]["slots"]["init"] == {"unique": [0, found["inputs"]["cache"]["shape"][0]]}
    assert entry(tmp_path, "through_data")["mutates"] == ["state"]


def test_the_code_of_the_wrapper_tells_what_that_of_the_reference_does_not(tmp_path: Path) -> None:
    assert entry(tmp_path, "selected")["inputs"]["x"]["shape"] == ["M", "N"]
    found = entry(tmp_path, "selected", "batch, heads, rows = values.shape", "values, mask")
    assert found["inputs"]["x"]["shape"] == ["batch", "heads", "rows"]
    assert found["call"] == "entry(x, mask)"


def test_dims_that_a_wrapper_names_are_apart(tmp_path: Path) -> None:
    found = entry(tmp_path, "attention", "B, H, T, D = k.shape\n    B, H, T, D = v.shape")
    shapes = {name: one["shape"] for name, one in found["inputs"].items()}
    keys = ["B", "H", "T", "D"]
    assert (shapes, found["kwargs"]) == ({"q": ["B", "H", "S", "D"], "k": keys, "v": keys}, {"scale": 0.5})


def test_quantized_inputs_have_a_scale_beside_them_and_are_made_floats(tmp_path: Path) -> None:
    found = entry(tmp_path, "product")
    for name in ("x_q", "w_q"):
        assert (found["inputs"][name]["dtype"], found["inputs"][name]["init"]) == ("int8", {"randint": [-127, 128]})
    assert "dtype" not in entry(tmp_path, "attention")["inputs"]["q"]


def test_inputs_that_reference_and_wrapper_may_be_called_without_are_optional(tmp_path: Path) -> None:
    weights = {"weight": {"shape": ["N"], "optional": True}, "bias": {"shape": ["N"], "optional": True}}
    assert entry(tmp_path, "normed")["inputs"] == {"x": {"shape": ["M", "N"]}, **weights}
    # The wrapper wants one of them, and has no other.
    one = entry(tmp_path, "normed", parameters="x, weight")
    assert one["inputs"] == {"x": {"shape": ["M", "N"]}, "weight": {"shape": ["N"]}}
    # The reference may not be called without it, whatever it says.
    assert entry(tmp_path, "weighted")["inputs"] == {"x": {"shape": ["M", "N"]}, "weight": {"shape": ["N"]}}


def test_the_functions_that_a_reference_calls_are_read_too(tmp_path: Path) -> None:
    found = entry(tmp_path, "through_helpers")
    assert found["inputs"] == {
        "table": {"shape": ["batch", "rows", "width"]},
        "ids": {"shape": ["batch"], **INT, "init": {"randint": [0, "batch"]}},
    }
    assert found["kwargs"] == {"flag": True}
    endless = "def f(x, n):\n    return g(n, x)\n\n\ndef g(n, y):\n    B, D = y.shape\n    return f(y, range(n))\n"
    told = usage.of_function(endless, "f")
    assert (told["x"].dims, told["n"].is_whole) == (["B", "D"], True)


LAUNCHED = """
@triton.jit
def at(base, i, n):
    return tl.load(base + i, mask=i < n, other=0.0)


@triton.jit
def kernel(u_ptr, w_ptr, o_ptr, H, s0, s1, s2, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = u_ptr + i * s0
    tl.atomic_add(o_ptr + i, c * tl.load(rows, mask=i < n) + at(w_ptr + H, i, n))


def {name}({given}):
    kernel[(1,)](u, w, out, u.shape[1], *u.stride(), c, out.numel(), BLOCK=64)
"""


def test_what_a_kernel_is_launched_with_is_a_pointer_or_a_number(tmp_path: Path) -> None:
    told = usage.of_function(LAUNCHED.format(name="f", given="u, w, out, c"), "f")
    assert (told["u"].is_tensor, told["u"].least, told["u"].most) == (True, 3, 3)
    assert [(told[one].is_tensor, told[one].is_number) for one in ("w", "out", "c")] == [(True, False)] * 2 + [
        (False, True)
    ]
    found = entry(tmp_path, "stencil")
    assert {*found["inputs"]} == {"u", "c"}, "each may be a tensor"
    (tmp_path / "kernel.py").write_text(LAUNCHED.format(name="stencil", given="u, c"), encoding="utf-8")
    asked: Any = {"root": str(tmp_path), "name": "stencil", "what": "kernel.py", "file": "kernel.py", "module": None}
    known: Any = adopt.entry_for({**asked, "entry": None, "torch": None, "reference": "reference.py::stencil"})
    assert [one["shape"] for one in known["inputs"]] == [["B", "S", "D"]]
    assert known["kwargs"] == {"c": 0.5}


def test_functions_within_a_function_are_read_too() -> None:
    source = "def f(x):\n    def part(v):\n        return (v >> 16) & 1\n\n    return part(x)\n"
    assert usage.of_function(source, "f")["x"].is_bits


def test_where_segments_begin_is_seen_in_the_wrapper_too(tmp_path: Path) -> None:
    found = entry(tmp_path, "bounded", "lengths = bounds[1:] - bounds[:-1]")
    assert found["inputs"]["bounds"] == {"shape": ["G+1"], "dtype": "int32", "init": {"offsets": "M"}}


@pytest.mark.parametrize("name", ["nothing", "words"])
def test_a_reference_that_takes_no_call_is_said_to_be_unclear(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unclear, match="no shapes were found"):
        entry(tmp_path, name)


def test_no_search_is_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_calls, "MOST", 3)
    asked = []
    monkeypatch.setattr(trial_calls, "outcome", lambda *given: asked.append(given) or {}[0])
    with pytest.raises(Unclear):
        entry(tmp_path, "rotate")
    assert len(asked) == 3


def test_words_and_annotations_give_dims() -> None:
    source = """
def f(x, y, z: Float[Tensor, "b s d"], n, w):
    '''Returns nothing.

    x (torch.Tensor): values, of shape [M, K]
    `y`: (N,)
    n: (optional) how many
    '''
    # w: (K, x) is no shape, since x is an argument
    return x[n]
"""
    uses = usage.of_function(source, "f")
    assert {name: use.dims for name, use in uses.items()} == {
        "x": ["M", "K"],
        "y": ["N"],
        "z": ["b", "s", "d"],
        "n": None,
        "w": None,
    }
    assert usage.of_function("def f(:", "f") == usage.of_function(source, "g") == {}


def test_names_are_followed_as_far_as_their_shapes_stay() -> None:
    source = """
class F:
    def forward(self, x, y, idx, gate):
        own = x.float().contiguous()
        rows, columns = own.shape
        x = x.view(-1)
        (length,) = x.shape
        first, second = idx[:, 0], idx[:, 1]
        z = y[first.clamp(min=0)] + y[..., 1]
        y[second // 4, 2] = z
        a, b, c = gate.unbind(-1)
        return y.transpose(1, 2), y.size(0)
"""
    uses = usage.of_function(source, "F")
    assert uses["x"].dims == ["rows", "columns"]
    assert (uses["idx"].places, uses["idx"].fixed, uses["idx"].is_written_at) == ([("y", 0)] * 2, {1: 2}, True)
    assert (uses["y"].least, uses["gate"].fixed) == (3, {-1: 3})
    bound = "def f(x):\n    largest, x = x.topk(4)\n    (rows,) = x.shape\n    return x + largest\n"
    assert usage.of_function(bound, "f")["x"].dims is None

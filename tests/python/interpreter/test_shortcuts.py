"""What the interpreter does by a shorter way is what Triton makes of it: the same bits of the same types, as many operations, and the same errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[3] / "python"

SCRIPT = """
import itertools
import operator
import pickle
import sys
import warnings

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter

from t2t_harness.triton import effort, interpreting, shortcuts

warnings.simplefilter("ignore")
np.seterr(all="ignore")
taken = []
if sys.argv[1] == "usual":
    shortcuts.Shortcuts.patch = lambda *_: None
else:
    made = shortcuts.Shortcuts.made
    shortcuts.Shortcuts.made = lambda *given: taken.append(1) or made(*given)
interpreting.install()


def kernel():
    return tl


interpreter._patch_lang(kernel)
core = tl.core
NAMES = "int1 int8 int16 int32 int64 uint8 uint32 uint64 float16 bfloat16 float32 float64".split()
SHAPES = ((), (4,), (4, 1), (1, 8), (4, 8), (8,))
NUMBERS = (0, 1, -1, 100, 300, 1 << 31, -(1 << 40), 1 << 63, 1 << 70, 1.5, 0.0, -0.0, float("nan"), float("inf"), 1e300)
NUMBERS += (True, None, core.constexpr(3), core.constexpr(2.5), core.constexpr(True))
TWO = (operator.add, operator.sub, operator.mul, operator.truediv, operator.and_, operator.or_)
TWO += (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
drawn = np.random.default_rng(0)
memory = drawn.integers(0, 255, 4096, dtype=np.uint8)


def value(dtype, shape, data):
    handle = interpreter.TensorHandle(data, dtype)
    return core.tensor(handle, core.block_type(dtype, list(shape)) if shape else dtype)


def drawn_value(name, shape):
    dtype = getattr(core, name)
    numbers = drawn.integers(-3, 120, shape or (1,))
    if name == "bfloat16":
        return value(dtype, shape, (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    return value(dtype, shape, (numbers if name == "float32" else abs(numbers)).astype(interpreter._get_np_dtype(dtype)))


def pointers(name, shape, const=False):
    places = memory.ctypes.data + 8 * drawn.permutation(np.arange(64))[: int(np.prod(shape))].reshape(shape or (1,))
    return value(core.pointer_type(getattr(core, name), const=const), shape, places.astype(np.uint64))


found = []


def note(what, call):
    before = effort.METER.done
    try:
        made = call()
        own = made.handle
        of = type(made).__name__, str(made.type), str(made.dtype), [one.value for one in made.shape], made.numel.value
        data = None if own is None else (str(own.dtype), str(own.data.dtype), own.data.shape, own.data.tobytes())
        told = (of, data)
    except Exception as error:
        told = type(error).__name__
    found.append((str(what), str(told), round(effort.METER.done - before, 6)))


values = {(name, shape): drawn_value(name, shape) for name in NAMES for shape in SHAPES}
for (what, one), (also, other) in itertools.product(values.items(), repeat=2):
    if what[0] == also[0] or {what[1], also[1]} <= {(), (4,)}:
        for operation in TWO:
            note((operation.__name__, what, also), lambda: operation(one, other))
for (what, one), number, operation in itertools.product(values.items(), NUMBERS, TWO):
    note((operation.__name__, what, number), lambda: operation(one, number))
    note((operation.__name__, number, what), lambda: operation(number, one))
for (what, one), name in itertools.product(values.items(), NAMES):
    note(("to", what, name), lambda: one.to(getattr(core, name)))
    note(("to", what, name, "again"), lambda: one.to(core.constexpr(getattr(core, name)), None, False))
    note(("bits", what, name), lambda: one.to(getattr(core, name), bitcast=True))
    note(("rounded", what, name), lambda: one.to(getattr(core, name), fp_downcast_rounding="rtz"))
base = memory.ctypes.data


def moved(pointer, offset):
    told = pointer + offset
    told.handle.data = told.handle.data - np.uint64(base)
    return told


for name, shape in itertools.product(("int1", "int8", "bfloat16", "float32"), ((), (4,), (4, 8))):
    drawn = np.random.default_rng(1)
    pointer = pointers(name, shape)
    for what, one in values.items():
        note(("moved", name, shape, what), lambda: moved(pointer, one))
        note(("moved by it", name, shape, what), lambda: moved(one, pointer))
        note(("back", name, shape, what), lambda: (pointer - one).to(core.int64) - base)
    note(("moved by a number", name, shape), lambda: moved(pointer, 3))
    for const, volatile in itertools.product((False, True), repeat=2):
        place = pointers(name, shape, const)
        masks = [None, True, core.constexpr(False)]
        masks += [values[kind, also] for kind in ("int1", "int32") for also in ((), (4,), (4, 8))]
        more = {"volatile": True} if volatile else {}
        for number, mask in enumerate(masks):
            note(("load", name, shape, const, volatile, number), lambda: tl.load(place, mask, **more))
            for other in (0, 0.0, 2.5, values["float32", ()], values["int32", (4,)]):
                note(("load", name, shape, const, number, str(other)), lambda: tl.load(place, mask=mask, other=other))
            for given in (2.5, *(values[kind, shape] for kind in (name, "int32", "float32")), values["float32", (4,)]):
                note(("store", name, shape, const, number), lambda: tl.store(pointer=place, value=given, mask=mask))
                found.append(memory.tobytes())
                memory[:] = np.arange(4096) % 251
for given in ((0,), (2,), (3,), (-1,), (core.constexpr(1),), (True,), ("x",)):
    interpreter.interpreter_builder.grid_idx = (5, 6, 7)
    note(("program", given), lambda: tl.program_id(*given))
for given in ((0, 8), (8, 16), (0, 7), (3, 3), (core.constexpr(0), core.constexpr(4)), (0, 1 << 33), (0.0, 4), (0, 8)):
    note(("range", given), lambda: tl.arange(*given))
sys.stdout.buffer.write(pickle.dumps((found, len(taken))))
"""


def results(way: str) -> tuple[list[object], int]:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, way],
        env={"TRITON_INTERPRET": "1", "PYTHONPATH": str(HARNESS), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    found: tuple[list[object], int] = pickle.loads(ran.stdout)
    return found


def test_the_short_way_makes_what_triton_makes_as_often_and_refuses_the_same() -> None:
    usual, none = results("usual")
    short, taken = results("short")
    assert len(short) == len(usual)
    assert [(one, other) for one, other in zip(short, usual, strict=True) if one != other][:5] == []
    assert none == 0 and taken > len(short) // 10

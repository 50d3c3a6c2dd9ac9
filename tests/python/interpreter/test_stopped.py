"""What ends before it is over, and is no fault of a kernel: a launch that does too much, a rehearsal that loops, a question to a driver that is not there."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from checks import declared, tensor

from t2t_harness.cases import probes
from t2t_harness.faults import lacking
from t2t_harness.judging import watch
from t2t_harness.triton import effort


def test_a_launch_that_is_stopped_leaves_its_tensors_as_they_were() -> None:
    counter, other = torch.zeros(4, dtype=torch.int32), torch.ones(3)
    meter = effort.Meter()

    def launch() -> None:
        counter[0] = 7
        meter.spend(10.0)
        other[1] = 5.0

    with meter.at_most(5.0), pytest.raises(effort.Spent), effort.undone_where_spent(meter, (counter, other, 3, None)):
        launch()
    assert counter.tolist() == [0, 0, 0, 0] and other.tolist() == [1.0, 1.0, 1.0]
    with effort.undone_where_spent(meter, (counter, other)):
        launch()
    assert counter[0] == 7 and other[1] == 5.0


def test_a_wrapper_may_make_so_many_calls_of_torch_in_a_rehearsal() -> None:
    with watch.watching(frozenset(), 0, poisons=False, most=5) as seen:
        for _ in range(5):
            torch.empty(2)
        with pytest.raises(watch.TooMany, match="more than 5 calls"):
            torch.empty(2)
    assert seen.operations == 6


@pytest.mark.parametrize(
    ("module", "expected"), [("triton.backends.nvidia.driver", True), ("kernels.softmax", False)], ids=["driver", "own"]
)
def test_a_driver_that_is_not_there_is_no_fault(module: str, expected: bool) -> None:
    home: Any = types.ModuleType(module)
    exec("def ask():\n    assert False, 'libcuda.so cannot found!'\n", vars(home))
    with pytest.raises(AssertionError) as raised:
        home.ask()
    told = lacking.reason(raised.value)
    assert (told is not None and told.startswith("it asks for a CUDA driver")) is expected


def test_nan_and_infinities_come_without_optional_inputs_too() -> None:
    given = [tensor("x", ["M", "N"]), tensor("y", ["M", "N"]), tensor("z", ["M", "N"], optional=True)]
    op = declared(
        "",
        given,
        {"M": 5, "N": 24},
        torch=None,
        reference={"file": "r.py", "name": "r", "init": {}, "root": "/nonexistent"},
    )
    request: Any = {"op": op, "lane": "interpreter", "root": "", "variant": {"module": "torch"}}
    found = {case.name: case for case in probes.cases_of(request, [])}
    assert found["edge/special[all,without-z]/float32"].absent == ("z",)

"""Lets the kernels under `kernels/` run on the CPU, through Triton's interpreter, as the interpreter lane does.

The interpreter is chosen when `triton` is imported, so this file sets the variable first and imports Triton after.
The stand-ins below are what the harness gives a wrapper there: CPU tensors that answer `is_cuda`, device properties,
and a choice of one configuration where a GPU would time them all.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import pytest
import torch
from triton.runtime.autotuner import Autotuner

torch.set_num_threads(1)


class ChosenConfig:
    """Index of the configuration that autotuned kernels run with; one beyond a kernel's last means its last."""

    index = 0


def run_chosen_config(self: Autotuner, *args: object, **kwargs: object) -> object:
    config = self.configs[min(ChosenConfig.index, len(self.configs) - 1)]
    return self.fn.run(*args, **kwargs, **config.all_kwargs())


@pytest.fixture(autouse=True)
def interpreter_lane(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives a CPU-only process the answers that a kernel's wrapper asks of a CUDA device."""
    properties = SimpleNamespace(name="interpreter", major=9, minor=0, multi_processor_count=4, total_memory=1 << 30)
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device=None: properties)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(Autotuner, "run", run_chosen_config)
    ChosenConfig.index = 0
    torch.manual_seed(0)
    yield
    ChosenConfig.index = 0


@pytest.fixture(autouse=True)
def no_workspace_stays() -> Iterator[None]:
    """Forgets after each test where it had the harness look for modules, and what was found there."""
    finders, modules = list(sys.meta_path), set(sys.modules)
    yield
    if sys.meta_path != finders:
        sys.meta_path[:] = finders
        for name in [name for name in sys.modules if name not in modules and name.split(".")[0] == "kernels"]:
            del sys.modules[name]


@pytest.fixture
def choose_config() -> Callable[[int], None]:
    """Returns a function that makes autotuned kernels run with their n-th configuration for the rest of the test."""

    def choose(index: int) -> None:
        ChosenConfig.index = index

    return choose

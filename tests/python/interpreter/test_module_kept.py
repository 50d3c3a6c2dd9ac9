"""What an instance keeps from call to call, and gets back."""

from __future__ import annotations

from typing import Any

import torch

from t2t_harness.op.module_kept import Kept


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.steps: int = 0
        self.seen: torch.Tensor


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.scale, self._own = Inner(), 2.0, 0
        self.register_buffer("history", torch.zeros(0, 3))
        self.mean, self.work = torch.ones(3), None
        self.history: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner.seen.add_(1)
        self.inner.steps += 1
        self.history = torch.cat([self.history, x[None]])
        self.mean = self.mean * 2
        self._own += 1
        return x


def test_a_module_gets_the_same_tensors_and_values_back() -> None:
    module = Outer()
    first: dict[str, Any] = {"seen": module.inner.seen, "history": module.history, "mean": module.mean}
    kept = Kept.of(module)
    module(torch.ones(3))
    assert kept.changed_buffers(module) == {"inner.seen", "history"}
    assert kept.changed_attributes(module) == {"inner.steps", "mean"}
    assert kept.changed(module) == {"inner.seen", "history", "inner.steps", "mean"}
    kept.only(kept.changed(module)).restore(module)
    assert module.inner.seen is first["seen"] and module.history is first["history"] and module.mean is first["mean"]
    assert (module.inner.seen.tolist(), module.history.shape, module.mean.tolist()) == ([0.0] * 3, (0, 3), [1.0] * 3)
    assert (module.inner.steps, module._own, dict(module.named_buffers()).keys()) == (0, 1, {"inner.seen", "history"})
    assert kept.changed(module) == set()


def test_what_is_kept_under_some_names_alone_may_be_given_back() -> None:
    module = Outer()
    kept = Kept.of(module)
    module(torch.ones(3))
    kept.only(["inner.steps"]).restore(module)
    assert (module.inner.steps, module.inner.seen.tolist()) == (0, [1.0] * 3)


class Plain:
    def __init__(self) -> None:
        self.calls, self.table = 0, torch.zeros(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.table[0] += 1
        return x


def test_an_instance_of_any_class_keeps_numbers_and_tensors_and_a_function_nothing() -> None:
    plain = Plain()
    kept = Kept.of(plain.forward)
    plain.forward(torch.ones(2))
    assert kept.changed_attributes(plain.forward) == {"calls", "table"}
    kept.restore(plain.forward)
    assert (plain.calls, plain.table.tolist()) == (0, [0.0, 0.0])
    function: Any = torch.exp
    for one in (function, Outer.forward, len):
        assert Kept.of(one) == Kept()

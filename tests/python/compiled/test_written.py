"""What is known of memory that a wrapper hands to launches."""

from __future__ import annotations

import torch

from t2t_harness.judging import watch


def test_what_was_known_of_an_address_is_not_held_against_the_next_tensor_there() -> None:
    with watch.watching(frozenset(), 0) as seen:
        value = torch.empty(4)
        seen.memory.launching([value])
        seen.memory.launched([value])
    value.numpy()[:] = 1.0
    assert seen.memory.is_by_hand(value)
    # As where the tensor is gone, and torch computed another one that lies there.
    seen.memory.made([value])
    assert not seen.memory.is_by_hand(value)


def test_what_torch_returns_is_new_memory_unless_it_looks_at_what_it_was_given() -> None:
    given = torch.ones(4, 4)
    assert watch.new_tensors(given @ given, ((given, given), {})) != []
    assert watch.new_tensors([given[0], given.t()], ((given,), {})) == []
    assert watch.new_tensors(None, ((given,), {})) == []


def test_a_view_is_no_new_memory() -> None:
    with watch.watching(frozenset(), 0) as seen:
        whole = torch.empty(4, 4)
        seen.memory.launching([whole])
        seen.memory.launched([whole])
        part = whole[1:].reshape(-1)
    whole.numpy()[0, 0] = 5.0
    assert seen.memory.is_by_hand(part)

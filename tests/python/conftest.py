"""Leaves tests out where only a part of a suite is to run: `tests/whole.json` notes that the whole of it passed as it is."""

from __future__ import annotations

import os

import pytest

PART = "T2T_TEST_PART"
"""The variable with the number N where only every N-th test is to run."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves tests out where only a part of them is to run: the first one stays, and every N-th after it. All files are imported in any case."""
    every = int(os.environ.get(PART, "1"))
    left_out = [item for place, item in enumerate(items) if place % every]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = items[::every]

"""Leaves tests out where only a part of a suite is to run: `tests/whole.json` notes that the whole of it passed as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PART = "T2T_TEST_PART"
"""The variable with the number N where only every N-th test of each file is to run."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves tests out where only a part of each file is to run: the first of a file stays, and every N-th after it."""
    every = int(os.environ.get(PART, "1"))
    seen: dict[Path, int] = {}
    left_out: list[pytest.Item] = []
    for item in items:
        seen[item.path] = seen.get(item.path, -1) + 1
        if seen[item.path] % every:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]

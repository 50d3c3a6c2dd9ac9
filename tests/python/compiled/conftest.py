"""Puts the harness on the path of tests that run without the interpreter of Triton."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

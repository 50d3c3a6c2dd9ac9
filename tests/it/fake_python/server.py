#!/usr/bin/env -S python3 -IS
"""The interpreter for tests. All of it is in `stand_in.py`, which is imported, so that Python keeps its bytecode."""

import sys
from os.path import dirname, realpath

STAND_IN = __file__

sys.path.insert(0, dirname(realpath(__file__)))

import stand_in  # noqa: E402 - it lies beside this file, wherever it was called by a link

stand_in.main()

"""Operators that a library has registered with torch which was built of the variant's own files. It knows no library, and imports nothing."""

from __future__ import annotations

TORCHS_OWN = frozenset("aten prim prims".split())
"""Namespaces of torch's own operators, whoever registers one in them."""

BUILT: set[str] = set()
"""The operators of such libraries in this process, as in `own::forward`."""

"""Results as a table of pandas, which is imported only here and is no dependency."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from t2t._results import Result

if TYPE_CHECKING:
    import pandas


def frame(results: Iterable[Result]) -> pandas.DataFrame:
    """Returns a row for each op, kernel and size, with the figures beside; a kernel without figures has one row, in which its size and figures are missing.

    Raises ModuleNotFoundError where pandas is not installed.
    """
    import pandas

    rows = []
    for result in results:
        for kernel in result.kernels:
            told = {
                "op": result.op,
                "kernel": kernel.name,
                "status": kernel.status,
                "is_chosen": kernel.is_chosen,
                "device": result.device,
            }
            rows += [told | asdict(figure) for figure in kernel.figures] or [told]
    names = ["op", "kernel", "status", "is_chosen", "device"]
    figures = ["size", "ms", "torch_ms", "speedup", "low", "high", "is_unstable"]
    return pandas.DataFrame(rows, columns=[*names, *figures])

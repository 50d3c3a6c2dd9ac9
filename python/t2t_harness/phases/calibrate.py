"""Measures a device's limits: how fast it copies, and how fast torch's matrix products run in each dtype.

The clock and the protocol are those of a bench, so that a kernel's figures can be held against these. It knows no op and no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import spans, statistics, telemetry

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import CalibrateRequest, Calibration, CopyFigure, ProductFigure, Reply

WARMUP_MS, REP_MS = 25, 100
"""One run of the protocol of a bench: ceilings and figures last equally long, so that a power cap meets both."""

CURVE_WARMUP_MS, CURVE_REP_MS = 10, 40
"""A run of a copy below the largest: a copy does not reach the power cap."""

LARGEST_COPY = 2**31
"""Bytes read plus bytes written by the copy that is the ceiling: 1 GiB is copied."""

COPIES = tuple(4**power for power in range(8, 16))
"""Bytes read plus bytes written by the smaller copies, 2^16 to 2^30: what a launch costs, and what the L2 cache gives, is seen in these."""

PRODUCTS = {
    "float64": ("float64", "highest"),
    "float32": ("float32", "highest"),
    "tf32": ("float32", "high"),
    "float16": ("float16", "highest"),
    "bfloat16": ("bfloat16", "highest"),
}
"""Name of a matrix rate: the dtype, and torch's precision of float32 products."""

SIDES = (8192, 4096, 2048)
"""Sides of the square matrices that are multiplied, the preferred first; the last one tells how long the others would take."""

LONGEST_MS = 40.0
"""How long one product may take: a run calls it eight times at least."""


@spans.told
def calibrate(request: CalibrateRequest) -> Reply:
    """Returns the reply with the document `calibration`. Raises what torch raises where it cannot even copy."""
    clock = clocks.clock_of(request)
    before = telemetry.snapshot(request)
    device = telemetry.device_facts(request, before)
    copies = measure_copies(clock)
    products, reasons = measure_products(clock)
    after = telemetry.snapshot(request)
    why = telemetry.disturbances([before, after])
    document: Calibration = {
        "clock": clock.name,
        "protocol": {"runs": 1, "warmup_ms": WARMUP_MS, "rep_ms": REP_MS},
        "device": device,
        "copies": copies,
        "copy_gb_per_s": copies[-1]["gb_per_s"],
        "products": products,
        "reasons": reasons,
        "unstable": bool(why),
        "why_unstable": "; ".join(why) or None,
        "telemetry": {"before": before, "after": after},
    }
    return {"outcome": "passed", "class": None, "cites": False, "documents": {"calibration": document}, "files": {}}


def measure_copies(clock: clocks.Clock) -> list[CopyFigure]:
    """Returns the figures of copies of rising size, the ceiling last. It is timed first, when the device has been kept at work for a while."""
    import torch

    with spans.work("cuda"):
        values = torch.randn(LARGEST_COPY // 8, device="cuda")
        target = torch.empty_like(values)

    def samples(moved: int, warmup_ms: float, rep_ms: float) -> list[float]:
        # Half of the bytes are read and half are written, four to a number.
        source, sink = values[: moved // 8], target[: moved // 8]
        return clock.sample(lambda: sink.copy_(source), warmup_ms, rep_ms)

    clock.warm([lambda: target.copy_(values)])
    largest = copy_figure(LARGEST_COPY, samples(LARGEST_COPY, WARMUP_MS, REP_MS))
    return [*(copy_figure(moved, samples(moved, CURVE_WARMUP_MS, CURVE_REP_MS)) for moved in COPIES), largest]


def measure_products(clock: clocks.Clock) -> tuple[dict[str, ProductFigure | None], dict[str, str]]:
    """Returns the figures of matrix products by name, None where torch refuses one, and the reasons. Leaves torch's precision as it was."""
    import torch

    usual = torch.get_float32_matmul_precision()
    found: dict[str, ProductFigure | None] = {}
    reasons: dict[str, str] = {}
    for name, (dtype, precision) in PRODUCTS.items():
        torch.set_float32_matmul_precision(precision)
        try:
            found[name] = measure_product(clock, dtype)
        except RuntimeError as error:
            found[name], reasons[name] = None, str(error).strip()[:400]
    torch.set_float32_matmul_precision(usual)
    return found, reasons


def measure_product(clock: clocks.Clock, dtype: str) -> ProductFigure:
    """Returns the figure of the product of two square matrices of random numbers of `dtype`, as large as the device does quickly.

    Raises RuntimeError where torch refuses it.
    """
    import torch

    def samples(side: int, warmup_ms: float, rep_ms: float) -> list[float]:
        with spans.work("cuda"):
            left, right = (torch.randn(side, side, device="cuda", dtype=getattr(torch, dtype)) for _ in range(2))
            out = torch.empty_like(left)
        return clock.sample(lambda: torch.matmul(left, right, out=out), warmup_ms, rep_ms)

    side = side_for(min(samples(SIDES[-1], 0, 0)))
    return product_figure(side, samples(side, WARMUP_MS, REP_MS))


def side_for(smallest_ms: float) -> int:
    """Returns the first side whose product takes no longer than allowed, if the last side's takes `smallest_ms`; else the last."""
    fits = (side for side in SIDES if smallest_ms * (side / SIDES[-1]) ** 3 <= LONGEST_MS)
    return next(fits, SIDES[-1])


def copy_figure(moved: int, samples: Sequence[float]) -> CopyFigure:
    """Returns the figure of a copy that reads and writes `moved` bytes: times in ms, and the rate of the median."""
    facts = statistics.run_facts(samples)
    return {"bytes": moved, **facts, "gb_per_s": moved / facts["median"] / 1e6}


def product_figure(side: int, samples: Sequence[float]) -> ProductFigure:
    """Returns the figure of a product of square matrices: times in ms, and the rate of the median."""
    facts = statistics.run_facts(samples)
    return {"side": side, **facts, "tflop_per_s": 2 * side**3 / facts["median"] / 1e9}

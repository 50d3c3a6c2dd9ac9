"""The host's part in a timed call: how long it takes to make one, and whether a figure measures the host instead of the device.

`do_bench` clears the L2 cache before each call, which hides the host's work for the call. If that work takes longer, the rest of it is in the figure,
unless the device is slower still.
"""

from __future__ import annotations

from t2t_harness.measuring import clock as clocks
from t2t_harness.measuring import statistics

HOST_MS = 20.0
"""How long the device should work for all the calls whose host time is measured."""

HOST_REPEATS = 5
MOST_HOST_CALLS, FEWEST_HOST_CALLS = 100, 4
"""Series of calls whose host time is measured, and how many calls a series may have: fewer than the device's queue takes."""

MUCH_LESS = 1.5
"""By how many times the device must take less for a call at another size for its host time to be measured there as well: what the device hides is not known more closely."""


def time_us(clock: clocks.Clock, call: clocks.Call, milliseconds: float) -> float:
    """Returns the host's time of one call in µs, the device not waited for: the median of a few series.

    `milliseconds` is what the device takes for a call. A series has as many calls as let all of them fit in `HOST_MS`, within bounds.
    """
    fitting = int(HOST_MS / HOST_REPEATS / max(milliseconds, 1e-6))
    calls = max(FEWEST_HOST_CALLS, min(MOST_HOST_CALLS, fitting))
    series = []
    for _ in range(HOST_REPEATS):
        clock.synchronize()
        begun = clock.counter()
        for _ in range(calls):
            call()
        series.append((clock.counter() - begun) / calls * 1e6)
    clock.synchronize()
    return statistics.quantile(series, 0.5)


def is_bound(host_us: float, hidden_us: float, milliseconds: float) -> bool:
    """Tells whether a figure of `milliseconds` says how long the host takes for a call, `host_us`, of which the device hides `hidden_us`.

    A call that the device works for longer than the host is made while the one before it runs, however long that takes the host.
    """
    return host_us > hidden_us and host_us > milliseconds * 1e3

"""What a child tells of its device's time: sorted, apart, few, and in the reply."""

from __future__ import annotations

import random
from typing import Any

from t2t_harness.measuring import spans

MS = 1_000_000


def test_what_is_timed_inside_work_is_told_as_timed_alone() -> None:
    found = spans.merged([(0, 100 * MS, "work"), (20 * MS, 30 * MS, "timing"), (90 * MS, 110 * MS, "timing")])
    assert found == [
        [0, 20 * MS, "work"],
        [20 * MS, 30 * MS, "timing"],
        [30 * MS, 90 * MS, "work"],
        [90 * MS, 110 * MS, "timing"],
    ]


def test_neighbours_of_one_kind_are_joined_and_others_are_not() -> None:
    near = [(0, MS, "work"), (2 * MS, 3 * MS, "work"), (5 * MS, 6 * MS, "work")]
    assert spans.merged(near) == [[0, 3 * MS, "work"], [5 * MS, 6 * MS, "work"]]
    assert spans.merged([(0, MS, "work"), (MS, 2 * MS, "timing")]) == [[0, MS, "work"], [MS, 2 * MS, "timing"]]


def test_many_spans_are_told_as_few_that_cover_them_in_order() -> None:
    marked = [(10 * MS * index, 10 * MS * index + 2 * MS, "work") for index in range(1000)]
    random.Random(0).shuffle(marked)
    found = spans.merged(marked)
    assert len(found) <= spans.MOST
    assert (found[0][0], found[-1][1]) == (0, 9992 * MS)
    assert all(one[1] < other[0] for one, other in zip(found, found[1:], strict=False))


def test_kinds_that_alternate_end_too_and_each_takes_as_long_as_it_did() -> None:
    marked: list[Any] = []
    for index in range(701):
        begin = 10 * MS * index
        marked += [(begin, begin + 2 * MS, "work"), (begin + 2 * MS, begin + (5 + index % 3) * MS, "timing")]
    found = spans.merged(marked)
    assert spans.MOST // 2 < len(found) <= spans.MOST
    assert all(one[1] <= other[0] for one, other in zip(found, found[1:], strict=False))
    for kind in ("work", "timing"):
        assert sum(end - begin for begin, end, own in found if own == kind) == sum(
            end - begin for begin, end, own in marked if own == kind
        )
    assert found[0][0] == 0 and found[-1][1] <= marked[-1][1]


def test_a_reply_tells_the_spans_of_its_own_call() -> None:
    @spans.told
    def phase(request: dict[str, Any]) -> dict[str, Any]:
        with spans.timing():
            pass
        with spans.work("cpu"):
            pass
        return {"outcome": "passed"}

    phase({})
    reply = phase({})
    assert reply["outcome"] == "passed"
    [[begin, end, kind]] = reply["device_spans"]
    assert (kind, end >= begin) == ("timing", True)

"""Events of a minion that cost a worker time, or are larger than the bus takes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from saltern.kit.links.event_bus import pack, unpack

#: Default of ``max_event_size``, bytes.
MOST = 1024 * 1024

#: Seconds of CPU time; the largest allowed event takes a few hundredths.
PATIENCE = 1.0

#: Attack -> the data of the event.
EVENTS: dict[str, Callable[[], dict[str, object]]] = {
    "36,000 keys just above the limit": lambda: {f"key-{n:06}": "x" * 20 for n in range(36_000)},
    "values a little above the mark": lambda: {f"k{n}": "x" * 15 for n in range(60_000)},
    "values of the mark": lambda: {f"k{n}": "VALUE_TRIMMED" for n in range(60_000)},
    "numbers": lambda: {f"k{n}": n for n in range(200_000)},
    "values of growing size": lambda: {f"k{n}": "x" * n for n in range(3_000)},
    "one long key": lambda: {"x" * (2 * MOST): 1},
    "long keys": lambda: {f"{n}" + "x" * 1000: 1 for n in range(5_000)},
    "a list of many": lambda: {"data": [{}] * 400_000},
    "many lists of many": lambda: {f"k{n}": [0] * 1000 for n in range(400)} | {"pad": "x" * MOST},
}


@pytest.mark.parametrize("attack", EVENTS)
def test_a_large_event_is_reduced_in_a_moment(attack: str) -> None:
    data = {**EVENTS[attack](), "id": "web1"}
    began = time.process_time()
    frame = pack("site/tag", data, max_bytes=MOST)
    assert time.process_time() - began < PATIENCE
    assert len(frame) <= MOST + len("site/tag\n\n")
    event = unpack(frame)
    assert event is not None
    assert event[1]["id"] == "web1"
    assert event[1]["_stamp"]

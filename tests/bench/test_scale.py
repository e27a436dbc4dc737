"""The measurement of ten thousand minions: how they are shared out, and what is printed and drawn of the numbers."""

from __future__ import annotations

import pytest

from bench.scale import Row, pictures, shares, tables


@pytest.mark.parametrize(
    ("count", "publishers", "sizes"),
    [
        (1000, 1, [1000]),
        (1000, 2, [500, 500]),
        (3000, 1, [1500, 1500]),
        (10000, 2, [2500, 2500, 2500, 2500]),
        (7, 2, [4, 3]),
        (10001, 1, [2001, 2000, 2000, 2000, 2000]),
    ],
)
def test_processes_have_equal_shares_of_the_minions(count: int, publishers: int, sizes: list[int]) -> None:
    assert shares(count, publishers) == sizes


def row(minions: int) -> Row:
    seconds = {
        "first": {"seconds": 2.0, "slowest": 1.5, "late": 3.0, "refused": 0.0, "crowd": 0.25},
        "sign-in": {"seconds": 16.0, "slowest": 0.75, "late": 0.0, "refused": 0.0, "crowd": 0.25},
        "reconnect": {"seconds": 11.0, "slowest": 0.25, "late": 0.0},
        "ping": {"seconds": 1.0},
        "highstate": {"seconds": 4.0, "bytes": 19110.0},
    }
    spent = {name: {"reqserver": 0.5, "redis": 0.01} for name in seconds}
    memory = {"started": {"reqserver": 20.0}, "in the end": {"reqserver": 31.5}}
    return Row(minions, 1, seconds, spent, memory)


def test_the_tables_have_each_phase() -> None:
    text = tables([row(1000)])
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line and line[0].isalpha()}
    assert lines["first"] == ["2.0", "1.5", "3", "0.2", "reqserver", "0.5"]
    assert lines["ping"] == ["1.0", "reqserver", "0.5"]
    assert "MB in the end   32: reqserver 32" in text
    assert "1,000 minions, 1 of each role" in text


def test_there_are_pictures_of_times_and_memory() -> None:
    found = pictures([row(3000), row(1000)])
    assert sorted(found) == ["scale-memory-1.svg", "scale-seconds-1.svg"]
    assert "reconnect of all" in found["scale-seconds-1.svg"]
    assert ">3,000<" in found["scale-memory-1.svg"]

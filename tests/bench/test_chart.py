"""Charts of benchmarks: axes with round numbers, curves at the right places, names that do not lie on each other."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.chart import line_chart, number, steps
from bench.states import pictures

NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0, [0, 1]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (4.2, [0, 1, 2, 3, 4, 5]),
        (10, [0, 2, 4, 6, 8, 10]),
        (11, [0, 2.5, 5, 7.5, 10, 12.5]),
        (320, [0, 100, 200, 300, 400]),
    ],
)
def test_the_labels_of_an_axis(most: float, labels: list[float]) -> None:
    assert steps(most) == pytest.approx(labels)


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_an_axis_is_long_enough_and_has_few_labels(most: float) -> None:
    found = steps(most)
    assert found[-1] >= most * (1 - 1e-9)
    assert 2 <= len(found) <= 6 + 1


@pytest.mark.parametrize(("value", "text"), [(2500.0, "2,500"), (0.25, "0.25"), (0.0, "0")])
def test_numbers_as_an_axis_shows_them(value: float, text: str) -> None:
    assert number(value) == text


def heights(svg: str) -> list[list[float]]:
    """The heights of the points of each curve, from above."""
    paths = [one.attrib["d"] for one in ET.fromstring(svg).iter(f"{NAMESPACE}path") if "L" in one.attrib["d"]]
    return [[float(pair.split()[1]) for pair in path[1:].split("L")] for path in paths]


def test_a_curve_goes_up_where_its_values_do() -> None:
    svg = line_chart("Time", "minions", "s", {"a": [(1, 1), (2, 2), (3, 5)], "b": [(1, 5), (2, 5), (3, 5)]})
    rising, flat = heights(svg)
    assert rising == sorted(rising, reverse=True)
    assert len(set(flat)) == 1
    assert rising[-1] == flat[-1], "equal values are at one height"


def test_names_do_not_lie_on_each_other() -> None:
    svg = line_chart("T", "x", "y", {name: [(1, 1), (2, 3)] for name in ("one", "two", "three")})
    places = [float(one) for one in re.findall(r'y="([0-9.]+)" fill="#', svg)]
    assert len(places) == 3
    assert all(below - above >= 14 for above, below in zip(sorted(places), sorted(places)[1:], strict=False))


def test_doubles_are_equally_far_from_each_other_on_a_logarithmic_axis() -> None:
    svg = line_chart("T", "x", "y", {"a": [(100, 1), (200, 1), (400, 1)]}, log_x=True)
    (path,) = re.findall(r'd="M([^"]+)" fill="none"', svg)
    along = [float(pair.split()[0]) for pair in path.split("L")]
    assert along[1] - along[0] == pytest.approx(along[2] - along[1], abs=0.2)


def test_texts_are_escaped() -> None:
    assert ET.fromstring(line_chart("a < b & c", "x", "y", {"<": [(1, 1)]})).find(f"{NAMESPACE}title") is not None


@pytest.mark.parametrize(("curves", "log"), [({}, False), ({"a": []}, False), ({"a": [(0, 1)]}, True)])
def test_what_cannot_be_drawn(curves: dict[str, list[tuple[float, float]]], log: bool) -> None:
    with pytest.raises(ValueError, match="T: "):
        line_chart("T", "x", "y", curves, log_x=log)


def test_pictures_of_state_runs_have_both_systems() -> None:
    found = pictures("plain", {100: ([0.2, 1.0], [50.0, 90.0]), 1000: ([0.4, 3.0], [60.0, 120.0])})
    assert sorted(found) == ["states-memory-plain.svg", "states-seconds-plain.svg"]
    ours, salts = heights(found["states-seconds-plain.svg"])
    assert ours[-1] > salts[-1], "a shorter time is further down"

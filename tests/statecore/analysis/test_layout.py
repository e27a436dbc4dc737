"""Pictures: boxes that do not overlap, arrows that lead downwards, text that cannot break out of its place."""

from __future__ import annotations

from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecore.analysis.diagram import Arrow, Box, Diagram, as_data, dot, mermaid
from statecore.analysis.layout import arranged
from statecore.analysis.svg import svg

HEIGHT = 50.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, float], list[tuple[int, int]]]:
    count = draw(st.integers(1, 24))
    widths = {box: float(draw(st.integers(20, 300))) for box in range(1, count + 1)}
    pairs = [(one, other) for one in widths for other in widths if one < other]
    return widths, draw(st.lists(st.sampled_from(pairs), max_size=40)) if pairs else []


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_layout(graph: tuple[dict[int, float], list[tuple[int, int]]]) -> None:
    widths, arrows = graph
    layout = arranged(widths, HEIGHT, arrows)
    assert set(layout.centres) == set(widths)
    for one, other in combinations(widths, 2):
        apart = abs(layout.centres[one].x - layout.centres[other].x) >= (widths[one] + widths[other]) / 2 - 0.01
        assert apart or abs(layout.centres[one].y - layout.centres[other].y) >= HEIGHT - 0.01
    for box, at in layout.centres.items():
        assert at.x - widths[box] / 2 >= -0.01
        assert at.x + widths[box] / 2 <= layout.width + 0.01
        assert HEIGHT / 2 - 0.01 <= at.y <= layout.height - HEIGHT / 2 + 0.01
    for ends in set(arrows):
        points = layout.paths[ends]
        assert all(one.y < other.y for one, other in pairwise(points))


def test_a_thousand_boxes_are_laid_out_in_time() -> None:
    widths = dict.fromkeys(range(1, 1001), 90.0)
    arranged(widths, HEIGHT, [(box, box + 1) for box in range(1, 1000)] + [(box, box + 7) for box in range(1, 990)])


WILD = "\"]</text><script>alert('x')</script>&amp; %%{init}%% \\ -->|x| \x00\x1b[31m \n end {}"

DRAWN = Diagram(
    (
        Box(1, WILD, "test.nop", WILD, WILD, WILD),
        Box(2, "b", "file.managed", "/etc/motd", "web", "web.sls:3"),
        Box(3, "c", "test.nop", "c", "web", ""),
    ),
    (Arrow(1, 2, "require"), Arrow(1, 3, f"require sls: {WILD}"), Arrow(2, 3, "onfail_any"), Arrow(2, 3, "listen")),
)


def test_svg_holds_nothing_but_text() -> None:
    root = ElementTree.fromstring(svg(DRAWN))
    tags = {element.tag.partition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "defs", "marker", "path", "rect", "g", "text"}
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("}text")]
    assert "1. test.nop" in texts
    assert any("<script>" in (element.text or "") for element in root.iter() if element.tag.endswith("}title"))
    assert {"require", "onfail", "listen"} <= set(texts)


def test_mermaid_and_dot_keep_names_in_their_quotes() -> None:
    for line in mermaid(DRAWN).splitlines():
        assert line.count('"') in (0, 2)
        assert "<script" not in line
    assert '  n1 -->|"require"| n2' in mermaid(DRAWN)
    text = dot(DRAWN).replace("\\\\", "").replace('\\"', "")
    for line in text.splitlines():
        assert line.count('"') % 2 == 0
    assert 'n2 -> n3 [label="onfail_any"];' in text


def test_data() -> None:
    data = as_data(DRAWN)
    assert data["states"][1] == {
        "number": 2,
        "id": "b",
        "function": "file.managed",
        "name": "/etc/motd",
        "sls": "web",
        "at": "web.sls:3",
        "label": "",
    }
    assert data["requisites"][0] == {"first": 1, "then": 2, "kind": "require"}


@pytest.mark.parametrize("empty", [svg, mermaid, dot])
def test_nothing_is_drawn_too(empty: object) -> None:
    assert callable(empty)
    assert empty(Diagram((), ()))

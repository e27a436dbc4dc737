"""Flame graphs: how stacks become boxes, and what is drawn of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.flame import flame_graph, grown, main

STACKS = [
    "main (run.py:1);answer (/x/handler.py:20);decode (pack.py:3) 6",
    "main (run.py:2);answer (/y/handler.py:25);seal (crypt.py:9) 3",
    "main (run.py:2);wait (run.py:7) 1",
    "",
]


def test_lines_of_one_function_are_one_box() -> None:
    root = grown(STACKS)
    assert root.samples == 10
    (run,) = root.above.values()
    assert run.name == "main (run.py)"
    assert {name: box.samples for name, box in run.above.items()} == {"answer (handler.py)": 9, "wait (run.py)": 1}
    assert {box.name: box.samples for box in run.above["answer (handler.py)"].above.values()} == {
        "decode (pack.py)": 6,
        "seal (crypt.py)": 3,
    }


def test_stacks_may_begin_at_a_function() -> None:
    root = grown(STACKS, "answer")
    assert root.samples == 9
    assert list(root.above) == ["answer (handler.py)"]


def test_a_box_is_as_wide_as_its_share(tmp_path: Path) -> None:
    stacks, picture = tmp_path / "stacks.txt", tmp_path / "picture.svg"
    stacks.write_text("\n".join(STACKS), "utf-8")
    assert main([str(stacks), "--title", "a < b", "--output", str(picture)]) == 0
    text = picture.read_text("utf-8")
    assert "a &lt; b" in text
    drawn = re.findall(r"<title>(\w+) .*?: ([\d.]+) %</title><rect x=\"([\d.]+)\" y=\"\d+\" width=\"([\d.]+)\"", text)
    assert drawn == [
        ("main", "100.0", "0.0", "1199.5"),
        ("answer", "90.0", "0.0", "1079.5"),
        ("decode", "60.0", "0.0", "719.5"),
        ("seal", "30.0", "720.0", "359.5"),
        ("wait", "10.0", "1080.0", "119.5"),
    ]


def test_small_shares_are_left_out() -> None:
    text = flame_graph("", grown(["main (a.py:1);often (a.py:2) 999", "main (a.py:1);seldom (a.py:3) 1"]))
    assert "often" in text
    assert "seldom" not in text


@pytest.mark.parametrize("lines", [[], ["main (a.py:1) 1"]])
def test_without_samples_there_is_no_picture(lines: list[str]) -> None:
    with pytest.raises(ValueError, match="no samples"):
        flame_graph("", grown(lines, "absent"))

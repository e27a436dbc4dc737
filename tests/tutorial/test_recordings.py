"""The recordings show commands of the page that they belong to, and each page shows its recording."""

from __future__ import annotations

import html
import re

import pytest

from tests.tutorial.record import RECORDINGS, ROOT, TABLE, commands_of


def shown(name: str) -> str:
    """Return the letters of a picture, one line for each of its lines."""
    svg = (RECORDINGS / f"{name}.svg").read_text("utf-8")
    lines: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text class="[\w-]+-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', svg):
        lines.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    return "\n".join("".join(text for _, text in sorted(parts)).rstrip() for _, parts in sorted(lines.items()))


@pytest.mark.parametrize("name", TABLE)
def test_a_recording_types_commands_of_its_page_in_their_order(name: str) -> None:
    commands = commands_of(TABLE[name].page)
    places = [commands.index(command) for command in TABLE[name].commands]
    assert places == sorted(places)


@pytest.mark.parametrize("name", TABLE)
def test_a_picture_shows_its_commands_and_answers(name: str) -> None:
    lines = shown(name).splitlines()
    typed = [line[2:] for line in lines if line.startswith("$ ")]
    assert typed == list(TABLE[name].commands)
    answers = [line for line in lines if not line.startswith("$ ")]
    assert len(answers) >= 2
    assert not [line for line in answers if "Traceback" in line or "rror:" in line]


@pytest.mark.parametrize("name", TABLE)
def test_a_page_shows_its_recording_with_words_for_who_does_not_see_it(name: str) -> None:
    page = ROOT / TABLE[name].page
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", page.read_text("utf-8"))
    assert (TABLE[name].title, RECORDINGS / f"{name}.svg") in [
        (words, (page.parent / path).resolve()) for words, path in pictures
    ]


@pytest.mark.parametrize("name", TABLE)
def test_a_picture_loads_nothing(name: str) -> None:
    svg = (RECORDINGS / f"{name}.svg").read_text("utf-8")
    assert re.findall(r"(?:url\(|href=)[\"']?(?!#)([^\"')]+)", svg) == []
    assert "@font-face" not in svg


def test_every_picture_is_in_the_table() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.svg")} == set(TABLE)

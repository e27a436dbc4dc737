"""The tutorial is true: its files are written, its commands are typed, and their output is what the pages show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import free_shift
from tests.tutorial.pages import Command, Transcript, WrittenFile, matches, read_steps
from tests.tutorial.play import PAGES, differences, play, reader

PAGE = """\
Write `learn/a.sls`, a file:

```yaml
a: 1
```

```console
$ one
1
...
$ two
```
"""


def test_steps_of_a_page() -> None:
    assert read_steps(PAGE) == [
        WrittenFile("learn/a.sls", "a: 1\n", 3),
        Command("one", ("1", "..."), 8),
        Command("two", (), 11),
    ]


def test_a_block_that_no_sentence_names_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="line 3: no sentence names the file"):
        read_steps("Look:\n\n```yaml\na: 1\n```\n")


@pytest.mark.parametrize(
    ("shown", "actual", "equal"),
    [
        (["a"], ["a "], True),
        (["a"], ["a", "b"], False),
        (["Duration: 1.5 ms"], ["Duration:  22.25 ms"], True),
        (["Duration: 1.5 ms"], ["Duration: long"], False),
        (["20261123100117911030:"], ["20251123100117911039:"], True),
        (["a", "..."], ["a", "b", "c"], True),
        (["...", "c"], ["a", "b", "c"], True),
        (["...", "b", "...", "d"], ["a", "b", "c", "d"], True),
        (["...", "b", "...", "b"], ["a", "b"], False),
        (["a", "...", "a"], ["a"], False),
        (["web1:", " 1", "web2:", " 2"], ["web2:", " 2", "web1:", " 1"], True),
        (["web1:", " 1", "web2:", " 2"], ["web2:", " 1", "web1:", " 2"], False),
    ],
)
def test_output_is_compared_without_what_varies(shown: list[str], actual: list[str], equal: bool) -> None:
    assert matches(shown, actual) is equal


def test_a_page_gets_the_answers_that_differ() -> None:
    assert Transcript({8: ["1", "2"], 11: ["3"]}).rewritten(PAGE) == PAGE.replace("$ two\n", "$ two\n3\n")


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Transcript]]:
    """What the commands of all pages answered, played in one lab."""
    with reader(free_shift()) as shell:
        yield play(PAGES, shell)


@pytest.mark.roles
@pytest.mark.redis
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_answer(page: Path, transcripts: dict[Path, Transcript]) -> None:
    assert differences(page, transcripts[page]) == []

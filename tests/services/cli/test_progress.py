"""``salt --progress``: one line that tells how far the job is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltern.cli import salt
from saltern.cli.report import Progress

JID = "20260101000000000000"


@pytest.mark.parametrize(
    ("expected", "returned", "failed", "silent", "line"),
    [
        (0, 0, 0, 0, "[------------------------------] 0/0 returned, 0 failed, 0 running"),
        (4, 1, 0, 0, "[#######-----------------------] 1/4 returned, 0 failed, 3 running"),
        (4, 2, 1, 1, "[######################--------] 2/4 returned, 1 failed, 1 running"),
        (3, 3, 0, 0, "[##############################] 3/3 returned, 0 failed, 0 running"),
    ],
)
def test_the_line(expected: int, returned: int, failed: int, silent: int, line: str) -> None:
    assert Progress(lambda _: None, expected, returned, failed, silent).line() == line


def run(master: Callable[..., Any], words: list[str], terminal: Callable[[str], object] | None) -> int:
    answer = {"jid": JID, "minions": ["a", "b"], "missing": []}
    loads = {"a": {"return": 1, "retcode": 0}, "b": {"return": 2, "retcode": 1}}
    fake = master({"publish": answer, "job_returns": {}})
    fake.events += [(1.0, f"salt/job/{JID}/ret/{minion}", load) for minion, load in loads.items()]
    return salt.run(["*", "f.x", *words], fake.context(terminal=terminal))


def test_it_is_drawn_while_returns_come(master: Callable[..., Any]) -> None:
    drawn: list[str] = []
    assert run(master, ["--progress"], drawn.append) == 1
    lines = [text.rpartition("\033[K")[2] for text in drawn]
    assert [line.rpartition("] ")[2] for line in lines if line] == [
        "0/2 returned, 0 failed, 2 running",
        "1/2 returned, 0 failed, 1 running",
        "2/2 returned, 1 failed, 0 running",
    ]
    # The last thing is an empty line: nothing is left on the terminal.
    assert lines[-1] == ""


@pytest.mark.parametrize("words", [[], ["--progress"]])
def test_it_is_drawn_nowhere_else(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(master, words, None) == 1
    assert "running" not in "".join(capsys.readouterr())

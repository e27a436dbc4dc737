"""``salt-run jobs.watch`` against a scripted master: what is drawn, what is said, when it ends and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltern.cli import run
from saltern.cli.job_progress import JobProgress, Part
from saltern.kit.links.control import ControlError, ControlTimeout

JID = "20260101000000000000"
#: The master's time when the watch begins: a minute after the job.
NOW = 1_767_225_660_000


def status(counts: dict[str, int] | None = None, **states: str | dict[str, Any]) -> dict[str, Any]:
    """An answer of ``job_status``: minion -> its state, or all that is told of it."""
    minions = {
        minion: {"since": NOW - 5000, "late": False, "times": {}, "seen": NOW - 4000}
        | (state if isinstance(state, dict) else {"state": state})
        for minion, state in states.items()
    }
    told = {
        "jid": JID,
        "fun": "state.apply",
        "user": "ann",
        "tgt": "*",
        "now": NOW,
        "created": NOW - 60_000,
        "ended": None,
    }
    return {**told, "complete": False, "counts": {"failed": 0, **(counts or {})}, "minions": minions}


def ret(minion: str, retcode: int = 0) -> tuple[str, dict[str, Any]]:
    return f"salt/job/{JID}/ret/{minion}", {"return": 1, "retcode": retcode, "success": not retcode}


def prog(minion: str, number: int, of: int) -> tuple[str, dict[str, Any]]:
    return f"salt/job/{JID}/prog/{minion}/{number}", {"data": {"len": of, "ret": {}}}


HEAD = f"{JID}: state.apply on * for ann, 2 minions\n"


@pytest.mark.parametrize(
    ("looks", "events", "out", "code"),
    [
        ([status(a="returned", b="returned")], [], f"{HEAD}2/2 returned\n", 0),
        (
            [status(a="expected", b="started")],
            [(0.1, *ret("a")), (0.2, *ret("b", 2)), (0.3, *ret("b"))],
            f"{HEAD}b: running\na: returned\nb: failed\n2/2 returned, 1 failed\n",
            1,
        ),
        (
            [status(a="expected", b="expected"), status(a="started", b="expected"), status(a="lost", b="returned")],
            [],
            f"{HEAD}a: running\na: lost, last heard of 4 s ago\nb: returned\n1/2 returned, 1 lost\n",
            1,
        ),
        (
            [status(a="returned", b="offline"), status(a="returned", b={"state": "returned", "late": True})],
            [],
            f"{HEAD}b: offline, last heard of 4 s ago\nb: returned (late)\n2/2 returned, 1 late\n",
            0,
        ),
        (
            [status(a="returned", b={"state": "offline", "seen": None}), status(a="returned", b="expired")],
            [],
            f"{HEAD}b: offline, never heard of\nb: expired, last heard of 4 s ago\n1/2 returned, 1 expired\n",
            1,
        ),
    ],
    ids=["complete", "events", "looks", "late", "expired"],
)
def test_lines(
    looks: list[Any],
    events: list[Any],
    out: str,
    code: int,
    master: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = list(looks)
    fake = master({"job_status": lambda fields: left.pop(0) if len(left) > 1 else left[0]}, list(events))
    assert run.run(["jobs.watch", JID], fake.context()) == code
    assert capsys.readouterr() == (out, "")
    assert fake.order[:3] == [f"subscribe salt/job/{JID}/", "ready", "job_status"]


def test_the_bar(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    drawn: list[str] = []
    events = [(1, *prog("b", 0, 9)), (2, *prog("b", 1, 9)), (3, *ret("a")), (4, *ret("b"))]
    fake = master({}, events)
    fake.answers["job_status"] = lambda fields: {
        **status(a="expected", b="started"),
        "now": NOW + round(fake.now * 1000),
    }
    assert run.run(["jobs.watch", JID], fake.context(terminal=drawn.append)) == 0
    # A terminal has the bar for what went well.
    assert capsys.readouterr().out == f"{HEAD}2/2 returned\n"
    bars = list(dict.fromkeys(text.rpartition("\033[K")[2] for text in drawn))
    dashes, half, full = "-" * 30, "#" * 15 + "-" * 15, "#" * 30
    for bar in (
        f"[{dashes}] 0/2 returned, 1 running (b), 1 waiting, 1:00",
        # Eighty columns: the bar makes room.
        f"[{dashes[:21]}] 0/2 returned, 1 running (b 2/9 states), 1 waiting, 1:02",
        f"[{half}] 1/2 returned, 1 running (b 2/9 states), 1:03",
        f"[{full}] 2/2 returned, 1:04",
    ):
        assert bar in bars
    assert drawn[-1] == "\r\033[K"


def test_what_returned_before_is_asked_for(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    answers = {"job_status": status({"failed": 1}, a="returned", b="returned"), "failed_of": {"a": 0, "b": 1}}
    fake = master(answers)
    assert run.run(["jobs.watch", f"jid={JID}"], fake.context()) == 1
    assert capsys.readouterr().out == f"{HEAD}b: failed\n2/2 returned, 1 failed\n"
    assert fake.sent("failed_of") == [{"jid": JID, "minions": ["a", "b"]}]


def test_ctrl_c_leaves_the_job_alone(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"job_status": status(a="started", b="returned")}, [(0.5, KeyboardInterrupt(), None)])
    assert run.run(["jobs.watch", JID], fake.context()) == 0
    told = f"The job goes on: 1/2 returned, 1 running (a). To look at it again: salt-run jobs.watch {JID}\n"
    assert capsys.readouterr().err == f"\n{told}"
    assert set(fake.order) == {f"subscribe salt/job/{JID}/", "ready", "job_status"}


def test_timeout(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"job_status": status(a="started")})
    assert run.run(["-t", "7", "jobs.watch", JID], fake.context()) == 1
    assert "not complete within 7 s: 0/1 returned, 1 running (a)." in capsys.readouterr().err
    assert 7 <= fake.now < 9


def test_without_the_bus_it_looks(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    left = [status(a="expected"), status(a="started"), status(a="returned")]
    fake = master({"job_status": lambda fields: left.pop(0) if len(left) > 1 else left[0]}, hears=False)
    assert run.run(["jobs.watch", JID], fake.context()) == 0
    out, err = capsys.readouterr()
    assert out.endswith("a: running\na: returned\n1/1 returned\n")
    assert "What becomes of the job is taken from the job cache." in err


def test_a_master_that_is_away_for_a_while(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    left: list[Any] = [status(a="started"), ControlTimeout("tcp://m:4507", 10), status(a="returned")]

    def answer(fields: dict[str, Any]) -> Any:
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, Exception):
            raise one
        return one

    assert run.run(["jobs.watch", JID], master({"job_status": answer}).context()) == 0
    out = capsys.readouterr().out
    assert "[WARNING ] no answer from the master at tcp://m:4507" in out
    assert out.endswith("1/1 returned\n")


def test_unknown_job(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"job_status": ControlError("UnknownJob", f"no job with the JID {JID} is in the job cache")})
    assert run.run(["jobs.watch", JID], fake.context()) == 1
    assert capsys.readouterr().err == f"ERROR: no job with the JID {JID} is in the job cache\n"


@pytest.mark.parametrize("words", [[], [JID, JID], [JID, "quiet=True"]])
def test_wrong_words(words: list[str], master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["jobs.watch", *words], master({}).context()) == 64
    assert "jobs.watch takes a JID and nothing else" in capsys.readouterr().err


def test_a_line_never_wraps() -> None:
    progress = JobProgress({f"minion{number}": Part("started") for number in range(3)})
    for columns in (1, 10, 40, 79):
        assert len(progress.bar(3700, columns)) <= max(columns - 1, 1)
    assert progress.bar(3700, 200).endswith(", 1:01:40")

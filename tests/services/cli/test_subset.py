"""``salt --subset``: some of those that have the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltern.cli import salt

ALL = ["a", "b", "c", "d"]


def run(master: Callable[..., Any], words: list[str], capable: list[str]) -> tuple[int, list[dict[str, Any]]]:
    fake = master({"job_returns": {}})

    def publish(fields: dict[str, Any]) -> dict[str, Any]:
        minions = ALL if fields["tgt"] == "*" else list(fields["tgt"])
        jid = f"{len(fake.calls):020}"
        for minion in minions:
            listed = ["f.x", "f.y"] if minion in capable else ["f.y"]
            data = {"return": listed if fields["fun"] == "sys.list_functions" else "done", "retcode": 0}
            fake.events.append((fake.now, f"salt/job/{jid}/ret/{minion}", data))
        return {"jid": jid, "minions": minions, "missing": []}

    fake.answers["publish"] = publish
    return salt.run(["*", "f.x", *words], fake.context()), fake.sent("publish")


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_so_many_are_drawn(master: Callable[..., Any], count: int) -> None:
    code, (asked, job) = run(master, ["--subset", str(count)], ["a", "b", "d"])
    assert code == 0
    assert (asked["fun"], asked["arg"], asked["tgt"]) == ("sys.list_functions", ["f"], "*")
    assert job["tgt_type"] == "list"
    assert len(job["tgt"]) == min(count, 3)
    assert set(job["tgt"]) <= {"a", "b", "d"}


def test_nobody_has_the_function(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, published = run(master, ["--subset", "2"], [])
    assert (code, len(published)) == (2, 1)
    assert "No minions matched the target" in capsys.readouterr().out


def test_a_returner_gets_the_job_alone(master: Callable[..., Any]) -> None:
    words = ["--subset", "1", "--return", "redis", "--return_config", "other", "--return_kwargs", "{db: 2}"]
    _, (asked, job) = run(master, words, ["a"])
    assert (asked["ret"], asked["kwargs"]) == ("", {})
    assert (job["ret"], job["kwargs"]) == ("redis", {"ret_config": "other", "ret_kwargs": {"db": 2}})


@pytest.mark.parametrize("words", [["--subset", "0"], ["--subset", "x"], ["--return_kwargs", "text"]])
def test_what_is_no_number_or_map(master: Callable[..., Any], words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(master, words, ["a"])
    assert ended.value.code == 64

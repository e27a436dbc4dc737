"""``salt --batch``: the window, and the whole against a scripted master."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltern.cli import salt
from saltern.kit.jobs.batch import Window, batch_size


@pytest.mark.parametrize(
    ("text", "minions", "size"),
    [("1", 10, 1), ("3", 2, 3), ("50%", 10, 5), ("25%", 10, 2), ("1%", 10, 1), ("100%", 7, 7), ("150%", 2, 3)],
)
def test_batch_size(text: str, minions: int, size: int) -> None:
    assert batch_size(text, minions) == size


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "0%", "%"])
def test_no_batch_size(text: str) -> None:
    with pytest.raises(ValueError):
        batch_size(text, 10)


@given(st.integers(0, 30), st.integers(1, 8), st.randoms(use_true_random=False))
def test_window_never_holds_more_and_forgets_nobody(count: int, size: int, random: Any) -> None:
    window = Window([f"m{n}" for n in range(count)], size)
    working: list[str] = []
    seen: list[str] = []
    while admitted := window.admit():
        seen += admitted
        working += admitted
        assert len(working) <= size
        for _ in range(random.randint(1, len(working))):
            window.leave(working.pop(random.randrange(len(working))))
    assert sorted(seen) == sorted({f"m{n}" for n in range(count)})


class Jobs:
    """Publishes jobs that return at once: {minion: (return, retcode)}; who is not in it stays silent."""

    def __init__(self, fake: Any, alive: list[str], results: dict[str, int]) -> None:
        self.fake = fake
        self.alive = alive
        self.results = results
        self.published: list[tuple[str, Any]] = []

    def publish(self, fields: dict[str, Any]) -> dict[str, Any]:
        minions = sorted(self.results) if fields["tgt"] == "*" else list(fields["tgt"])
        jid = f"{len(self.published):020}"
        self.published.append((fields["fun"], minions if fields["tgt"] != "*" else "*"))
        for minion in minions:
            if minion in self.alive and fields["fun"] != "saltutil.find_job":
                code = self.results[minion] if fields["fun"] == "f.x" else 0
                data = {"return": "done", "retcode": code}
                self.fake.events.append((self.fake.now, f"salt/job/{jid}/ret/{minion}", data))
        return {"jid": jid, "minions": minions, "missing": []}


def run(master: Callable[..., Any], words: list[str], alive: list[str], results: dict[str, int]) -> tuple[int, Jobs]:
    fake = master({"job_returns": {}})
    jobs = Jobs(fake, alive, results)
    fake.answers["publish"] = jobs.publish
    return salt.run(["*", "f.x", *words], fake.context()), jobs


def test_one_at_a_time(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, jobs = run(master, ["-b", "1"], ["a", "b"], {"a": 0, "b": 0})
    assert code == 0
    assert jobs.published == [("test.ping", "*"), ("f.x", ["a"]), ("f.x", ["b"])]
    out = capsys.readouterr().out
    assert out == "\nExecuting run on ['a']\n\na:\n    done\n\nExecuting run on ['b']\n\nb:\n    done\n"


def test_room_is_used_as_soon_as_it_is_there(master: Callable[..., Any]) -> None:
    _, jobs = run(master, ["-b", "50%"], list("abcd"), dict.fromkeys("abcd", 0))
    assert jobs.published[1:] == [("f.x", ["a", "b"]), ("f.x", ["c"]), ("f.x", ["d"])]


def test_silent_minions_get_no_job(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, jobs = run(master, ["-b", "5"], ["b"], {"a": 0, "b": 0})
    assert code == 0
    assert "Minion a did not respond. No job will be sent.\n" in capsys.readouterr().out
    assert ("f.x", ["b"]) in jobs.published


def test_one_document_is_not_spoilt_by_the_steps(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(master, ["-b", "1", "--static", "--out=json"], ["a", "b"], {"a": 0, "b": 0, "gone": 0})
    assert code == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"a": "done", "b": "done"}
    assert captured.err == "Minion gone did not respond. No job will be sent.\n"


def test_a_document_a_line_is_not_spoilt_either(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = run(master, ["-b", "1", "-v", "--out=ndjson"], ["a", "b"], {"a": 0, "b": 0, "gone": 0})
    assert code == 0
    captured = capsys.readouterr()
    assert [json.loads(line) for line in captured.out.splitlines()] == [{"a": "done"}, {"b": "done"}]
    assert "Minion gone did not respond. No job will be sent.\n" in captured.err


def test_exit_code_is_the_largest(master: Callable[..., Any]) -> None:
    assert run(master, ["-b", "1"], list("abc"), {"a": 1, "b": 20, "c": 0})[0] == 20


def test_failhard(master: Callable[..., Any]) -> None:
    code, jobs = run(master, ["-b", "1", "--failhard"], list("abc"), {"a": 0, "b": 2, "c": 0})
    assert code == 2
    assert [minions for fun, minions in jobs.published if fun == "f.x"] == [["a"], ["b"]]


def test_a_pause_before_a_place_is_taken_again(master: Callable[..., Any]) -> None:
    fake = master({"job_returns": {}})
    jobs = Jobs(fake, ["a", "b"], {"a": 0, "b": 0})
    times: list[float] = []

    def publish(fields: dict[str, Any]) -> dict[str, Any]:
        times.append(fake.now)
        return jobs.publish(fields)

    fake.answers["publish"] = publish
    assert salt.run(["*", "f.x", "-b", "1", "--batch-wait", "7"], fake.context()) == 0
    assert times[2] - times[1] == 7


@pytest.mark.parametrize("configured", [False, True], ids=["words", "options"])
@pytest.mark.parametrize(("limit", "steps"), [(2, [["a", "b"], ["c"]]), (3, [["a", "b"], ["c"]]), (4, ["*"])])
def test_a_batch_where_there_are_many(
    master: Callable[..., Any], limit: int, steps: list[Any], configured: bool
) -> None:
    options = {"batch_safe_limit": limit, "batch_safe_size": 2} if configured else {}
    fake = master({"job_returns": {}, "targets": {"minions": ["a", "b", "c"], "missing": []}}, options=options)
    jobs = Jobs(fake, list("abc"), dict.fromkeys("abc", 0))
    fake.answers["publish"] = jobs.publish
    words = [] if configured else ["--batch-safe-limit", str(limit), "--batch-safe-size", "2"]
    assert salt.run(["*", "f.x", *words], fake.context()) == 0
    assert [minions for fun, minions in jobs.published if fun == "f.x"] == steps


def test_no_match(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": {"jid": None, "minions": []}})
    assert salt.run(["-b", "1", "nope", "f.x"], fake.context()) == 2
    assert capsys.readouterr().err == "ERROR: No return received\n"


def test_nobody_answers_the_ping(master: Callable[..., Any]) -> None:
    assert run(master, ["-b", "1"], [], {"a": 0})[0] == 2


def test_minion_that_goes_away_between_ping_and_job(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({"job_returns": {}})
    jobs = Jobs(fake, ["a", "b"], {"a": 0, "b": 0})
    gone = {"jid": None, "minions": []}
    fake.answers["publish"] = lambda fields: gone if fields["tgt"] == ["a"] else jobs.publish(fields)
    assert salt.run(["-b", "1", "*", "f.x"], fake.context()) == 1
    out = capsys.readouterr().out
    assert "a:\n    Minion did not return. [No response]" in out
    assert "b:\n    done" in out

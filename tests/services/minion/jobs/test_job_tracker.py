"""Jobs in hand: each is handed on once, told of while it runs, and has an end whatever becomes of its process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.jobs.job_tracker import JobTracker
from saltern.minion.jobs.journal import JobSteps, Journal, JournalStep
from saltern.minion.jobs.spool import Spool

JID = "20260101000000000001"
JOB = {"jid": JID, "fun": "cmd.run", "arg": ["make"], "tgt": "*", "user": "ann", "metadata": {"a": 1}}


class Place:
    """A state directory, and what a minion that starts there does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spool = Spool(path / "spool")
        self.steps = JobSteps(path)
        self.pids: list[int] = []
        self.now = 0.0

    def start(self, **options: Any) -> JobTracker:
        made = MinionOptions(id="web1", **options)
        return JobTracker(made, Journal(self.path, 10), self.spool)

    def jobber(self, jid: str = JID) -> int:
        """A process that begins the job, and then works for ever."""
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            if self.steps.begin(jid) is None:
                os._exit(1)
            os.write(write, b"x")
            signal.pause()
        self.pids.append(pid)
        os.close(write)
        assert os.read(read, 1) == b"x"
        os.close(read)
        return pid

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def check(self, hand: JobTracker) -> list[dict[str, Any]]:
        self.now += 1
        return hand.check(self.now)

    def returns(self) -> list[dict[str, Any]]:
        return [load for path in self.spool.waiting() if (load := self.spool.read(path))]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for pid in made.pids:
        with suppress(ProcessLookupError, ChildProcessError):
            made.kill(pid)


def test_a_job_is_handed_on_once(place: Place) -> None:
    hand = place.start()
    assert JID not in hand
    assert hand.take(JOB) == {"journalled": JOB}
    assert JID in hand
    assert JID in place.start()


def test_what_nobody_has_begun_is_gone_on_with_after_a_kill(place: Place) -> None:
    place.start().take(JOB)
    hand = place.start()
    assert list(hand.resume()) == [{"journalled": JOB}]
    place.jobber()
    assert list(hand.resume()) == [], "somebody has begun it"
    assert list(place.start().resume()) == []


@pytest.mark.parametrize(
    ("more", "options"), [({"replay_until": 1}, {}), ({}, {"replay_window": -1})], ids=["the master's", "the minion's"]
)
def test_what_comes_too_late_ends_with_words(place: Place, more: dict[str, Any], options: dict[str, Any]) -> None:
    place.start().take({**JOB, **more})
    hand = place.start(**options)
    assert list(hand.resume()) == []
    (ret,) = place.returns()
    assert ret["return"].startswith("JobExpired: ")
    assert (ret["jid"], ret["fun"], ret["fun_args"], ret["retcode"], ret["success"]) == (
        JID,
        "cmd.run",
        ["make"],
        1,
        False,
    )
    assert (ret["user"], ret["metadata"]) == ("ann", {"a": 1})
    assert JID in hand
    assert list(place.start(**options).resume()) == []
    assert len(place.returns()) == 1


def test_a_job_whose_minion_was_killed_has_an_end(place: Place) -> None:
    place.start().take(JOB)
    pid = place.jobber()
    hand = place.start()
    place.check(hand)
    assert place.returns() == []
    place.kill(pid)
    for _ in range(5):
        place.check(hand)
    (ret,) = place.returns()
    assert ret["return"].startswith("JobKilled: the minion was killed while it ran this job; it began at 2")
    assert JID in hand
    assert list(hand.resume()) == []
    assert list((place.path / "journal").iterdir()) == []


def test_how_a_process_ended_is_told_where_it_was_seen(place: Place) -> None:
    hand = place.start()
    hand.take(JOB)
    place.kill(place.jobber())
    hand.job_died(JID, -9)
    place.check(hand)
    (ret,) = place.returns()
    assert "the process of this job was killed by signal 9 (Killed)" in ret["return"]


def test_a_result_that_was_spooled_before_the_kill_is_the_only_end(place: Place) -> None:
    hand = place.start()
    hand.take(JOB)
    pid = place.jobber()
    place.spool.put({"cmd": "_return", "jid": JID, "fun": "cmd.run", "return": "made"})
    place.kill(pid)
    for _ in range(3):
        place.check(hand)
    assert [ret["return"] for ret in place.returns()] == ["made"]


def test_the_end_of_a_job_waits_for_a_place_on_the_disk(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = place.start()
    hand.take(JOB)
    place.kill(place.jobber())

    def full(ret: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(place.spool, "put", full)
        for _ in range(3):
            place.check(hand)
    assert place.returns() == []
    place.check(hand)
    assert len(place.returns()) == 1


def test_a_job_that_runs_for_a_second_is_told_of_once(place: Place) -> None:
    hand = place.start()
    hand.take(JOB)
    place.jobber()
    assert place.check(hand) == [], "it may end in its first second"
    (entry,) = [entry for entry in Journal(place.path, 10).entries() if entry.step is JournalStep.BEGAN]
    began = time.time() - 1.5
    os.utime(entry.path, (began, began))
    assert place.check(hand) == [{"jid": JID, "sign": "started", "ms": int(began * 1000)}]
    assert place.check(hand) == []
    assert place.check(place.start()) == [{"jid": JID, "sign": "started", "ms": int(began * 1000)}], (
        "after a restart again"
    )


def test_a_job_that_goes_on_is_told_of_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = place.start()
    hand.take(JOB)
    place.jobber()
    (entry,) = [entry for entry in Journal(place.path, 10).entries() if entry.step is JournalStep.BEGAN]
    began = time.time() - 1.5
    os.utime(entry.path, (began, began))
    sign = {"jid": JID, "sign": "started", "ms": int(began * 1000)}
    assert place.check(hand) == [sign]
    now = time.time()
    monkeypatch.setattr("saltern.minion.jobs.job_tracker.time.time", lambda: now + 119)
    assert place.check(hand) == []
    monkeypatch.setattr("saltern.minion.jobs.job_tracker.time.time", lambda: now + 121)
    assert place.check(hand) == [sign], "a minion that is silent over a job is taken for lost"


def test_the_directory_is_not_looked_at_all_the_time(place: Place) -> None:
    hand = place.start()
    hand.take(JOB)
    place.jobber()
    hand.check(1.0)
    (entry,) = Journal(place.path, 10).entries()
    os.utime(entry.path, (1, 1))
    assert hand.check(1.1) == []
    assert len(hand.check(1.6)) == 1


def test_a_full_spool_refuses_and_says_so(place: Place) -> None:
    place.spool.put({"jid": "1", "fun": "a.b", "return": "x" * 5000})
    hand = place.start(spool_max_bytes=4000)
    assert hand.take(JOB) is None
    assert JID in hand
    words = [ret["return"] for ret in place.returns() if ret["jid"] == JID]
    assert len(words) == 1
    assert words[0].startswith("JobRefused: 5")
    assert "spool_max_bytes (4000)" in words[0]


def test_a_full_spool_drops_the_oldest(place: Place) -> None:
    for number in range(4):
        place.spool.put({"cmd": "_return", "jid": str(number), "fun": "a.b", "return": "x" * 5000})
    hand = place.start(spool_max_bytes=12_000, spool_policy="drop_oldest")
    assert hand.take(JOB) == {"journalled": JOB}
    kept = {ret["jid"]: ret["return"][:15] for ret in place.returns()}
    assert kept == {"0": "ReturnDropped: ", "1": "ReturnDropped: ", "2": "x" * 15, "3": "x" * 15}
    assert place.spool.size() <= 12_000


def test_results_of_jobs_that_ran_are_dropped_too(place: Place) -> None:
    hand = place.start(spool_max_bytes=6000, spool_policy="drop_oldest")
    for number in range(3):
        place.spool.put({"cmd": "_return", "jid": str(number), "fun": "a.b", "return": "x" * 5000})
    place.check(hand)
    assert place.spool.size() <= 6000
    assert len(place.returns()) == 3


def test_words_are_dropped_when_there_is_nothing_else(place: Place) -> None:
    for number in range(10):
        place.spool.put({"cmd": "_return", "jid": str(number), "fun": "a.b", "return": "x" * 100})
    place.spool.shed(500)
    assert 0 < place.spool.size() <= 500
    assert place.returns()[-1]["jid"] == "9"

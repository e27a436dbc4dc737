"""The journal: a step is taken by one process or not at all, and every kill leaves something to go on from."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saltern.minion.jobs.journal import JobSteps, Journal, JournalStep, entry_of, may_still_run

JID = "20260101000000000001"
OTHER = "20260101000000000002"


def job(jid: str = JID, **more: Any) -> dict[str, Any]:
    return {"jid": jid, "fun": "test.ping", "arg": [], "tgt": "*", **more}


def in_child(work: Callable[[], None]) -> int:
    """The pid of a process that did this, and was then killed."""
    pid = os.fork()
    if not pid:
        work()
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return pid


def steps(journal: Journal) -> list[tuple[str, JournalStep]]:
    return [(entry.jid, entry.step) for entry in journal.entries()]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"{JID}.received", (JID, JournalStep.RECEIVED, 0, "")),
        (f"{JID}.began.12.345", (JID, JournalStep.BEGAN, 12, "345")),
        (f"{JID}.began.12.", (JID, JournalStep.BEGAN, 12, "")),
        (f"{JID}_a.b.ended", (f"{JID}_a.b", JournalStep.ENDED, 0, "")),
        (f"{JID}_a.began.7.8", (f"{JID}_a", JournalStep.BEGAN, 7, "8")),
        (f".{JID}.12", None),
        (f"{JID}.began.x.1", None),
        ("lost+found", None),
    ],
)
def test_a_name_is_a_step(tmp_path: Path, name: str, found: tuple[str, JournalStep, int, str] | None) -> None:
    entry = entry_of(tmp_path / name)
    assert (entry and (entry.jid, entry.step, entry.pid, entry.born)) == found


def test_the_life_of_a_job(tmp_path: Path) -> None:
    journal, jobber = Journal(tmp_path, 10), JobSteps(tmp_path)
    assert JID not in journal
    assert not journal
    assert journal.receive(job(arg=[b"\xff", {"a": 1}]))
    assert JID in journal
    (entry,) = journal.entries()
    assert entry.step is JournalStep.RECEIVED
    assert journal.load(entry) == job(arg=[b"\xff", {"a": 1}])
    begun = jobber.begin(JID)
    assert begun is not None
    (entry,) = journal.entries()
    assert (entry.step, entry.pid, entry.alive()) == (JournalStep.BEGAN, os.getpid(), True)
    jobber.end(begun, JID)
    assert journal.entries() == []
    assert JID in journal
    assert not journal
    assert list((tmp_path / "journal").iterdir()) == [], "what is over takes no place"


@pytest.mark.parametrize(
    ("done", "left"),
    [
        (lambda place: None, []),
        (lambda place: Journal(place, 10).receive(job()), [(JID, JournalStep.RECEIVED)]),
        (lambda place: (Journal(place, 10).receive(job()), JobSteps(place).begin(JID)), [(JID, JournalStep.BEGAN)]),
        (
            lambda place: (
                Journal(place, 10).receive(job()),
                JobSteps(place).end(JobSteps(place).begin(JID), JID),  # type: ignore[arg-type]
            ),
            [],
        ),
    ],
    ids=["nothing", "received", "began", "ended"],
)
def test_a_killed_process_leaves_the_step_that_it_took(
    tmp_path: Path, done: Callable[[Path], Any], left: list[tuple[str, JournalStep]]
) -> None:
    in_child(lambda: done(tmp_path))
    journal = Journal(tmp_path, 10)
    assert steps(journal) == left
    assert [entry.alive() for entry in journal.entries() if entry.step is JournalStep.BEGAN] in ([], [False])
    (tmp_path / "jids").touch()
    assert (JID in journal) is (bool(left) or JID in (tmp_path / "jids").read_text())


def test_only_one_of_many_jobbers_begins_a_job(tmp_path: Path) -> None:
    Journal(tmp_path, 10).receive(job())
    jobber = JobSteps(tmp_path)
    begun = [jobber.begin(JID) for _ in range(3)]
    assert [path is not None for path in begun] == [True, False, False]


def test_a_file_that_was_not_written_to_its_end_is_gone_at_the_next_start(tmp_path: Path) -> None:
    Journal(tmp_path, 10)
    pid = in_child(lambda: None)
    (tmp_path / "journal" / f".{JID}.{pid}").write_bytes(b"half")
    assert steps(Journal(tmp_path, 10)) == []
    assert list((tmp_path / "journal").iterdir()) == []


def test_a_damaged_load_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(tmp_path, 10)
    (tmp_path / "journal" / f"{JID}.received").write_bytes(b"")
    (entry,) = journal.entries()
    with caplog.at_level(logging.ERROR):
        assert journal.load(entry) is None
    assert str(entry.path) in caplog.text


@pytest.mark.parametrize("jid", ["../../evil", "mine", ""])
def test_a_jid_of_another_form_is_remembered_and_names_no_file(tmp_path: Path, jid: str) -> None:
    journal = Journal(tmp_path, 10)
    assert not journal.receive(job(jid))
    assert jid in journal
    assert list((tmp_path / "journal").iterdir()) == []


def test_where_nothing_can_be_written_the_job_may_run_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path, 10)
    (tmp_path / "journal").rmdir()
    (tmp_path / "journal").write_text("")
    with caplog.at_level(logging.WARNING):
        assert not journal.receive(job())
    assert JID in journal
    assert "without a journal" in caplog.text


def test_what_ended_on_a_full_disk_is_known_after_a_restart(tmp_path: Path) -> None:
    journal, jobber = Journal(tmp_path, 10), JobSteps(tmp_path)
    for jid in (JID, OTHER):
        journal.receive(job(jid))
    begun = jobber.begin(JID)
    assert begun is not None
    jobber.end(begun, JID)
    (tmp_path / "jids").mkdir()
    (other,) = journal.entries()
    journal.end(other)
    assert sorted(path.name for path in (tmp_path / "journal").iterdir()) == [f"{JID}.ended", f"{OTHER}.ended"]
    again = Journal(tmp_path, 10)
    assert JID in again
    assert OTHER in again
    (tmp_path / "jids").rmdir()
    assert again.entries() == []
    assert (tmp_path / "jids").read_text().split() == [JID, OTHER]
    assert list((tmp_path / "journal").iterdir()) == []


def test_until_when_it_has_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(tmp_path, 10)
    assert journal.asked_until() == 0
    journal.keep_asked_until(5)
    journal.keep_asked_until(7)
    assert Journal(tmp_path, 10).asked_until() == 7
    (tmp_path / "asked").write_bytes(b"\xff")
    with caplog.at_level(logging.WARNING):
        assert journal.asked_until() == 0
    assert str(tmp_path / "asked") in caplog.text
    (tmp_path / "asked").unlink()
    (tmp_path / "asked").mkdir()
    journal.keep_asked_until(9)


@pytest.mark.parametrize(
    ("load", "received", "now", "runs"),
    [
        ({"replay_until": 5000}, 0, 5000, True),
        ({"replay_until": 5000}, 0, 5001, False),
        ({"replay_until": 0}, 5000, 5001, False),
        ({"replay_until": True}, 0, 1000, True),
        ({"replay_until": "soon"}, 0, 2001, False),
        ({}, 1000, 3000, True),
        ({}, 1000, 3001, False),
    ],
)
def test_a_job_that_waited_has_its_time(load: dict[str, Any], received: int, now: int, runs: bool) -> None:
    assert may_still_run(load, received, now, window=2) is runs


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["receive", "begin", "end", "restart", "look", "deliver"]), max_size=14))
def test_whatever_happens_a_job_begins_once(tmp_path_factory: pytest.TempPathFactory, happenings: list[str]) -> None:
    """One job, delivered and restarted at will: it begins at most once, and is known from its first receipt on."""
    place = tmp_path_factory.mktemp("state")
    journal, jobber = Journal(place, 10), JobSteps(place)
    begun: list[Path] = []
    received = ended = False
    for happening in happenings:
        if happening in ("receive", "deliver") and JID not in journal:
            received = journal.receive(job())
        elif happening == "begin" and (path := jobber.begin(JID)) is not None:
            begun.append(path)
        elif happening == "end" and begun and not ended:
            jobber.end(begun[0], JID)
            ended = True
        elif happening == "restart":
            journal = Journal(place, 10)
        elif happening == "look":
            journal.entries()
        assert len(begun) <= 1
        assert (JID in journal) is received

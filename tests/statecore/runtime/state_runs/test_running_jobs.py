"""Jobs that run, as files: who runs is who wrote the file, and nobody else is signalled."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest

from statecore.runtime.state_runs.running_jobs import ProcDirectory, is_alive

JID = "20260101000000000000"


@pytest.fixture
def procs(tmp_path: Path) -> ProcDirectory:
    return ProcDirectory(tmp_path / "proc")


@pytest.fixture
def job(procs: ProcDirectory, eventually: Callable[[Callable[[], Any]], Any]) -> Iterator[int]:
    """A process that runs a job until it is signalled."""
    pid = os.fork()
    if not pid:
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with procs.record({"jid": JID, "fun": "test.sleep", "arg": [60]}):
                signal.pause()
        finally:
            os._exit(0)
    eventually(procs.running)
    yield pid
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def test_a_job_is_there_while_it_runs(procs: ProcDirectory, tmp_path: Path) -> None:
    assert procs.running() == []
    load = {"jid": JID, "fun": "test.ping", "arg": [], "tgt": {1, 2}}
    with procs.record(load):
        (found,) = procs.running()
        assert found == {"jid": JID, "fun": "test.ping", "arg": [], "tgt": "{1, 2}", "pid": os.getpid()}
    assert procs.running() == []
    assert list((tmp_path / "proc").iterdir()) == []


def test_a_job_that_fails_runs_no_more(procs: ProcDirectory) -> None:
    with pytest.raises(RuntimeError), procs.record({"jid": JID}):
        raise RuntimeError
    assert procs.running() == []


def test_any_text_may_be_an_argument(procs: ProcDirectory) -> None:
    with procs.record({"jid": JID, "arg": ["caf\udce9"]}):
        assert procs.running()[0]["arg"] == ["caf\\udce9"]


def test_a_killed_job_is_forgotten(procs: ProcDirectory, job: int, tmp_path: Path) -> None:
    os.kill(job, signal.SIGKILL)
    os.waitpid(job, 0)
    assert (tmp_path / "proc" / JID).exists()
    assert procs.running() == []
    assert list((tmp_path / "proc").iterdir()) == []


def test_another_process_of_the_same_number_is_not_the_job(procs: ProcDirectory, tmp_path: Path) -> None:
    # As after the restart of a container: the number lives, the job does not.
    (tmp_path / "proc" / JID).write_bytes(msgpack.packb({"jid": JID, "pid": os.getpid(), "__born__": "1"}))
    assert procs.signal(JID, signal.SIGTERM) == ""
    assert procs.running() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        b"\x01",
        msgpack.packb([1]),
        msgpack.packb({"jid": JID}),
        msgpack.packb({"jid": JID, "pid": 0}),
        msgpack.packb({"jid": JID, "pid": -1}),
        msgpack.packb({"jid": JID, "pid": "1"}),
        msgpack.packb({"jid": JID, "pid": None}),
    ],
)
def test_what_is_no_job_is_removed_and_nobody_is_signalled(
    procs: ProcDirectory, tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "proc" / JID
    path.write_bytes(content)
    monkeypatch.setattr(os, "killpg", lambda pid, number: pytest.fail(f"process group {pid} was signalled"))
    assert procs.signal(JID, signal.SIGTERM) == ""
    assert not path.exists()


def test_a_signal_reaches_the_job(procs: ProcDirectory, job: int) -> None:
    assert procs.signal(JID, 15) == f"Signal 15 sent to job {JID} at pid {job}"
    _, status = os.waitpid(job, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert procs.signal(JID, 15) == ""


def test_other_jobs_are_left_alone(procs: ProcDirectory, job: int) -> None:
    assert procs.signal("20260101000000000001", 15) == ""
    assert is_alive(job)


def test_half_written_files_are_no_jobs(procs: ProcDirectory, tmp_path: Path) -> None:
    (tmp_path / "proc" / f".{JID}.77").write_bytes(b"\x81")
    assert procs.running() == []
    assert (tmp_path / "proc" / f".{JID}.77").exists()

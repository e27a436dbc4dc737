"""``master_type: disable``: a minion that runs its schedule, its beacons and the states of its start, at no master."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.roles.lab import BIN, COMMAND, STARTUP, until

pytestmark = [pytest.mark.roles]

SLS = """
/marker:
  file.append:
    - text: {{ pillar['word'] }}
"""


class AloneMinion:
    """Its directories, its process, and salt-call beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "salt").mkdir()
        (root / "salt" / "marked.sls").write_text(SLS)
        (root / "pillar").mkdir()
        (root / "pillar" / "top.sls").write_text("base: {'*': [word]}\n")
        self.tell("first")
        options: dict[str, Any] = {
            "id": "alone",
            "master_type": "disable",
            "cachedir": str(root / "cache"),
            "pki_dir": str(root / "pki"),
            "host_root": str(root / "host"),
            "file_roots": {"base": [str(root / "salt")]},
            "pillar_roots": {"base": [str(root / "pillar")]},
            "startup_states": "sls",
            "sls_list": ["marked"],
            "cache_jobs": True,
            "schedule": {"often": {"function": "state.apply", "args": ["marked"], "seconds": 1}},
            "beacons": {"load": [{"averages": {"1m": [1000.0, 2000.0]}}]},
            "log_level": "debug",
        }
        (root / "minion").write_text(json.dumps(options))
        (root / "host").mkdir()
        self.log = root / "log"
        self.restart()

    def restart(self) -> None:
        """Starts its process, with an empty log."""
        self._log = self.log.open("wb")
        self.process = subprocess.Popen([str(BIN / "saltern"), "minion", "-c", str(self.root)], stderr=self._log)

    def tell(self, word: str) -> None:
        (self.root / "pillar" / "word.sls").write_text(f"word: {word}\n")

    def marks(self) -> list[str]:
        marker = self.root / "host" / "marker"
        return marker.read_text().splitlines() if marker.exists() else []

    def call(self, *words: str) -> Any:
        done = subprocess.run(
            [str(BIN / "salt-call"), "-c", str(self.root), "--out", "json", *words],
            capture_output=True,
            text=True,
            timeout=COMMAND,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["local"]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STARTUP)
        self._log.close()
        return code


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[AloneMinion]:
    made = AloneMinion(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def test_it_does_by_itself_what_it_is_told_to(alone: AloneMinion) -> None:
    until(lambda: alone.marks() == ["first"], STARTUP, "the states of its start, or its schedule")
    # Nobody tells it: each job compiles the pillar.
    alone.tell("second")
    until(lambda: alone.marks() == ["first", "second"], STARTUP, "the schedule")
    assert alone.call("schedule.add", "more", "function=test.ping", "seconds=1")["result"] is True
    until(lambda: "_last_run" in alone.call("schedule.job_status", "more"), STARTUP, "the job that was added")
    until(lambda: "salt/beacon/alone/load/" in alone.log.read_text(), STARTUP, "the beacon")
    kept = until(lambda: list((alone.root / "cache" / "minion_jobs").glob("*/return.p")), STARTUP, "a kept return")
    assert kept
    # There is nobody whom they would wait for, and nobody who knows a key.
    assert not [each for each in (alone.root / "cache" / "spool").rglob("*") if each.is_file()]
    assert not (alone.root / "pki").exists()
    assert alone.end() == 0


def test_it_hears_of_what_is_to_be_read_anew(alone: AloneMinion) -> None:
    until(lambda: alone.marks() == ["first"], STARTUP, "the states of its start")
    (alone.root / "pillar" / "word.sls").write_text(
        "word: first\nschedule: {given: {function: test.ping, seconds: 1}}\n"
    )
    assert alone.call("saltutil.refresh_pillar") is True
    until(lambda: "given" in alone.call("schedule.list", "return_yaml=false"), STARTUP, "the schedule of the pillar")


def test_its_preloaded_process_is_started_again(alone: AloneMinion) -> None:
    until(lambda: alone.marks() == ["first"], STARTUP, "the states of its start")
    children = Path(f"/proc/{alone.process.pid}/task/{alone.process.pid}/children")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    until(lambda: "a new one is started" in alone.log.read_text(), STARTUP, "a new one")
    alone.tell("second")
    until(lambda: alone.marks() == ["first", "second"], STARTUP, "the schedule goes on")
    assert alone.end() == 0

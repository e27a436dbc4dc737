"""salt-call processes beside each other on one host: one state run at a time, and what can be said to one that runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_CALL = "import sys; from saltern.minion.call.call import main; sys.exit(main())"

Eventually = Callable[[Callable[[], Any]], Any]


class Minion:
    """A host with a state that lasts until its file is there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[subprocess.Popen[str]] = []
        tree = directory / "tree"
        tree.mkdir()
        (directory / "minion").write_text(
            f"id: web1\ncachedir: {directory}/cache\nfile_roots: {{base: [{tree}]}}\npillar_roots: {{}}\n"
        )
        (tree / "slow.sls").write_text(
            f"begins:\n  cmd.run:\n    - name: touch {directory}/begun; until [ -e {directory}/end ]; do sleep 0.05; done\n"
            "goes on:\n  test.nop: []\n"
        )
        (tree / "log.sls").write_text(f"log:\n  cmd.run:\n    - name: echo {{{{ pillar.who }}}} >> {directory}/log\n")
        (tree / "fails.sls").write_text("fails:\n  test.fail_without_changes: []\n")

    def start(self, *words: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", _CALL, "--local", "-c", str(self.directory), "--out", "json", *words]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def call(self, *words: str) -> tuple[Any, int]:
        return self.ended(self.start("--retcode-passthrough", *words))

    def ended(self, process: subprocess.Popen[str]) -> tuple[Any, int]:
        out, error = process.communicate(timeout=60)
        assert out, error
        return json.loads(out)["local"], process.returncode

    def waits(self) -> list[str]:
        marks = [json.loads(path.read_text()) for path in sorted((self.directory / "cache/state_queue").glob("2*"))]
        return [mark["jid"] for mark in marks if mark["waits"]]


@pytest.fixture
def minion(tmp_path: Path) -> Iterator[Minion]:
    minion = Minion(tmp_path)
    yield minion
    (minion.directory / "end").touch()
    for process in minion.started:
        process.kill()
        process.wait()


@pytest.fixture
def slow(minion: Minion, eventually: Eventually) -> tuple[subprocess.Popen[str], str]:
    """A state run in progress, and its job id."""
    process = minion.start("state.apply", "slow")
    eventually((minion.directory / "begun").exists)
    (mark,) = (minion.directory / "cache/state_queue").glob("2*")
    return process, mark.name


def test_a_second_run_is_refused_until_the_first_is_over(minion: Minion, slow: Any) -> None:
    process, jid = slow
    refusal = rf'The function "state.apply" is running as PID {process.pid} and was started at '
    told, code = minion.call("state.apply", "fails")
    assert told[0].startswith(refusal)
    assert told[0].endswith(f" with jid {jid}")
    assert code == 1
    assert minion.call("state.running")[0] == told
    assert minion.call("state.show_sls", "fails")[1] == 0
    assert [job["jid"] for job in minion.call("saltutil.is_running", "state.*")[0]] == [jid]
    (minion.directory / "end").touch()
    assert minion.ended(process)[1] == 0
    assert minion.call("state.apply", "fails")[1] == 2
    assert minion.call("state.apply", "absent")[1] == 1


def test_runs_that_wait_go_in_their_order(minion: Minion, slow: Any, eventually: Eventually) -> None:
    waiting = []
    for number in range(2):
        waiting.append(minion.start("state.apply", "log", f"pillar={{who: {number}}}", "queue=True"))
        eventually(lambda: len(minion.waits()) == len(waiting))
    # Three are before it.
    assert len(minion.call("state.apply", "log", "queue=3")[0]) == 3
    (minion.directory / "end").touch()
    for process in (slow[0], *waiting):
        assert minion.ended(process)[1] == 0
    assert (minion.directory / "log").read_text() == "0\n1\n"


def test_a_users_function_that_applies_states_takes_its_turn(minion: Minion, slow: Any) -> None:
    (minion.directory / "tree/_modules").mkdir()
    (minion.directory / "tree/_modules/deploy.py").write_text(
        "def now():\n    return __salt__['state.apply']('fails')\n"
    )
    assert "modules.deploy" in minion.call("saltutil.sync_modules")[0]
    told, code = minion.call("deploy.now")
    assert told[0].startswith('The function "state.apply" is running as PID ')
    assert code == 1
    (minion.directory / "end").touch()
    minion.ended(slow[0])
    assert minion.call("deploy.now")[1] == 2


def test_a_killed_run_is_in_nobodys_way(minion: Minion, slow: Any) -> None:
    process, _ = slow
    process.kill()
    process.wait()
    assert minion.call("state.apply", "log", "pillar={who: me}")[1] == 0
    (minion.directory / "end").touch()


def test_a_run_is_ended_by_word_of_mouth(minion: Minion, slow: Any) -> None:
    process, jid = slow
    assert minion.call("state.soft_kill", jid, "goes on")[1] == 0
    assert minion.call("state.get_pauses")[0] == {jid: {"goes on": {"kill": True}}}
    (minion.directory / "end").touch()
    told, code = minion.ended(process)
    assert [entry["__id__"] for entry in told.values()] == ["begins"]
    assert code == 0
    assert minion.call("state.get_pauses")[0] == {}


def test_a_paused_run_goes_on_when_it_may(minion: Minion, slow: Any) -> None:
    process, jid = slow
    assert minion.call("state.pause", jid)[1] == 0
    (minion.directory / "end").touch()
    # It is there until somebody says otherwise.
    assert len(minion.call("state.running")[0]) == 1
    assert minion.call("state.resume", jid)[1] == 0
    told, _ = minion.ended(process)
    assert [entry["__id__"] for entry in told.values()] == ["begins", "goes on"]


def test_who_may_not_write_runs_states_all_the_same(minion: Minion) -> None:
    (minion.directory / "cache").write_text("no directory")
    process = minion.start("state.apply", "log", "pillar={who: me}")
    out, error = process.communicate(timeout=60)
    assert json.loads(out)["local"], error
    assert "other jobs on this host are not known here" in error

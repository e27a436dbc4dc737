"""``saltern lab`` as an operator uses it: real processes on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from saltern.lab.plan import PORTS, Paths
from saltern.lab.supervisor import Supervisor, marked, wait_until
from tests.ports import free_shift

pytestmark = [pytest.mark.roles, pytest.mark.timeout(240)]

PROGRAMS = Path(sys.executable).parent
TREE = Path(__file__).parents[3] / "examples" / "srv"


@dataclass(frozen=True)
class Operator:
    """Somebody with a lab in ``paths``."""

    paths: Paths
    shift: int

    def lab(self, *words: str, expect: int = 0) -> str:
        """Output of ``saltern lab``, both streams; fails for another exit code."""
        env = {name: value for name, value in os.environ.items() if name != "SALT_CONFIG_DIR"}
        # What a sourced env of another lab says must not matter.
        env |= {"SALTERN_RET_PORT": "1", "SALTERN_REDIS_URL": "redis://nowhere"}
        return self._run([str(PROGRAMS / "saltern"), "lab", *words, "--dir", str(self.paths.root)], env, expect)

    def up(self, *words: str, expect: int = 0) -> str:
        return self.lab("up", "--tree", str(TREE), "--shift", str(self.shift), *words, expect=expect)

    def shell(self, command: str) -> str:
        """Output of a command in a shell that has sourced ``env``."""
        words = ["/bin/sh", "-ec", f'. "$1"; {command}', "sh", str(self.paths.env)]
        return self._run(words, dict(os.environ), 0)

    def _run(self, words: Sequence[str], env: dict[str, str], expect: int) -> str:
        done = subprocess.run(
            words, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False
        )
        assert done.returncode == expect, done.stdout
        return done.stdout


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    one = Operator(Paths(tmp_path / "a b%c;d" / ".lab"), free_shift())
    yield one
    one.lab("down")
    assert marked(one.paths) == []


def test_a_lab_from_its_first_start_to_its_end(operator: Operator) -> None:
    first = operator.up()
    assert first.count("Failed:    0") == 2
    assert "(changed=" in first
    for host, owner in (("web1", "the shop team"), ("web2", "the blog team")):
        assert owner in (operator.paths.host_of(host) / "etc" / "motd").read_text()
    assert json.loads(operator.shell("salt '*' test.ping --static --out=json")) == {"web1": True, "web2": True}
    assert "web1" in operator.shell("salt-call grains.get host")

    supervisor = Supervisor(operator.paths, PROGRAMS)
    pid = supervisor.pid()
    assert pid is not None
    second = operator.lab("up")
    assert second.count("Failed:    0") == 2
    assert "(changed=" not in second
    assert supervisor.pid() == pid

    # A program that does not run is started again, and only that one.
    supervisor.stop_program("maintenance")
    assert wait_until(lambda: supervisor.states()["maintenance"].name == "stopped", 20)
    assert "maintenance does not run; it is started" in operator.lab("up", "--no-apply")

    refused = operator.lab("up", "--ret-port", "5000", expect=1)
    assert "--ret-port" in refused
    assert "lab down" in refused
    assert supervisor.pid() == pid

    neighbour = Operator(Paths(operator.paths.root.parent / ".lab2"), operator.shift)
    taken = neighbour.up(expect=1)
    # This lab has no API.
    ports = {name: row.default + operator.shift for name, row in PORTS.items() if name != "api_port"}
    assert [name for name, port in ports.items() if f"{port} " not in taken] == []
    assert marked(neighbour.paths) == []

    # A role that is killed is replaced; the others stay.
    before = supervisor.states()
    os.kill(before["reqserver"].pid, signal.SIGKILL)
    assert wait_until(lambda: supervisor.states()["reqserver"].pid not in (0, before["reqserver"].pid), 20)
    after = supervisor.states()
    assert {name: one.pid for name, one in after.items() if name != "reqserver"} == {
        name: one.pid for name, one in before.items() if name != "reqserver"
    }
    operator.shell("salt '*' test.ping")

    # No program outlives its supervisor.
    operator.shell("salt-key -y -r web1 --include-accepted")
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: supervisor.pid() is None, 10)
    assert wait_until(lambda: marked(operator.paths) == [], 30)
    stuck = operator.lab("up", "--no-apply", expect=1)
    # What is to be done about the key is told for a master that runs, so it does.
    assert "salt-key -d web1" in stuck
    operator.shell("salt-key -y -d web1")
    assert "accepted the keys of web1" in operator.lab("up", "--no-apply")
    assert "has ended" in operator.lab("down")
    assert marked(operator.paths) == []
    assert "no lab runs" in operator.lab("down")


def test_a_lab_with_other_minions_leaves_those_of_its_last_start_alone(operator: Operator) -> None:
    operator.up("--minions", "web1,web2", "--no-apply")
    operator.lab("down")
    # The key of web2 is still accepted, so `*` means web2, too; no program of it runs.
    said = operator.lab("up", "--minions", "db1,web1")
    assert "web2" not in said
    assert said.count("Failed:    0") == 2


def test_a_role_that_cannot_start_is_named_with_what_it_said_and_nothing_stays(operator: Operator) -> None:
    (operator.paths.etc / "master.d").mkdir(parents=True)
    (operator.paths.etc / "master.d" / "own.conf").write_text("publish_port: many\n")
    said = operator.up(expect=1)
    # All roles read the file; which is seen to end first is a race.
    named = re.search(r"(\w+)(-\w+|) does not stay up: exit code 78\n.*/log/\1\2\.log ends:\n  \| saltern \1: ", said)
    assert named, said
    assert "option 'publish_port' must be a whole number" in said
    assert marked(operator.paths) == []

"""The units of minion and master on a real systemd: start, restart on failure, stop, jobs that go on, limits of the master."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.conftest import SUITES, install
from tests.hosts.machine import Machine

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]

#: systemd's own number for how exposed a service is, 0 to 10: a hardened one is below 2.
HARDENED = 2.0


@pytest.fixture(params=SUITES)
def machine(request: pytest.FixtureRequest, boot: Callable[..., Machine], debs: dict[str, Path]) -> Machine:
    """A machine with a master and its minion web1."""
    one = boot(request.param)
    one.write("/etc/salt/minion", "master: 127.0.0.1\nid: web1\nacceptance_wait_time: 1\n")
    install(one, *debs.values())
    one.until("salt-key -l un | grep web1")
    one.run("salt-key", "-yA")
    one.until("salt web1 test.ping | grep True")
    return one


def test_the_life_of_the_units(machine: Machine) -> None:
    assert machine.run("systemd-analyze", "verify", "salt-minion.service", "salt-master.service") == ""
    # A start is over when the master answers, so that the next command needs no wait.
    machine.run("systemctl", "restart", "salt-master")
    assert "web1" in machine.run("salt-key", "-l", "acc")
    assert "6 roles run" in machine.show("salt-master", "StatusText")

    # A killed process is replaced; what it had to do goes on.
    for unit in ("salt-minion", "salt-master"):
        before = machine.show(unit, "MainPID")
        machine.run("kill", "-9", before)
        machine.until(f"test $(systemctl show --value -p MainPID {unit}) -gt 0 && systemctl is-active {unit}")
        machine.until(f"test $(systemctl show --value -p MainPID {unit}) != {before}")
        assert machine.show(unit, "NRestarts") == "1"
    machine.until("salt web1 test.ping | grep True")

    # A reload replaces the roles and not the parent.
    parent = machine.show("salt-master", "MainPID")
    before = {
        name: machine.run("pgrep", "-P", parent, "-x", name).strip()
        for name in ("reqserver", "mworker", "redis-server")
    }
    machine.run("systemctl", "reload", "salt-master")
    for name in ("reqserver", "mworker"):
        machine.until(f"test $(pgrep -P {parent} -x {name}) -ne {before[name]}")
    assert machine.run("pgrep", "-P", parent, "-x", "redis-server").strip() == before["redis-server"]
    assert machine.show("salt-master", "MainPID") == parent

    # A stop leaves no process of the unit.
    for unit in ("salt-minion", "salt-master"):
        machine.run("systemctl", "stop", unit)
        assert machine.show(unit, "Result") == "success"
        machine.until(f'test -z "$(cat /sys/fs/cgroup/system.slice/{unit}.service/cgroup.procs 2>/dev/null)"', 30)

    # What no further start would mend is not started again and again.
    machine.sh(
        "echo 'health_port: x' >>/etc/salt/minion; cp /etc/salt/master /root/; echo 'health_port: x' >>/etc/salt/master"
    )
    for unit in ("salt-minion", "salt-master"):
        machine.run("systemctl", "start", unit, expect=1)
        machine.until(f"systemctl is-failed {unit}")
        assert machine.show(unit, "NRestarts") == "0"
        assert "health_port" in machine.run("journalctl", "--no-pager", "-u", unit, "-n", "5")


def test_a_job_that_restarts_the_minion_goes_on(machine: Machine) -> None:
    said = machine.run("salt", "--out=newline_values_only", "web1", "service.restart", "salt-minion")
    assert said.strip() == "True"
    machine.until("salt web1 test.ping | grep True")
    jid = machine.run("salt", "--async", "web1", "cmd.run", "sleep 6; echo outlived").split()[-1]
    machine.until("pgrep -f 'sleep 6'")
    before = machine.show("salt-minion", "MainPID")
    machine.run("systemctl", "restart", "salt-minion")
    assert machine.show("salt-minion", "MainPID") != before
    machine.until(f"salt-run jobs.lookup_jid {jid} | grep outlived")


def test_the_master_is_shut_in(machine: Machine) -> None:
    said = machine.run("systemd-analyze", "security", "salt-master.service", "--no-pager")
    found = re.search(r"exposure level for salt-master.service: ([0-9.]+)", said)
    assert found is not None
    assert float(found[1]) < HARDENED, said
    pid = machine.show("salt-master", "MainPID")
    status = machine.sh(f"cat /proc/{pid}/status")
    assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    assert machine.sh(f"stat -c %U /proc/{pid}").strip() == "salt"
    # Only minions' ports are open to other machines.
    listening = machine.sh("ss -Hltn | awk '{ print $4 }'").split()
    assert {one for one in listening if one.startswith(("0.0.0.0:", "*:", "[::]:"))} == {"0.0.0.0:4505", "0.0.0.0:4506"}
    # A runner of a user that wants more gets an error; it writes nothing outside the master's directories.
    machine.write(
        "/var/cache/salt/master/extmods/runners/reach.py",
        "import os\n\ndef write(path):\n    with open(path, 'w') as file:\n        file.write('x')\n    return True\n",
    )
    machine.sh("mkdir -p /srv/salt/_runners; cp /var/cache/salt/master/extmods/runners/reach.py /srv/salt/_runners/")
    machine.run("salt-run", "saltutil.sync_runners", expect=None)
    for path in ("/etc/salt/master", "/usr/lib/x", "/root/x", "/opt/saltern/x"):
        refused = machine.run("salt-run", "reach.write", path, expect=None)
        assert re.search(r"Read-only file system|Permission denied|No such file", refused), refused
    assert "True" in machine.run("salt-run", "reach.write", "/var/cache/salt/master/x")

"""The Debian packages: their bytes, and their life on Debian 12 and 13: install, upgrade, remove, purge."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.conftest import NAMES, SUITES, build_debs, build_wheels, install, repacked
from tests.hosts.machine import Machine

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]

#: What a purge of both packages leaves nothing of.
OWN = ("/opt/saltern", "/etc/salt", "/var/cache/salt", "/var/lib/saltern", "/var/log/salt", "/usr/bin/salt-minion")


def digests(packages: list[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in packages}


def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    first = build_debs(tmp_path / "1", build_wheels(tmp_path / "wheels-1"))
    assert digests(first) == digests(build_debs(tmp_path / "2", build_wheels(tmp_path / "wheels-2")))
    assert [path.name.partition("_")[0] for path in first] == sorted(NAMES)


def test_everything_is_roots_and_nobody_else_writes(debs: dict[str, Path]) -> None:
    for package in debs.values():
        listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            mode, owner, *_ = line.split()
            assert owner == "root/root", line
            assert mode.startswith("l") or mode[5] == mode[8] == "-", line


@pytest.mark.parametrize("suite", SUITES)
def test_install_upgrade_remove_purge(
    boot: Callable[..., Machine], debs: dict[str, Path], tmp_path: Path, suite: str
) -> None:
    machine = boot(suite)
    machine.write("/etc/salt/minion", "master: 127.0.0.1\nid: web1\nacceptance_wait_time: 1\n")
    install(machine, *debs.values())
    for unit in ("salt-minion", "salt-master"):
        assert machine.run("systemctl", "is-active", unit).strip() == "active"
        assert machine.run("systemctl", "is-enabled", unit).strip() == "enabled"
    machine.until("salt-key -l un | grep web1")
    machine.run("salt-key", "-yA")
    machine.until("salt web1 test.ping | grep True")
    # The environment is the package's own: what a user exports does not reach it.
    assert "True" in machine.run(
        "salt-call", "--local", "test.ping", env={"PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"}
    )
    assert "/opt/saltern/lib" in machine.run("salt-call", "--local", "grains.get", "pythonpath")

    # An upgrade keeps the files that were changed, restarts the services, and forgets no key.
    machine.sh("echo SALTERN_LOG_LEVEL=info >/etc/default/salt-minion")
    before = machine.show("salt-minion", "MainPID")
    newer = [repacked(package, tmp_path, "9.0", _newer) for package in debs.values()]
    install(machine, *newer)
    assert machine.sh("cat /etc/default/salt-minion") == "SALTERN_LOG_LEVEL=info\n"
    assert "id: web1" in machine.sh("cat /etc/salt/minion")
    assert machine.sh("cat /etc/default/salt-master").endswith("# of the newer release\n")
    assert machine.show("salt-minion", "MainPID") != before
    machine.until("salt web1 test.ping | grep True")
    assert "salt-minion 9.0" in machine.sh("dpkg -l saltern-minion | awk '/^ii/ { print \"salt-minion\", $3 }'")

    # A removal ends the services and keeps configuration, keys and data.
    machine.run("apt-get", "remove", "-y", *NAMES)
    kept = "pki/minion/minion.pem minion keys/mworker/master.pem /var/lib/saltern/redis/redis.conf"
    assert machine.sh(f"cd /etc/salt; ls {kept}")
    assert machine.sh("test ! -e /opt/saltern && test ! -e /usr/bin/salt-call && echo gone") == "gone\n"
    assert machine.run("systemctl", "is-active", "salt-minion", expect=None).strip() in ("inactive", "unknown")
    assert machine.sh("pgrep -f [/]opt/saltern || true") == ""
    install(machine, *newer)
    machine.until("salt web1 test.ping | grep True")

    machine.run("apt-get", "purge", "-y", *NAMES)
    assert machine.sh(f"ls -d {' '.join(OWN)} 2>/dev/null || true") == ""
    assert machine.sh("ls /etc/default/salt-* /etc/systemd/system/*/salt-* 2>/dev/null || true") == ""


def _newer(tree: Path) -> None:
    for path in (tree / "etc/default").glob("salt-*"):
        path.write_text(path.read_text() + "# of the newer release\n")


def test_an_unknown_python_is_said(boot: Callable[..., Machine], debs: dict[str, Path], tmp_path: Path) -> None:
    def other(tree: Path) -> None:
        (tree / "opt/saltern/lib/python3.11").rename(tree / "opt/saltern/lib/python3.99")

    machine = boot("bookworm")
    machine.bring(repacked(debs["saltern-common"], tmp_path, "9.0", other), "/root/common.deb")
    assert "no libraries for Python 3.11" in machine.run("apt-get", "install", "-y", "/root/common.deb", expect=100)

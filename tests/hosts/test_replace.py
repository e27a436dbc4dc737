"""A stock minion of Salt 3008 is replaced in place by one command, and put back by one: id, key, grains and schedule stay."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.conftest import install
from tests.hosts.machine import Machine

pytestmark = [pytest.mark.hosts, pytest.mark.oracle, pytest.mark.timeout(1800)]

#: As in the packages of the Salt project: Salt in a directory of its own, programs, unit and configuration in their places.
_STOCK_UNIT = """\
[Unit]
Description=The Salt Minion
After=network.target salt-master.service
[Service]
KillMode=process
Type=notify
NotifyAccess=all
LimitNOFILE=8192
ExecStart=/usr/bin/salt-minion
[Install]
WantedBy=multi-user.target
"""

_STOCK_PROGRAM = """\
#!/usr/bin/python3
import sys
sys.path.insert(0, "/opt/saltstack/salt/site-packages")
from salt.scripts import {function}
sys.exit({function}())
"""

_START = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    deb-systemd-helper unmask salt-minion.service >/dev/null
    deb-systemd-helper enable salt-minion.service >/dev/null
    systemctl daemon-reload
    deb-systemd-invoke restart salt-minion.service
fi
"""

_STOP = '#!/bin/sh\nset -e\nif [ "$1" = remove ]; then deb-systemd-invoke stop salt-minion.service; fi\n'

#: What ``salt-minion.postrm purge`` of the Salt project removes.
_PURGE = """\
#!/bin/sh
set -e
if [ "$1" = purge ]; then rm -rf /etc/salt/pki/minion /var/cache/salt/minion /var/log/salt/minion /var/run/salt/minion; fi
"""


def stock_packages(out: Path) -> list[Path]:
    """Packages salt-common and salt-minion, named and laid out as the Salt project's. Salt itself is brought beside them."""
    files = {
        "salt-common": {"usr/bin/salt-call": _STOCK_PROGRAM.format(function="salt_call")},
        "salt-minion": {
            "usr/bin/salt-minion": _STOCK_PROGRAM.format(function="salt_minion"),
            "lib/systemd/system/salt-minion.service": _STOCK_UNIT,
            "etc/salt/minion": "# The stock minion's own configuration.\n#master: salt\n",
            "DEBIAN/conffiles": "/etc/salt/minion\n",
            "DEBIAN/postinst": _START,
            "DEBIAN/prerm": _STOP,
            "DEBIAN/postrm": _PURGE,
        },
    }
    built = []
    for name, content in files.items():
        tree = out / name
        depends = "Depends: salt-common\n" if name == "salt-minion" else ""
        control = f"Package: {name}\nVersion: 3008.3\nArchitecture: all\nMaintainer: x <x@localhost>\n{depends}Description: stock\n"
        for path, text in {**content, "DEBIAN/control": control}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
            runs = path.startswith(("usr/bin/", "DEBIAN/p"))
            (tree / path).chmod(0o755 if runs else 0o644)
        built.append(out / f"{name}_3008.3_all.deb")
        words = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(built[-1])]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return built


@pytest.fixture
def site_packages() -> Path:
    """Libraries of real Salt for Debian 12's Python."""
    oracle = os.environ.get("SALTERN_ORACLE")
    if not oracle:
        pytest.skip("SALTERN_ORACLE names no environment with a real Salt")
    found = Path(oracle).resolve() / "lib/python3.11/site-packages"
    if not found.is_dir():
        pytest.skip(f"{found}: Debian 12 has Python 3.11")
    return found


def test_replaced_in_place_and_back(
    boot: Callable[..., Machine], debs: dict[str, Path], site_packages: Path, tmp_path: Path
) -> None:
    master = boot("bookworm", "master")
    install(master, debs["saltern-common"], debs["saltern-master"])
    host = boot("bookworm", "host1", network_of=master)
    shutil.copytree(site_packages, f"/proc/{host.pid}/root/opt/saltstack/salt/site-packages", symlinks=True)
    stock = stock_packages(tmp_path)
    host.write("/etc/salt/minion.d/ours.conf", "master: 127.0.0.1\nacceptance_wait_time: 1\ngrains:\n  rack: r7\n")
    install(host, *stock)
    # The id is the host's name, as Salt finds it, and is kept in a file.
    master.until("salt-key -l un | grep host1", 120)
    master.run("salt-key", "-yA")
    master.until("salt host1 test.version | grep 3008", 120)
    master.run("salt", "host1", "grains.setval", "shelf", "s3")
    master.run("salt", "host1", "schedule.add", "beat", "function=test.ping", "seconds=3600")
    key = digests(host)
    assert host.sh("cat /etc/salt/minion_id") == "host1"

    # One command. Docs: docs/operations/hosts.md
    said = install(host, debs["saltern-common"], debs["saltern-minion"])
    assert "salt-minion" in said
    answers(master, "0.1.0")
    assert "saltern" in host.sh("head -1 /usr/bin/salt-minion")
    assert digests(host) == key
    assert host.run("systemctl", "is-enabled", "salt-minion").strip() == "enabled"

    # And back.
    install(host, *stock)
    answers(master, "3008")
    assert digests(host) == key
    # Purging what is left of ours takes nothing of the stock minion's.
    host.run("apt-get", "purge", "-y", "saltern-minion", "saltern-common")
    assert host.run("systemctl", "is-enabled", "salt-minion").strip() == "enabled"
    host.run("systemctl", "restart", "salt-minion")
    answers(master, "3008")


def digests(host: Machine) -> str:
    """Digests of the minion's key, the master's key without line ends, and the configuration."""
    return host.sh(
        "cd /etc/salt; sha256sum pki/minion/minion.pem minion; tr -d '\\n' <pki/minion/minion_master.pub | sha256sum"
    )


def answers(master: Machine, version: str) -> None:
    """The minion answers under its id with its old key, grains and schedule, and no other key waits."""
    master.until(f"salt host1 test.version | grep -F '{version}'", 120)
    keys = master.run("salt-key", "--out=json")
    assert keys.count("host1") == 1, keys
    assert "r7" in master.run("salt", "-G", "rack:r7", "grains.get", "rack")
    assert "s3" in master.run("salt", "host1", "grains.get", "shelf")
    assert "beat" in master.run("salt", "host1", "schedule.list")

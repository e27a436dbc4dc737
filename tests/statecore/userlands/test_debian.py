"""A highstate on a real Debian that is mounted: salt-call --local --host-root, as root, by chroot; a second changes nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.userland, pytest.mark.timeout(1500)]

_CALL = "import sys; from saltern.minion.call.call import main; sys.exit(main())"

_TREE = {
    "top.sls": "base:\n  '*': [host]\n",
    "motd.jinja": "{{ grains.os }} {{ grains.host_root }}\n",
    "site/index.html": "index\n",
    "site/css/a.css": "a\n",
    "host.sls": """
/etc/motd:
  file.managed: [{source: salt://motd.jinja}, {template: jinja}, {user: web}, {group: adm}, {mode: 640}, {require: [{user: web}]}]
/srv/site:
  file.recurse: [{source: salt://site}, {user: web}, {require: [{user: web}]}]
/srv/current:
  file.symlink: [{target: /srv/site}]
/srv/current/made:
  file.directory: [{mode: '0750'}, {require: [{file: /srv/site}, {file: /srv/current}]}]
/etc/escape/hosts:
  file.append: [{text: through a link}, {makedirs: True}]
editors:
  group.present: [{gid: 4200}]
web:
  user.present: [{uid: 4201}, {gid: editors}, {home: /srv/web}, {shell: /bin/sh}, {groups: [adm]}, {require: [{group: editors}]}]
key:
  ssh_auth.present:
    - name: AAAAC3NzaC1lZDI1NTE5AAAAIJyqKxQmX0ZAgDbBd7nRdeJpLGxkIbXhyZxWJCh+cMlV
    - enc: ssh-ed25519
    - user: web
    - require: [{user: web}]
db.example.com:
  host.present: [{ip: 192.0.2.7}]
Europe/Berlin:
  timezone.system: []
de_DE.UTF-8:
  locale.present: []
C.UTF-8:
  locale.system: []
net.ipv4.ip_forward:
  sysctl.present: [{value: 1}]
pager:
  alternatives.install: [{link: /usr/bin/pager}, {path: /usr/bin/probe}, {priority: 90}, {require: [{pkg: probe}]}]
/usr/bin/probe --turn:
  cron.present: [{user: web}, {minute: 5}, {identifier: TURN}, {require: [{user: web}]}]
probe:
  pkg.installed: [{sources: [{probe: salt://probe.deb}]}]
cron:
  service.disabled: []
probe >/var/lib/probed:
  cmd.run: [{creates: /var/lib/probed}, {runas: root}, {require: [{pkg: probe}]}]
""",
}


def _package(top: Path, place: Path) -> None:
    """A package that nobody has to be asked for."""
    (top / "DEBIAN").mkdir(parents=True)
    (top / "DEBIAN/control").write_text(
        "Package: probe\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\nDescription: A probe\n"
    )
    (top / "usr/bin").mkdir(parents=True)
    (top / "usr/bin/probe").write_text("#!/bin/sh\nid -un\n")
    (top / "usr/bin/probe").chmod(0o755)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", top, place], check=True, capture_output=True)


def _call(directory: Path, root: Path, words: Sequence[str]) -> dict[str, dict[str, Any]]:
    (directory / "conf").mkdir(exist_ok=True)
    (directory / "conf/minion").write_text(f"id: web1\ncachedir: {directory}/cache\npki_dir: {directory}/pki\n")
    options = [
        "-c",
        f"{directory}/conf",
        "--local",
        "--host-root",
        str(root),
        "--file-root",
        f"{directory}/tree",
        "--out=json",
    ]
    done = subprocess.run(
        [sys.executable, "-c", _CALL, *options, *words],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        told: dict[str, dict[str, Any]] = json.loads(done.stdout)["local"]
    except (ValueError, KeyError):
        pytest.fail(f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    assert isinstance(told, dict), told
    return told


def test_a_highstate(debian_root: Path, tmp_path: Path) -> None:
    root = debian_root
    for name, text in _TREE.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    _package(tmp_path / "package", tmp_path / "tree/probe.deb")
    # The kernel's settings as files: the machine's own are not for a test to set.
    (root / "proc/sys/net/ipv4").mkdir(parents=True, exist_ok=True)
    (root / "proc/sys/net/ipv4/ip_forward").write_text("0\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "etc/escape").symlink_to(f"../../../../../../../../..{outside}")

    would = _call(tmp_path, root, ["state.highstate", "test=True"])
    assert {tag: entry["comment"] for tag, entry in would.items() if entry["result"] is False} == {}
    assert not (root / "srv/site").exists()

    told = _call(tmp_path, root, ["state.highstate"])
    wrong = {tag: entry["comment"] for tag, entry in told.items() if entry["result"] is not True}
    assert wrong == {}
    unchanged = [tag for tag, entry in told.items() if not entry["changes"] and "C.UTF-8" not in tag]
    assert unchanged == []

    again = _call(tmp_path, root, ["state.highstate"])
    assert {tag: (entry["comment"], entry["changes"]) for tag, entry in again.items() if entry["changes"]} == {}
    assert {entry["result"] for entry in again.values()} == {True}

    motd = (root / "etc/motd").stat()
    assert (motd.st_uid, motd.st_gid, stat.S_IMODE(motd.st_mode)) == (4201, 4, 0o640)
    assert (root / "etc/motd").read_text() == f"Debian {root}\n"
    assert (root / "srv/site/made").is_dir()
    assert (root / "var/lib/probed").read_text() == "root\n"
    assert "web:x:4201:4200:" in (root / "etc/passwd").read_text()
    assert "TURN" in (root / "var/spool/cron/crontabs/web").read_text()
    assert (root / "etc/localtime").readlink() == Path("/usr/share/zoneinfo/Europe/Berlin")
    assert (root / "etc/alternatives/pager").readlink() == Path("/usr/bin/probe")
    assert list(outside.iterdir()) == []


def test_an_ordinary_user_is_told_what_needs_root(debian_root: Path, tmp_path: Path) -> None:
    """Files that are the user's own need no root; commands, and other people's files, do."""
    mine = debian_root / "srv/mine"
    mine.mkdir()
    os.chown(mine, 65534, 65534)
    for place in (debian_root, *debian_root.parents):
        if place.is_relative_to("/tmp") and place != Path("/tmp"):
            place.chmod(0o755)
    program = f"""
import os, sys, json
from tests.statecore.userlands.conftest import Userland
from pathlib import Path
host = Userland(Path({str(debian_root)!r}), Path("/nonexistent"), {{"os": "Debian", "os_family": "Debian"}})
for name, arguments in json.loads(sys.argv[1]):
    # Python's own files may be for root alone: what will be needed is loaded before.
    host.state(name, test=True, **arguments)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps([host.state(name, **arguments) for name, arguments in json.loads(sys.argv[1])]))
"""
    asked = [
        ("file.managed", {"name": "/srv/mine/f", "contents": "mine"}),
        ("file.managed", {"name": "/etc/motd", "contents": "not mine"}),
        ("file.managed", {"name": "/srv/mine/f", "contents": "mine", "user": "root"}),
        ("cmd.run", {"name": "true"}),
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    own, other, given, command = json.loads(done.stdout)
    assert (own["result"], (mine / "f").read_text()) == (True, "mine\n")
    assert other["result"] is False
    assert "Permission denied" in other["comment"]
    assert given["result"] is False
    assert "only root may" in given["comment"]
    assert command["result"] is False
    assert "needs chroot, and chroot needs root" in command["comment"]

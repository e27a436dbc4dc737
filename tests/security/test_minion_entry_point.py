"""Finding 38.13: the boot of a mounted host gives no program of the host the right to mount, and follows none of its links."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.test_capabilities import lay_out_programs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and chroot need root")

SYS_ADMIN = 1 << 21


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A mounted host with a shell, and a directory beside it that the host must not reach."""
    tmp_path.chmod(0o755)
    root = tmp_path / "host"
    root.mkdir()
    lay_out_programs(root)
    for place in ("etc/rc2.d", "run", "usr/bin"):
        (root / place).mkdir(parents=True, exist_ok=True)
    (root / "usr/bin/dpkg").touch()
    outside = tmp_path / "outside"
    (outside / "rc2.d").mkdir(parents=True)
    (outside / "kept").write_text("kept")
    script(outside / "rc2.d/S01outside", "echo ran > /ran")
    return root


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def boot(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Boot the host in a mount namespace of its own, and run a program in place of the minion."""
    command = ["unshare", "--mount", sys.executable, "-m", "saltern.minion.entry_point", *(words or ("true",))]
    environment = {**os.environ, "SALTERN_HOST_ROOT": str(root)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def mounts_of(root: Path) -> list[str]:
    """The places where something is mounted after the boot, in the boot's namespace."""
    return [line.split()[1] for line in boot(root, "cat", "/proc/mounts").stdout.splitlines()]


def replaced(root: Path, name: str, target: str) -> None:
    """A link in place of a directory or file of the host."""
    place = root / name
    if place.is_dir() and not place.is_symlink():
        for child in sorted(place.rglob("*"), reverse=True):
            child.rmdir() if child.is_dir() and not child.is_symlink() else child.unlink()
        place.rmdir()
    else:
        place.unlink(missing_ok=True)
    place.symlink_to(target)


#: Link in the tree -> what it replaces. {} is the directory beside the host.
LINKS: dict[str, tuple[str, str]] = {
    "run is a link": ("run", "{}"),
    "run is a relative link": ("run", "../outside"),
    "a file of run is a link": ("run/link", "{}/kept"),
    "a directory of run is a link": ("run/link", "{}"),
    "proc is a link": ("proc", "{}"),
    "proc is a relative link": ("proc", "../outside"),
    "dev is a link": ("dev", "{}"),
    "etc is a link": ("etc", "{}"),
    "resolv.conf is a link": ("etc/resolv.conf", "{}/made"),
    "hosts is a link": ("etc/hosts", "{}/made"),
    "resolv.conf is a link to a file": ("etc/resolv.conf", "{}/kept"),
    "the start scripts are a link": ("etc/rc2.d", "{}/rc2.d"),
}


@pytest.mark.parametrize("case", LINKS)
def test_no_link_of_the_host_leads_the_boot_outside(host: Path, case: str) -> None:
    name, target = LINKS[case]
    outside = host.parent / "outside"
    replaced(host, name, target.format(outside))
    before = sorted(path.name for path in outside.rglob("*"))
    places = mounts_of(host)
    assert sorted(path.name for path in outside.rglob("*")) == before
    assert (outside / "kept").read_text() == "kept"
    assert not (host / "ran").exists()
    assert [place for place in places if place.startswith(str(outside))] == []


#: What a start script of the host tries as root.
TRIES = {
    "mount": "mount -t tmpfs none /tmp",
    "mount the processes": "mount -t proc none /tmp",
    "bind": "mount --bind /etc /tmp",
    "unmount": "umount /proc || umount -l /proc || umount /dev",
    "remount": "mount -o remount,rw /proc",
    "change the root": "chroot / true",
    "make a namespace": "unshare --mount sh -c :",
    "make a device": "mknod /tmp/disk b 8 0",
    "have a right again": "grep -q '^CapBnd:.*[2367abef].....$' /proc/self/status",
}


@pytest.mark.parametrize("attempt", TRIES)
def test_no_start_script_of_the_host_may_mount(host: Path, attempt: str) -> None:
    script(host / "etc/rc2.d/S01attack", f"{TRIES[attempt]}\necho $? > /ended")
    assert boot(host).returncode == 0
    assert (host / "ended").read_text().strip() != "0"


@pytest.mark.parametrize("field", ["CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb"])
def test_the_minion_has_no_right_to_mount(host: Path, field: str) -> None:
    lines = boot(host, "cat", "/proc/self/status").stdout.splitlines()
    (value,) = (int(line.split()[1], 16) for line in lines if line.startswith(f"{field}:"))
    assert value & SYS_ADMIN == 0


@pytest.mark.ordinary
def test_the_boot_of_a_host(host: Path) -> None:
    (host / "run/pid").write_text("7")
    (host / "run/old").mkdir()
    (host / "run/old/file").touch()
    script(
        host / "etc/rc2.d/S01web", 'echo "$1" > /started; test -d /proc/self; test -c /dev/null && echo yes >> /started'
    )
    script(host / "etc/rc2.d/K01gone", "echo no > /gone")
    (host / "etc/rc2.d/S02off").write_text("not executable")
    ended = boot(host, "sh", "-c", "cat /proc/mounts; exit 7")
    assert ended.returncode == 7
    assert (host / "started").read_text().split() == ["start", "yes"]
    assert not (host / "gone").exists()
    assert [path.name for path in (host / "run").iterdir()] == ["lock"]
    places = {line.split()[1] for line in ended.stdout.splitlines()}
    assert {f"{host}/{name}" for name in ("proc", "dev", "etc/resolv.conf", "etc/hosts")} <= places


@pytest.mark.ordinary
def test_a_plain_tree_gets_nothing(host: Path) -> None:
    (host / "usr/bin/dpkg").unlink()
    script(host / "etc/rc2.d/S01web", "echo no > /started")
    assert not any(place.startswith(str(host)) for place in mounts_of(host))
    assert not (host / "started").exists()


@pytest.mark.ordinary
@pytest.mark.parametrize(("root", "code"), [("/", 0), ("/nowhere", 78)])
def test_no_mounted_host(root: str, code: int) -> None:
    ended = boot(Path(root))
    assert ended.returncode == code, ended.stderr
    assert ("is not a directory: mount the host there" in ended.stderr) == bool(code)

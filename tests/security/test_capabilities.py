"""Finding 38.13: commands of a mounted host lose the capabilities by which root leaves a chroot or reaches the kernel."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from statecore.host.capabilities import LOST, lost_numbers
from statecore.host.host import Host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")

#: Capabilities that the tests have; a container may have less.
OWN = int(
    next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapBnd")).split()[1],
    16,
)
HELD = [name for name, (number, _) in LOST.items() if OWN & (1 << number)]


def _place(root: Path, program: str) -> None:
    """A program of this machine, with its libraries, in a root."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    libraries = [word for line in said.splitlines() for word in line.split() if word.startswith("/")]
    for file in (program, *libraries):
        target = root / file.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(os.path.realpath(file), target)


def lay_out_programs(root: Path) -> None:
    """A shell and programs that ask the kernel, in a root."""
    for name in (
        "sh",
        "cat",
        "chroot",
        "mknod",
        "mount",
        "umount",
        "mkdir",
        "unshare",
        "setpriv",
        "date",
        "id",
        "grep",
    ):
        found = shutil.which(name)
        assert found is not None
        _place(root, found)
        link = root / "bin" / name
        link.parent.mkdir(exist_ok=True)
        if not link.exists():
            link.symlink_to(found)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nann:x:1000:\n")
    (root / "tmp").mkdir(mode=0o1777)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mounted host with a few programs."""
    made = tmp_path_factory.mktemp("host")
    made.chmod(0o755)
    lay_out_programs(made)
    (made / "proc").mkdir()
    return made


#: What a command of root tries, and what the shell says when it got in.
ATTEMPTS = {
    "change the root": "chroot / true || chroot / sh -c :",
    "change the root and leave": "mkdir -p /tmp/y; chroot /tmp/y sh -c : 2>&1 | cat; chroot / sh -c ':'",
    "mount a file system": "mount -t tmpfs none /tmp",
    "mount the processes": "mount -t proc none /proc",
    "bind a directory": "mount --bind /etc /tmp",
    "make a device": "mknod /tmp/disk b 8 0",
    "make the device of the memory": "mknod /tmp/mem c 1 1",
    "make a mount namespace": "unshare --mount sh -c :",
    "make a network namespace": "unshare --net sh -c :",
    "make a namespace of processes": "unshare --pid --fork sh -c :",
    "inherit what it lost": "setpriv --inh-caps +sys_admin --ambient-caps +sys_admin sh -c :",
    "set the clock": "date -s 2020-01-01",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_command_of_a_mounted_host_stays_there(root: Path, attempt: str) -> None:
    assert Host(root).run(ATTEMPTS[attempt]).retcode != 0


@pytest.mark.parametrize(
    "attempt", ["change the root", "make a device", "mount a file system", "make a mount namespace"]
)
def test_a_program_of_an_engine_stays_there(root: Path, attempt: str) -> None:
    printed = list(Host(root).lines(["/bin/sh", "-c", f"{ATTEMPTS[attempt]}; echo code $?"]))
    assert printed[-1].startswith(b"code ")
    assert printed[-1] != b"code 0\n"


@functools.cache
def sets_of(root: Path, runas: str | None = None) -> dict[str, int]:
    """The sets of capabilities of a command of the host, as the kernel shows them."""
    words = [sys.executable, "-c", _SHOW, str(root), runas or ""]
    out = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    return {
        name: int(value, 16)
        for name, value in (line.split(":\t") for line in out.splitlines() if line.startswith("Cap"))
    }


#: Shows the status of a command in a mount namespace of its own, where the host has /proc.
_SHOW = """
import ctypes, sys
from statecore.host.host import Host
root, runas = sys.argv[1], sys.argv[2] or None
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x00020000) == 0
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
assert libc.mount(b"proc", (root + "/proc").encode(), b"proc", 0, None) == 0
print(Host(root).run(["/bin/cat", "/proc/self/status"], runas=runas).stdout)
"""


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("runas", [None, "ann"])
def test_a_command_lacks_each_capability_in_each_set(root: Path, name: str, runas: str | None) -> None:
    found = sets_of(root, runas=runas)
    assert set(found) == {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
    number = LOST[name][0]
    assert [place for place, bits in found.items() if bits & (1 << number)] == []


@pytest.mark.ordinary
def test_a_command_keeps_what_package_managers_need(root: Path) -> None:
    found = sets_of(root)
    needed = {
        "CHOWN": 0,
        "DAC_OVERRIDE": 1,
        "FOWNER": 3,
        "FSETID": 4,
        "KILL": 5,
        "SETGID": 6,
        "SETUID": 7,
        "SETFCAP": 31,
    }
    assert [
        name for name, number in needed.items() if OWN & (1 << number) and not found["CapEff"] & (1 << number)
    ] == []


@pytest.mark.ordinary
def test_an_option_keeps_a_capability(root: Path) -> None:
    if "MKNOD" in HELD:
        assert Host(root, keeps=["MKNOD"]).run("mknod /tmp/null c 1 3").retcode == 0


@pytest.mark.ordinary
def test_the_minion_itself_keeps_its_capabilities(root: Path) -> None:
    Host(root).run("true || :")
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapBnd"))
    assert int(line.split()[1], 16) == OWN


@pytest.mark.ordinary
def test_the_last_one_to_go_is_the_one_that_the_others_need() -> None:
    everything = (1 << 41) - 1
    assert lost_numbers((), everything)[-1] == LOST["SETPCAP"][0]
    assert len(lost_numbers((), everything)) == len(LOST)
    assert lost_numbers(["SYS_ADMIN"], everything).count(LOST["SYS_ADMIN"][0]) == 0
    assert lost_numbers((), 0) == ()

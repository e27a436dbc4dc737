"""A throw-away copy of this machine for calls that may change anything.

Its files are an overlay in memory over those of this machine, its processes and network are its own, and its processes have no
capability that reaches the kernel: no mounts, modules, clock, devices or reboot. What is called there changes nothing here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

#: Programs that make the copy.
NEEDED = ("unshare", "mount", "chroot", "setpriv")

#: Capabilities that processes of the copy keep.
_KEPT = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setfcap", "sys_chroot"),
    *("net_bind_service", "net_admin", "net_raw"),
)

#: Run by a shell that is alone in its namespaces. $1 is an empty directory, $2 the directory that the copy writes, the rest the
#: command.
_MAKE = """
set -e
here=$1 results=$2
shift 2
mount --make-rprivate /
mount -t tmpfs tmpfs "$here"
mkdir "$here/upper" "$here/work" "$here/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$here/upper,workdir=$here/work" "$here/root"
mount -t proc proc "$here/root/proc"
mount --bind "$here/root/proc/sys" "$here/root/proc/sys"
mount -o remount,bind,ro "$here/root/proc/sys"
if [ -e "$here/root/proc/sysrq-trigger" ]; then mount --bind /dev/null "$here/root/proc/sysrq-trigger"; fi
mount -t tmpfs tmpfs "$here/root/dev"
mkdir "$here/root/dev/shm"
for device in null zero full random urandom; do
    touch "$here/root/dev/$device"
    mount --bind "/dev/$device" "$here/root/dev/$device"
done
mount -t tmpfs tmpfs "$here/root/run"
mkdir -p "$here/root$results"
mount --bind "$results" "$here/root$results"
export HOME=/root SHELL=/bin/sh LC_ALL=C.UTF-8 PIP_RETRIES=0 PIP_DISABLE_PIP_VERSION_CHECK=1
exec setpriv --bounding-set "$KEPT" --inh-caps "$KEPT" chroot "$here/root" "$@"
"""


def missing() -> str:
    """Return why this machine cannot be copied; "" if it can."""
    if os.geteuid() != 0:
        return "only root copies the machine"
    absent = [program for program in NEEDED if shutil.which(program) is None]
    return f"there is no {', '.join(absent)}" if absent else ""


def run(command: list[str], place: Path, results: Path, seconds: float, env: dict[str, str]) -> str:
    """Run a command in a new copy of the machine. Return its errors; what it writes into ``results`` stays here.

    ``place`` is an empty directory for the mounts, which end with the command.
    """
    place.mkdir(parents=True, exist_ok=True)
    results.mkdir(parents=True, exist_ok=True)
    kept = "-all," + ",".join(f"+{each}" for each in _KEPT)
    unshared = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]
    done = subprocess.run(
        [*unshared, "/bin/sh", "-c", _MAKE, "sh", str(place), str(results), *command],
        env={**os.environ, **env, "KEPT": kept},
        capture_output=True,
        text=True,
        timeout=seconds,
        errors="replace",
    )
    return f"exit code {done.returncode}\n{done.stderr[-4000:]}" if done.returncode else ""

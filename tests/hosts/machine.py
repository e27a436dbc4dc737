"""A machine for tests: a Debian tree in namespaces of its own, with a real systemd as process 1.

Changes go to a layer of their own over the tree, which is left as it is. The machine has its own network, with loopback only, and a
branch of the machine's cgroups of version 2. Nothing of it outlives ``Machine.stop``.

A machine with ``in_memory`` is also kept from what namespaces do not divide: its process 1 may not load kernel modules, set the
clock or reboot, and it writes to /proc/sys below /proc/sys/net only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Seconds for a boot, and for one command.
BOOT = 90.0
COMMAND = 240.0

#: Capabilities whose effects leave the namespaces.
_WITHHELD = "-sys_time,-sys_module,-sys_boot,-sys_rawio,-mac_admin,-mac_override,-syslog,-wake_alarm,-block_suspend"

#: Lays a writable layer over the tree $1, in the directory $2, and starts systemd there. $3 is the host's name; $4 are capabilities
#: to withhold from a machine whose layer is in memory, or nothing. Further arguments are directories that the machine sees.
_BOOT = r"""
set -eu
tree=$1 layer=$2 name=$3 withheld=$4
shift 4
mount --make-rprivate /
[ -z "$withheld" ] || mount -t tmpfs tmpfs -o mode=755 "$layer"
mkdir -p "$layer/upper" "$layer/work" "$layer/root"
# xino: all files are of one device, whichever layer has them.
mount -t overlay overlay -o "xino=on,lowerdir=$tree,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
cd "$layer/root"
for directory; do
    mkdir -p ".$directory"
    mount --bind "$directory" ".$directory"
    mount -o remount,bind,ro ".$directory"
done
mount -t proc proc proc -o nosuid,noexec,nodev
if [ -n "$withheld" ]; then
    mount --bind proc/sys proc/sys
    mount --bind proc/sys/net proc/sys/net
    mount -o remount,bind,ro proc/sys
fi
mount -t sysfs sysfs sys -o ro,nosuid,noexec,nodev
mount -t cgroup2 cgroup2 sys/fs/cgroup -o nosuid,noexec,nodev
mount -t tmpfs tmpfs run -o mode=755,nosuid,nodev
mount -t tmpfs tmpfs dev -o mode=755,nosuid
for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm .old
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666,mode=620,gid=5
mount -t tmpfs tmpfs dev/shm -o mode=1777
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
pivot_root . .old
umount -l /.old
rmdir /.old
hostname "$name"
echo "$name" >/etc/hostname
printf '127.0.0.1 localhost %s\n' "$name" >/etc/hosts
set -- /sbin/init --log-target=console
[ -z "$withheld" ] || set -- setpriv --bounding-set "$withheld" "$@"
exec env -i container=saltern-test PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"
"""

#: Namespaces of the machine, besides that of the network: mounts, processes, names, IPC, cgroups.
_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child")


def unified_cgroups() -> Path | None:
    """Where this machine has its cgroups of version 2; None if it has none."""
    for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
        _, point, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(point)
    return None


class Machine:
    """A booted machine. ``layer`` takes what it writes."""

    def __init__(
        self,
        tree: Path,
        layer: Path,
        name: str = "box",
        network_of: Machine | None = None,
        *,
        in_memory: bool = False,
        shown: Sequence[Path] = (),
    ) -> None:
        """Boot the tree. ``network_of``: a machine whose loopback this one shares, with all its ports. ``in_memory``: the layer is
        a tmpfs, which package managers need not wait for. ``shown``: directories that the machine sees, read-only.
        """
        self.root = layer / "root"
        self._layer = layer
        layer.mkdir(parents=True)
        cgroups = unified_cgroups()
        assert cgroups is not None, "no cgroups of version 2"
        self._cgroup = cgroups / f"saltern-test-{os.getpid()}-{layer.name}-{name}"
        self._cgroup.mkdir()
        network = "--net" if network_of is None else ""
        enter = "" if network_of is None else f"nsenter --net --target {network_of.pid}"
        inside = (
            f'echo $$ >"{self._cgroup}/cgroup.procs"; '
            f'exec {enter} unshare {network} {" ".join(_NAMESPACES)} sh -c "$0" sh "$@"'
        )
        with (layer / "console").open("wb") as console:
            self._process = subprocess.Popen(
                ["sh", "-c", inside, _BOOT, tree, layer, name, _WITHHELD if in_memory else "", *shown],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
            )
        self.pid = 0
        try:
            self._await_boot()
        except BaseException:
            self.stop()
            raise

    def run(
        self,
        *words: str,
        expect: int | None = 0,
        input: str | None = None,
        env: Mapping[str, str] | None = None,
        seconds: float = COMMAND,
    ) -> str:
        """Output, both streams, of a program of the machine. Fails for another exit code; None: any."""
        given = [f"{name}={value}" for name, value in (env or {}).items()]
        own = [
            "env",
            "-i",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG=C.UTF-8",
            "HOME=/root",
        ]
        done = subprocess.run(
            ["nsenter", "--all", "--target", str(self.pid), *own, *given, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert expect is None or done.returncode == expect, f"{' '.join(words)}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def sh(self, script: str, expect: int | None = 0) -> str:
        """Output of a script of the machine's shell."""
        return self.run("sh", "-ec", script, expect=expect)

    def until(self, script: str, seconds: float = 60.0) -> str:
        """Output of a script once it ends with 0. Fails at the deadline with its last output."""
        deadline = time.monotonic() + seconds
        while True:
            said = self.sh(f"({script}) && echo __done__ || true", None)
            if said.endswith("__done__\n"):
                return said.removesuffix("__done__\n")
            assert time.monotonic() < deadline, f"{script}: not within {seconds:g} s\n{said}\n{self.log()}"
            time.sleep(0.2)

    def show(self, unit: str, key: str) -> str:
        """Value of a property of a unit."""
        return self.run("systemctl", "show", "--value", "--property", key, unit).strip()

    def write(self, path: str, content: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""
        self.run(
            "sh",
            "-ec",
            'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"',
            "sh",
            path,
            f"{mode:o}",
            input=content,
        )

    def bring(self, source: Path, target: str) -> None:
        """Copy a file of this machine into the machine."""
        place = Path(f"/proc/{self.pid}/root{target}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.read_bytes())

    def log(self) -> str:
        """The end of the machine's journal."""
        return self.run("journalctl", "--no-pager", "-n", "60", "-o", "short-monotonic", expect=None)

    def stop(self) -> None:
        """End everything of the machine."""
        if self.pid:
            # What systemd takes for a halt of a container.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGRTMIN + 4)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
        self._process.kill()
        self._process.wait()
        self._remove_cgroups()

    def _await_boot(self) -> None:
        deadline = time.monotonic() + BOOT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text("ascii").split()
            if children and Path(f"/proc/{children[0]}/comm").read_text("utf-8").strip() in ("systemd", "init"):
                self.pid = int(children[0])
                # The exit code is 1 for a machine some unit of which failed, such as loading of kernel modules.
                state = self.run("systemctl", "is-system-running", "--wait", expect=None).strip().splitlines()
                if state and state[-1] in ("running", "degraded"):
                    return
            time.sleep(0.2)
        raise AssertionError(
            f"the machine did not boot:\n{(self._layer / 'console').read_text('utf-8', 'replace')[-4000:]}"
        )

    def _remove_cgroups(self) -> None:
        deadline = time.monotonic() + 10
        while self._cgroup.exists() and time.monotonic() < deadline:
            for path in sorted((one for one in self._cgroup.rglob("*") if one.is_dir()), reverse=True):
                with contextlib.suppress(OSError):
                    path.rmdir()
            with contextlib.suppress(OSError):
                self._cgroup.rmdir()
            time.sleep(0.1)

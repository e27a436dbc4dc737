"""A Debian with a real systemd as process 1, in namespaces of its own on this machine.

``Machine``: a root that is an overlay in memory above a userland made by debootstrap; mounts, processes, network, host name
and control groups are its own. It needs root, and a kernel with overlayfs and control groups of version 2 (a hierarchy
without controllers is enough). Its process 1 may not load kernel modules, set the clock or reboot, and it cannot write to
/proc/sys outside of /proc/sys/net, which its own network namespace has.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Seconds until systemd has started everything, on a busy machine.
BOOT_SECONDS = 120.0

#: Capabilities whose effects leave the namespaces.
_WITHHELD = "-sys_time,-sys_module,-sys_boot,-sys_rawio,-mac_admin,-mac_override,-syslog,-wake_alarm,-block_suspend"

#: Arguments: base, directory for what the machine writes, host name, directories to show read-only.
_BOOT = """
set -eu
base=$1 directory=$2 name=$3
shift 3
mount --make-rprivate /
# In memory: a package manager waits for the disk at each file.
mount -t tmpfs tmpfs -o mode=755 "$directory"
mkdir "$directory/upper" "$directory/work" "$directory/root"
root=$directory/root
mount -t overlay overlay -o "xino=on,lowerdir=$base,upperdir=$directory/upper,workdir=$directory/work" "$root"
for directory; do
    mkdir -p "$root$directory"
    mount --bind "$directory" "$root$directory"
    mount -o remount,bind,ro "$root$directory"
done
echo "$name" >"$root/etc/hostname"
cd "$root"
mount -t proc proc proc -o nosuid,noexec,nodev
mount --bind proc/sys proc/sys
mount --bind proc/sys/net proc/sys/net
mount -o remount,bind,ro proc/sys
mount -t sysfs sysfs sys -o ro,nosuid,noexec,nodev
mount -t cgroup2 cgroup2 sys/fs/cgroup -o nosuid,noexec,nodev
mount -t tmpfs tmpfs run -o mode=755,nosuid,nodev
mount -t tmpfs tmpfs dev -o mode=755,nosuid
for node in null zero full random urandom tty; do
    : >"dev/$node"
    mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/pts dev/shm .outside
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666,mode=620,gid=5
mount -t tmpfs tmpfs dev/shm -o mode=1777
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
pivot_root . .outside
umount -l /.outside
rmdir /.outside
hostname "$name"
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 setpriv --bounding-set "$WITHHELD" /sbin/init
"""

#: Each machine has namespaces of its own, but for users.
_UNSHARE = ("unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child")

#: Variables of a command in a machine.
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
}


def debootstrap(root: Path, packages: Sequence[str], *, seconds: float = 1200) -> None:
    """Make a minimal Debian 12 with systemd and these packages below ``root``.

    Raises CalledProcessError if debootstrap fails; its output says why. Half a made userland is removed.
    """
    wanted = ("systemd", "systemd-sysv", "dbus", *packages)
    half = root.with_name(f"{root.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    half.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(wanted)}", "bookworm", half],
        check=True,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    # Empty: each machine gets an id of its own at its first boot.
    (half / "etc/machine-id").write_text("")
    half.rename(root)


class Machine:
    """A booted Debian. ``base`` is a userland, which stays as it is; ``directory`` is the machine's own, for its console."""

    def __init__(self, base: Path, directory: Path, name: str, shown: Sequence[Path] = ()) -> None:
        self.name = name
        self._base = base
        self._directory = directory
        self._shown = [str(path) for path in shown]
        self._boot: subprocess.Popen[bytes] | None = None
        self._process_1 = 0

    @property
    def root(self) -> Path:
        """The machine's own root, seen from outside while it runs."""
        return Path(f"/proc/{self._process_1}/root")

    def start(self) -> None:
        """Boot, and wait until systemd has started every unit. Raises AssertionError with the console's text if it does not."""
        inside = self._directory / "inside"
        inside.mkdir(parents=True)
        log = self._directory / "console.log"
        with log.open("wb") as console:
            self._boot = subprocess.Popen(
                [
                    *_UNSHARE,
                    "sh",
                    "-c",
                    _BOOT,
                    "boot",
                    *map(str, (self._base, inside, self.name)),
                    *self._shown,
                ],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env={**os.environ, "WITHHELD": _WITHHELD},
                start_new_session=True,
            )
        deadline = time.monotonic() + BOOT_SECONDS
        told = ""
        while time.monotonic() < deadline:
            if self._boot.poll() is not None:
                break
            if self._found():
                # Waits itself; "degraded" is for the tests of the units to judge.
                told = self.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip()
                if told in ("running", "degraded"):
                    return
            time.sleep(0.1)
        text = log.read_text(errors="replace")
        self.stop()
        raise AssertionError(f"systemd does not run on {self.name} (it says {told!r}): {text[-2000:]}")

    def _found(self) -> bool:
        """Whether process 1 is systemd by now; notes its process id as seen from outside."""
        assert self._boot is not None
        children = Path(f"/proc/{self._boot.pid}/task/{self._boot.pid}/children").read_text().split()
        if not children:
            return False
        self._process_1 = int(children[0])
        try:
            return (
                Path(f"/proc/{self._process_1}/comm").read_text().strip() == "systemd"
                and (self.root / "run/dbus/system_bus_socket").exists()
            )
        except OSError:
            return False

    def run(
        self, *argv: str, check: bool = True, env: Mapping[str, str] | None = None, seconds: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the machine as root. With ``check``, a failure raises AssertionError with what the command wrote."""
        variables = [f"{name}={value}" for name, value in {**_ENVIRONMENT, **(env or {})}.items()]
        done = subprocess.run(
            ["nsenter", "--target", str(self._process_1), "--all", "--wdns=/", "env", "-i", *variables, *argv],
            capture_output=True,
            text=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
        )
        if check:
            assert done.returncode == 0, f"{self.name}: {argv} exits with {done.returncode}: {done.stderr}{done.stdout}"
        return done

    def stop(self) -> None:
        """End every process of the machine. All that it wrote is gone."""
        if self._boot is not None:
            if self._process_1:
                # The end of process 1 is the end of its namespace.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process_1, signal.SIGKILL)
            self._boot.kill()
            self._boot.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

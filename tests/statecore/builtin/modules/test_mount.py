"""The ``mount`` module on a mounted host whose programs are played."""

from __future__ import annotations

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult

TABLE = """\
1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw
2 1 7:3 / /mnt/image ro,nosuid - iso9660 /dev/loop3 ro
3 1 0:5 / /mnt/with\\040blank rw - tmpfs tmpfs rw,size=4k
"""


class Kernel(Host):
    """Mounts and swaps as it is asked, and remembers what that was."""

    swapped = "Filename Type Size Used Priority\n/dev/sdb2 partition 9 1 -2\n"

    def __init__(self, root):
        super().__init__(root)
        self.asked = []

    def mount_table(self):
        return TABLE

    def which(self, program):
        return None if program in ("none", "blkid") else f"/usr/bin/{program}"

    def run(self, cmd, **options):
        self.asked.append((" ".join(cmd), options.get("runas")))
        if cmd[0] == "ldd":
            return CommandResult(0, "libfuse.so.2\n" if "sshfs" in cmd[1] else "libc.so\n", "", 1)
        if cmd[0] == "swapon":
            self.swapped += f"{cmd[1]} file 7 0 -3\n"
        if cmd[0] == "swapoff":
            self.swapped = "".join(line for line in self.swapped.splitlines(True) if not line.startswith(cmd[1]))
        self.path("/proc/swaps").write_text(self.swapped)
        return CommandResult(32, "", "refused\n", 1) if "bad" in cmd else CommandResult(0, "", "", 1)


@pytest.fixture
def host(plain):
    for name in ("etc", "proc", "mnt/image", "sys/block/loop3/loop"):
        (plain.root / name).mkdir(parents=True)
    (plain.root / "proc/swaps").write_text(Kernel.swapped)
    (plain.root / "sys/block/loop3/loop/backing_file").write_text("/srv/image.iso\n")
    (plain.root / "etc/fstab").write_text("/dev/a /a ext4 ro\n/dev/b /a xfs rw 1 2\n")
    plain.kernel = Kernel(plain.root)
    plain.ctx = plain.context(host=plain.kernel)
    return plain


def test_what_is_mounted(host):
    call = host.ctx.call
    image = call("mount.active")["/mnt/image"]
    assert image == {
        "device": "/dev/loop3",
        "alt_device": "/srv/image.iso",
        "fstype": "iso9660",
        "opts": ["ro", "nosuid"],
    }
    assert call("mount.active", extended=True)["/mnt/with blank"]["superopts"] == ["rw", "size=4k"]
    assert call("mount.is_mounted", "/mnt/with blank") is True
    assert call("mount.is_mounted", "/mnt") is False
    assert call("mount.get_mount_from_path", "/mnt/image/a/b") == "/mnt/image"
    assert call("mount.get_device_from_path", "/etc/fstab") == "/dev/sda1"


def test_swap(host):
    call = host.ctx.call
    assert call("mount.swaps") == {"/dev/sdb2": {"type": "partition", "size": "9", "used": "1", "priority": "-2"}}
    assert call("mount.swapon", "/dev/sdb2")["new"] is False
    assert call("mount.swapon", "/swap", priority=5) == {
        "stats": {"type": "file", "size": "7", "used": "0", "priority": "-3"},
        "new": True,
    }
    assert host.kernel.asked[-1][0] == "swapon /swap -p 5"
    assert call("mount.swapoff", "/swap") is True
    assert call("mount.swapoff", "/swap") is None


def test_programs(host):
    call = host.ctx.call
    assert call("mount.mount", "/a", "/dev/a", fstype="ext4", opts=["ro", "nosuid"]) is True
    assert call("mount.mount", "/a") is True
    assert call("mount.mount", "/a", "bad", opts=None) == "refused"
    assert call("mount.remount", "/mnt/image", "/dev/loop3", opts="ro") is True
    assert call("mount.umount", "/mnt/image", lazy=True) is True
    assert call("mount.umount", "/mnt/none") == "/mnt/none does not have anything mounted"
    assert [cmd for cmd, _ in host.kernel.asked] == [
        "mount -o ro,nosuid -t ext4 /dev/a /a",
        "mount /a",
        "mount bad /a",
        "mount -o ro,remount /dev/loop3 /mnt/image",
        "umount -l /mnt/image",
    ]
    with pytest.raises(InvocationError, match="not supported: util=guestfs"):
        call("mount.mount", "/a", util="guestfs")
    assert call("mount.is_fuse_exec", "sshfs") is True
    assert call("mount.is_fuse_exec", "ls") is False
    assert call("mount.is_fuse_exec", "none") is False


def test_fstab(host):
    call = host.ctx.call
    assert list(call("mount.fstab")) == ["/a", "/a_"]
    assert call("mount.fstab")["/a_"] == {"device": "/dev/b", "fstype": "xfs", "opts": ["rw"], "dump": "1", "pass": "2"}
    assert call("mount.fstab", "/etc/none") == {}
    assert call("mount.set_fstab", "/c", "/dev/c", "ext4", test=True) == "new"
    assert "/dev/c" not in (host.root / "etc/fstab").read_text()
    with pytest.raises(CommandError, match='Bad config file "/etc/none"'):
        call("mount.set_fstab", "/c", "/dev/c", "ext4", config="/etc/none")
    with pytest.raises(CommandError, match="Couldn't read from /etc/none"):
        call("mount.rm_fstab", "/c", "/dev/c", "/etc/none")
    with pytest.raises(InvocationError, match="fstype must not be empty"):
        call("mount.set_fstab", "/c", "/dev/c", "")


def test_the_cache_of_mounts(host):
    call = host.ctx.call
    assert call("mount.read_mount_cache", "/a") == {}
    assert call("mount.write_mount_cache", "/a", "/dev/a", False, "ext4", ["ro"]) is True
    assert call("mount.read_mount_cache", "/a") == {
        "device": "/dev/a",
        "fstype": "ext4",
        "mkmnt": False,
        "opts": ["ro"],
    }
    assert call("mount.delete_mount_cache", "/a") is True
    assert call("mount.read_mount_cache", "/a") == {}
    (host.directory / "cache/mounts").write_text("{")
    with pytest.raises(CommandError, match="delete the file"):
        call("mount.read_mount_cache", "/a")

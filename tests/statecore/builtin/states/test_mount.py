"""``mount`` with real mounts: in a mount namespace, on a root whose programs are this machine's, by chroot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_CHILD = Path(__file__).with_name("mounts_of_a_root.py")


@pytest.fixture
def mounts(tmp_path):
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("only root may mount, where a mount namespace of its own may be made")
    root = tmp_path / "host"
    for name in ("etc", "mnt", "root", "run/mount", "srv/data"):
        (root / name).mkdir(parents=True)
    (root / "etc/fstab").write_text("# kept\n")

    def asked(*calls):
        done = subprocess.run(
            ["unshare", "-m", sys.executable, _CHILD, root], input=json.dumps(calls), text=True, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    asked.root = root
    return asked


def test_a_file_system_in_memory(mounts):
    small = {
        "name": "/mnt/mem",
        "device": "tmpfs",
        "fstype": "tmpfs",
        "mkmnt": True,
        "opts": "size=1m,mode=0750,nosuid,noauto,x-systemd.automount",
    }
    large = {**small, "opts": ["size=2048k", "mode=0750", "nosuid"], "persist": False}
    gone = {"name": "/mnt/mem", "persist": True}
    told = mounts(
        ["mount.mounted", small, True],
        ["mount.mounted", small, False],
        ["mount.mounted", small, False],
        ["mount.mounted", {**small, "fstype": "ramfs"}, True],
        ["mount.mounted", large, True],
        ["mount.mounted", large, False],
        ["mount.mounted", large, False],
        ["mount.unmounted", gone, True],
        ["mount.unmounted", gone, False],
        ["mount.unmounted", gone, False],
    )
    assert [(each["result"], each["changes"]) for each in told] == [
        (None, {}),
        (True, {"mount": True, "persist": "new"}),
        (True, {}),
        (None, {}),
        (None, {}),
        (True, {"umount": "Forced remount because options (size=2048k) changed"}),
        (True, {}),
        (None, {}),
        (True, {"umount": True, "persist": "purged"}),
        (True, {}),
    ], json.dumps(told, indent=1)
    assert told[0]["mounted"] == {}
    assert "size=1024k" in told[2]["mounted"]["/mnt/mem"]
    assert "size=2048k" in told[6]["mounted"]["/mnt/mem"]
    assert told[9]["mounted"] == {}
    assert (mounts.root / "etc/fstab").read_text() == "# kept\n"


def test_a_directory_in_two_places(mounts):
    bind = {"name": "/mnt/with blank", "device": "/srv/data", "fstype": "none", "opts": "bind", "mkmnt": True}
    other = {**bind, "device": "/srv", "persist": False}
    told = mounts(["mount.mounted", bind, False], ["mount.mounted", bind, False], ["mount.mounted", other, True])
    assert [each["changes"] for each in told] == [{"mount": True, "persist": "new"}, {}, {}]
    assert list(told[1]["mounted"]) == ["/mnt/with blank"]
    # What is mounted there is another directory of the same device.
    assert told[2]["comment"] == "An umount would have been forced because devices do not match.  Watched: /srv"
    assert (mounts.root / "etc/fstab").read_text() == "# kept\n/srv/data\t\t/mnt/with\\040blank\tnone\tbind\t0 0\n"


def test_what_the_kernel_refuses(mounts):
    (told,) = mounts(["mount.mounted", {"name": "/mnt/x", "device": "x", "fstype": "nosuchfs", "mkmnt": True}, False])
    assert told["result"] is False
    assert "special device x does not exist" in told["comment"] or "nosuchfs" in told["comment"]
    assert (mounts.root / "etc/fstab").read_text() == "# kept\n"


def test_a_link_that_leads_out_of_the_root(mounts, tmp_path):
    (mounts.root / "mnt/link").symlink_to("/srv/../../../srv/data")
    told = mounts(
        ["mount.mounted", {"name": "/mnt/link", "device": "tmpfs", "fstype": "tmpfs", "persist": False}, False]
    )
    assert told[0]["result"] is True, told
    assert told[0]["mounted"] == {}


@pytest.mark.parametrize(
    ("state", "arguments", "named"),
    [
        ("mount.mounted", {"device": "/dev/a", "fstype": "ext4", "opts": {"a": 1}}, "opts"),
        ("mount.mounted", {"device": "/dev/a", "fstype": "ext4", "hidden_opts": 5}, "hidden_opts"),
        (
            "mount.mounted",
            {"device": "/dev/a", "fstype": "ext4", "extra_mount_ignore_fs_keys": ["x"]},
            "extra_mount_ignore_fs_keys",
        ),
        ("mount.mounted", {"device": 5, "fstype": "ext4"}, "device"),
        ("mount.fstab_present", {"fs_file": "/mnt/a", "fs_vfstype": "xfs", "fs_mntops": 3}, "fs_mntops"),
        ("mount.fstab_present", {"fs_file": "/mnt/a", "fs_vfstype": "xfs", "mount_by": "colour"}, "mount_by"),
        ("mount.fstab_absent", {"fs_file": "/mnt/a", "mount_by": "colour"}, "mount_by"),
    ],
)
def test_wrong_arguments_are_named(plain, state, arguments, named):
    told = plain.context().states[state](name="/mnt/a", **arguments)
    assert told["result"] is False
    assert named in told["comment"]


def test_a_watcher(plain):
    told = plain.context().states["mount.mod_watch"](name="/mnt/a", sfun="unmounted")
    assert (told["result"], told["comment"]) == (True, "Watch not supported in unmounted at this time")

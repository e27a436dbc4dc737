"""fstab and the mount table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecore.host.host import _below
from statecore.model.errors import CommandError
from statecore.system.hostfiles import fstab, mount_table
from statecore.system.hostfiles.fstab import FstabEntry
from statecore.system.hostfiles.mount_table import Leniency

FSTAB = """\
# <device>      <place>   <type>  <options>  <dump> <pass>
/dev/sda1       /         ext4    defaults   0      1
  # indented
UUID=1-2\t/boot\tvfat\tro
/dev/sdb1       /srv      xfs     noatime    0      2  # the large one
broken line
"""


@pytest.mark.parametrize(
    ("entry", "known_by", "status", "line"),
    [
        (FstabEntry("/dev/sdb1", "/srv", "xfs", "noatime", "0", "2"), ["device"], "present", None),
        (
            FstabEntry("/dev/sdb1", "/srv", "xfs", "noatime,nosuid,nodev", "0", "2"),
            ["device"],
            "change",
            "/dev/sdb1       /srv      xfs     noatime,nosuid,nodev 0      2  # the large one",
        ),
        (
            FstabEntry("/dev/sdb1", "/srv", "xfs", "ro", "1", "2"),
            ["device"],
            "change",
            "/dev/sdb1       /srv      xfs     ro         1      2  # the large one",
        ),
        (FstabEntry("UUID=1-2", "/boot", "vfat", "ro", "0", "2"), ["name"], "change", "UUID=1-2\t/boot\tvfat\tro 0 2"),
        (FstabEntry("/dev/sdc1", "/new", "xfs"), ["device"], "new", "/dev/sdc1\t\t/new\txfs\tdefaults\t0 0"),
    ],
)
def test_an_entry_is_put_in_its_columns(entry, known_by, status, line):
    told, text = fstab.put(FSTAB, entry, known_by)
    assert told == status
    new = [each for each in text.splitlines() if each not in FSTAB.splitlines()]
    assert new == ([line] if line else [])
    assert fstab.put(text, entry, known_by) == ("present", text)


def test_a_last_line_without_an_end_is_not_joined():
    assert (
        fstab.put("/dev/a / ext4 ro", FstabEntry("b", "/b", "xfs"), ["name"])[1].splitlines()[0] == "/dev/a / ext4 ro"
    )


def test_entries_go_and_all_else_stays():
    assert fstab.without(FSTAB, "/srv").splitlines() == [*FSTAB.splitlines()[:4], "broken line"]
    assert fstab.without(FSTAB, "/srv", "/dev/other") == FSTAB


def test_what_an_entry_is_known_by():
    two = "/dev/a /one ext4 ro\n/dev/a /two ext4 ro\n"
    assert fstab.criteria(two, FstabEntry("/dev/a", "/two", "ext4"), "auto") == ("device", "name")
    assert fstab.criteria(two, FstabEntry("/dev/a", "/three", "ext4"), "auto") == ("device",)
    assert fstab.criteria(two, FstabEntry("x", "/two", "tmpfs"), "auto") == ("name",)
    with pytest.raises(CommandError, match="colour; there are device, name"):
        fstab.criteria(two, FstabEntry("x", "/two", "tmpfs"), ["colour"])


@given(
    st.lists(st.sampled_from(["# a\n", "/dev/a  /a  ext4  ro  0 0\n", "\n", "b\t/b\txfs\trw\n", "x y\n"]), max_size=6),
    st.builds(
        FstabEntry,
        st.sampled_from(["/dev/a", "b"]),
        st.sampled_from(["/a", "/b c"]),
        st.just("ext4"),
        st.sampled_from(["ro", "a,b"]),
        st.sampled_from("01"),
        st.sampled_from("02"),
    ),
)
def test_an_entry_is_there_once_it_was_put(lines, entry):
    text = "".join(lines)
    entry = FstabEntry(*(fstab.written(each) for each in entry))
    _, new = fstab.put(text, entry, ["name"])
    assert entry in fstab.parse(new)
    assert fstab.put(new, entry, ["name"]) == ("present", new)
    kept = [line for line in new.splitlines() if line.startswith("#") or not line.strip() or line == "x y"]
    assert kept == [line for line in text.splitlines() if line.startswith("#") or not line.strip() or line == "x y"]


TABLE = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 21 0:40 / /host rw,nosuid master:3 propagate_from:2 - tmpfs tmpfs ro,size=1024k
31 30 8:2 /sub/dir /host/with\040blank rw - xfs /dev/sdb1 rw
32 30 8:2 / /hosted rw - xfs /dev/sdb1 rw
"""


def test_a_table_is_read():
    table = mount_table.parse(TABLE)
    assert table["/host/with blank"].root == "/sub/dir"
    assert table["/host"].plain_opts() == ["ro", "nosuid", "size=1024k"]
    assert table["/"].fstype == "ext4"
    assert mount_table.holder(table, "/host/a/b").point == "/host"


def test_a_root_has_what_is_mounted_in_it():
    assert list(mount_table.parse(_below(TABLE, Path("/host")))) == ["/", "/with blank"]
    assert list(mount_table.parse(_below(TABLE, Path("/host/with blank")))) == ["/"]


@pytest.mark.parametrize(
    ("wanted", "active", "fstype", "lacking"),
    [
        (["defaults", "noatime"], ["rw", "noatime"], "ext4", []),
        (["noatime", "nosuid"], ["rw", "noatime"], "ext4", ["nosuid"]),
        (["size=1g"], ["rw", "size=1048576k"], "tmpfs", []),
        (["size=50%", "mode=1777", "uid=0"], ["rw", "size=77k"], "tmpfs", []),
        (["mode=0755"], ["rw", "mode=755"], "tmpfs", []),
        (["nr_inodes=1k"], ["rw", "nr_inodes=1024"], "tmpfs", []),
        (["size=2m"], ["rw", "size=1024k"], "tmpfs", ["size=2048k"]),
        (["exec", "suid", "dev", "async"], ["rw"], "ext4", []),
        (["exec"], ["rw", "noexec"], "ext4", ["exec"]),
        (["noauto", "x-systemd.automount", "_netdev", "comment=x"], ["rw"], "nfs", []),
        (["tcp"], ["rw", "proto=tcp"], "nfs", []),
        (["user=bob", "credentials=/x"], ["rw", "username=bob"], "cifs", []),
        (["user=bob"], ["rw", "username=al"], "cifs", ["username=bob"]),
        (["uid=web"], ["rw", "uid=33"], "vfat", []),
        (["size=5"], ["rw"], "ramfs", []),
        (["secret=5"], ["rw"], "x", []),
    ],
)
def test_options_that_are_lacking(wanted, active, fstype, lacking):
    lenient = Leniency(keys=["secret"])
    assert mount_table.missing(wanted, active, fstype, lenient, lambda kind, name: "33") == lacking

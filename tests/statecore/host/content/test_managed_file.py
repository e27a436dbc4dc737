"""Reading, comparing and replacing files: whole or not at all, links left out of it, owners and modes kept."""

from __future__ import annotations

import os
import stat

import pytest

from statecore.host.content import backups, diffs, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.host import Host
from statecore.model.errors import HostError, InvocationError

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (None, None),
        ("", None),
        ("644", 0o644),
        (644, 0o644),
        ("0644", 0o644),
        ("0o755", 0o755),
        (" 755 ", 0o755),
        ("4755", 0o4755),
        (0, 0),
        ("0", 0),
    ],
)
def test_modes(value, bits):
    assert managed_file.parse_mode(value) == bits


@pytest.mark.parametrize("value", ["rwx", "888", "77777", -1, "0x1ff", [], True])
def test_what_is_no_mode(value):
    with pytest.raises(InvocationError, match="is no mode"):
        managed_file.parse_mode(value)


@pytest.mark.parametrize(("files", "directory"), [(0o644, 0o755), (0o600, 0o700), (0o640, 0o750), (0o000, 0o000)])
def test_the_mode_of_a_directory_for_files(files, directory):
    assert managed_file.directory_mode(files) == directory


def test_reading(tmp_path):
    (tmp_path / "f").write_bytes(b"\xff\0")
    assert managed_file.read(tmp_path / "f", "/f") == b"\xff\0"
    assert managed_file.read(tmp_path / "none", "/none") is None
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ""):
        with pytest.raises(HostError, match="/shown is no regular file"):
            managed_file.read(tmp_path / name, "/shown")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (None, b"x", "New file"),
        (b"a\n", b"b\n", "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n"),
        (b"a\n", b"a\n", ""),
        (b"", b"a\n", "--- \n+++ \n@@ -0,0 +1 @@\n+a\n"),
        ("é\n".encode(), b"e\n", "--- \n+++ \n@@ -1 +1 @@\n-é\n+e\n"),
        (b"\0", b"\0\0", "Replace binary file"),
        (b"\0", b"a", "Replace binary file with text file"),
        (b"a", b"\xff", "Replace text file with binary file"),
    ],
)
def test_how_a_change_is_told(old, new, told):
    assert diffs.unified(old, new) == told
    assert told != diffs.HIDDEN


@pytest.mark.parametrize(("data", "binary"), [(b"", False), ("té".encode(), False), (b"a\0", True), (b"\xe9", True)])
def test_what_is_binary(data, binary):
    assert diffs.is_binary(data) is binary


def test_replacing_keeps_the_mode(host, tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(0o640)
    managed_file.replace(host, path, b"new", Attributes())
    assert (path.read_text(), mode(path)) == ("new", 0o640)
    managed_file.replace(host, path, b"newer", Attributes(mode=0o4711))
    assert (path.read_text(), mode(path)) == ("newer", 0o4711)
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_mode_of_any_other(host, tmp_path, mask):
    before = os.umask(mask)
    try:
        managed_file.replace(host, tmp_path / "f", b"", Attributes())
        assert managed_file.default_mode() == 0o666 & ~mask
    finally:
        os.umask(before)
    assert mode(tmp_path / "f") == 0o666 & ~mask


def test_a_link_is_replaced_and_what_it_leads_to_is_not(host, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("outside")
    outside.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(outside)
    managed_file.replace(host, link, b"new", Attributes(mode=0o644))
    assert not link.is_symlink()
    assert (outside.read_text(), mode(outside)) == ("outside", 0o600)


def test_a_failure_leaves_the_old_file_and_nothing_else(host, tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(HostError, match="User nosuch is not available"):
        managed_file.replace(host, path, b"new", Attributes(user="nosuch"))
    assert path.read_text() == "old"
    assert names(tmp_path) == ["f"]
    with pytest.raises(HostError, match="cannot be written: Not a directory"):
        managed_file.replace(host, path / "below", b"new", Attributes())
    (tmp_path / "d" / "full").mkdir(parents=True)
    with pytest.raises(HostError, match="cannot be written: Is a directory"):
        managed_file.replace(host, tmp_path / "d", b"new", Attributes())
    assert names(tmp_path) == ["d", "f"]


def test_attributes_that_differ(host, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(f"me:x:{os.geteuid()}:0::/:/bin/sh\nother:x:9999:0::/:/bin/sh\n")
    (tmp_path / "etc/group").write_text(f"us:x:{os.getegid()}:\nthem:x:9998:\n")
    path = tmp_path / "f"
    path.touch()
    path.chmod(0o644)
    for wanted, differs in (
        (Attributes(), {}),
        (Attributes("me", "us", 0o644), {}),
        (Attributes(os.geteuid(), str(os.getegid())), {}),
        (Attributes("other", "them", 0o600), {"user": "other", "group": "them", "mode": "0600"}),
        # A state that has not run in test mode may be about to make them.
        (Attributes("coming", "coming"), {"user": "coming", "group": "coming"}),
    ):
        assert managed_file.attribute_changes(host, path, wanted) == differs
    link = tmp_path / "link"
    link.symlink_to("f")
    assert managed_file.attribute_changes(host, link, Attributes(mode=0o600)) == {}
    managed_file.set_attributes(host, link, Attributes(mode=0o600))
    assert mode(path) == 0o644


@AS_ROOT
def test_owners(host, tmp_path):
    path = tmp_path / "f"
    path.touch()
    managed_file.set_attributes(host, path, Attributes(1234, 1235, 0o600))
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (1234, 1235, 0o600)
    managed_file.replace(host, path, b"new", Attributes())
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (1234, 1235, 0o600)
    managed_file.copy_beside(host, path, ".bak")
    kept = tmp_path / "f.bak"
    assert (kept.read_bytes(), kept.stat().st_uid, mode(kept)) == (b"new", 1234, 0o600)
    link = tmp_path / "link"
    link.symlink_to("f")
    managed_file.set_attributes(host, link, Attributes(7, 8))
    assert (link.lstat().st_uid, path.stat().st_uid) == (7, 1234)


def test_only_root_gives_files_away(host, tmp_path, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refused)
    (tmp_path / "f").touch()
    with pytest.raises(HostError, match=r"Failed to change owner of .* to 1234: only root may"):
        managed_file.set_attributes(host, tmp_path / "f", Attributes(user=1234))


def test_directories(host, tmp_path):
    managed_file.make_directories(host, tmp_path / "a/b/c", Attributes(mode=0o750), tmp_path)
    assert [mode(tmp_path / name) for name in ("a", "a/b", "a/b/c")] == [0o750] * 3
    managed_file.make_directories(host, tmp_path / "a/b/d", Attributes(mode=0o700), tmp_path)
    assert (mode(tmp_path / "a/b"), mode(tmp_path / "a/b/d")) == (0o750, 0o700)
    with pytest.raises(HostError, match="Group nosuch is not available"):
        managed_file.make_directories(host, tmp_path / "x/y", Attributes(group="nosuch"), tmp_path)
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="cannot be made"):
        managed_file.make_directories(host, tmp_path / "file/y", Attributes(), tmp_path)


def test_removing(tmp_path):
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/f").touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/f").touch()
    (tmp_path / "d/link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    managed_file.remove(tmp_path / "link")
    managed_file.remove(tmp_path / "d")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["f", "kept"]
    with pytest.raises(HostError, match="cannot be removed: No such file"):
        managed_file.remove(tmp_path / "d")


def test_backups(tmp_path):
    path = tmp_path / "host/etc/f"
    path.parent.mkdir(parents=True)
    path.write_text("old")
    kept = backups.back_up(path, tmp_path / "cache")
    assert kept.startswith(str(tmp_path / "cache") + str(path.parent) + "/f_")
    with open(kept) as file:
        assert file.read() == "old"


def test_what_replaces_a_file_has_its_extended_attributes(host, tmp_path):
    place = tmp_path / "f"
    place.write_bytes(b"1")
    try:
        os.setxattr(place, "user.colour", b"red")
    except OSError as error:
        pytest.skip(f"no extended attributes in {tmp_path}: {error.strerror}")
    managed_file.replace(host, place, b"2", Attributes(mode=0o640))
    assert os.getxattr(place, "user.colour") == b"red"
    assert (place.read_bytes(), stat.S_IMODE(place.stat().st_mode)) == (b"2", 0o640)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives powers to files")
def test_powers_of_the_old_content_are_not_handed_to_the_new(host, tmp_path):
    place = tmp_path / "f"
    place.write_bytes(b"1")
    # Version 2, effective, CAP_NET_RAW.
    power = bytes.fromhex("0100000200200000000000000000000000000000")
    try:
        os.setxattr(place, "security.capability", power)
    except OSError as error:
        pytest.skip(f"no file capabilities in {tmp_path}: {error.strerror}")
    managed_file.replace(host, place, b"2", Attributes())
    assert "security.capability" not in os.listxattr(place)

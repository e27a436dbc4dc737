"""Archives on a mounted host."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile

import pytest

from statecore.model.errors import CommandError


def make_zip(path, members, password_flag=False):
    with zipfile.ZipFile(path, "w") as made:
        for name, (text, mode) in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            made.writestr(info, text)


@pytest.fixture
def host(plain):
    (plain.root / "srv").mkdir()
    make_zip(plain.root / "srv/a.zip", {"a/x": ("x", 0o100750), "a/l": ("x", stat.S_IFLNK | 0o777)})
    with tarfile.open(plain.root / "srv/a.tar", "w") as tar:
        info = tarfile.TarInfo("a/b/c")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"c"))
    return plain


def test_calls(host):
    assert host.call("archive.list", "/srv/a.zip") == ["a/", "a/l", "a/x"]
    assert host.call("archive.list", "/srv/a.tar", verbose=True) == {
        "dirs": [],
        "files": ["a/b/c"],
        "links": [],
        "top_level_dirs": ["a/"],
        "top_level_files": [],
        "top_level_links": [],
    }
    assert host.call("archive.list", "/srv/a.tar", strip_components=2) == ["c"]
    assert host.call("archive.is_encrypted", "/srv/a.zip") is False
    assert host.call("archive.unzip", "/srv/a.zip", "/srv/out") == ["a/x", "a/l"]
    assert (host.root / "srv/out/a/x").stat().st_mode & 0o777 == 0o750
    assert str((host.root / "srv/out/a/l").readlink()) == "x"


@pytest.mark.parametrize(
    "members",
    [
        {"../out": ("x", 0o100644)},
        {"/etc/out": ("x", 0o100644)},
        {"l": ("..", stat.S_IFLNK), "l/out": ("x", 0o100644)},
        {"l": ("/etc", stat.S_IFLNK)},
        {"there/out": ("x", 0o100644)},
    ],
)
def test_nothing_leaves_the_directory(host, tmp_path, members):
    make_zip(host.root / "srv/bad.zip", members)
    (host.root / "srv/to").mkdir()
    (host.root / "srv/to/there").symlink_to(tmp_path)
    with pytest.raises(CommandError, match="would be extracted outside of the directory"):
        host.call("archive.unzip", "/srv/bad.zip", "/srv/to")
    assert not list(tmp_path.glob("**/out"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("/srv/a.rar",), "supported are tar and zip"),
        (("/srv/none.zip",), "Failed to cache"),
        (("/srv/a.tar", "zip"), "is not a ZIP file"),
        (("/srv/a.zip", "tar"), "Unable to list contents"),
    ],
)
def test_errors(host, args, words):
    with pytest.raises(CommandError, match=words):
        host.call("archive.list", *args)

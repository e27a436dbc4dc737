"""The opener beneath a directory, by openat2(2) and by its fallback: both give the same file or the same error."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecore.host import beneath
from statecore.host.beneath import LeadsOutside, Links, NoRegularFile


def _no_call(number: int) -> object:
    return lambda: lambda top, path, how: -number


def kernel_has_openat2() -> bool:
    return beneath._system_call()(-100, b"/", bytes(24)) != -errno.ENOSYS


@pytest.fixture(params=["openat2", "no such call", "refused by a filter", "renamed meanwhile"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a path is opened: by the kernel, or step by step since the kernel refuses openat2 with one of its errors."""
    errors = {"no such call": errno.ENOSYS, "refused by a filter": errno.EPERM, "renamed meanwhile": errno.EAGAIN}
    if request.param in errors:
        monkeypatch.setattr(beneath, "_system_call", _no_call(errors[request.param]))
    elif not kernel_has_openat2():
        pytest.skip("this kernel has no openat2")
    return str(request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    (made / "a/b").mkdir(parents=True)
    (made / "file").write_text("top")
    (made / "a/b/file").write_text("deep")
    (made / "a/up").symlink_to("../file")
    (made / "near").symlink_to("a/b")
    (made / "absolute").symlink_to(made / "a/b/file")
    (made / "chroot").symlink_to("/a/b/file")
    (made / "loop").symlink_to("loop")
    (made / "gone").symlink_to("nowhere")
    (made / "beside").symlink_to("../outside/file")
    (made / "far").symlink_to(tmp_path / "outside/file")
    (made / "machine").symlink_to("/proc/self/root/etc/passwd")
    os.mkfifo(made / "fifo")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("outside")
    return made


@pytest.fixture
def top(tree: Path) -> Iterator[int]:
    with beneath.directory(tree) as found:
        yield found


#: Path -> what each kind of Links gives: the text of the file, or the error.
CASES: dict[str, tuple[object, object, object, object]] = {
    "file": ("top", "top", "top", "top"),
    "./a//b/file": ("deep", "deep", "deep", "deep"),
    "nowhere": (errno.ENOENT, errno.ENOENT, errno.ENOENT, errno.ENOENT),
    "file/deeper": (errno.ENOTDIR, errno.ENOTDIR, errno.ENOTDIR, errno.ENOTDIR),
    "a": (NoRegularFile, NoRegularFile, NoRegularFile, NoRegularFile),
    "": (NoRegularFile, NoRegularFile, NoRegularFile, NoRegularFile),
    "fifo": (NoRegularFile, NoRegularFile, NoRegularFile, NoRegularFile),
    "a/up": (errno.ELOOP, "top", "top", "top"),
    "near/file": (errno.ELOOP, "deep", "deep", "deep"),
    "absolute": (errno.ELOOP, LeadsOutside, errno.ENOENT, "deep"),
    "chroot": (errno.ELOOP, LeadsOutside, "deep", errno.ENOENT),
    "loop": (errno.ELOOP, errno.ELOOP, errno.ELOOP, errno.ELOOP),
    "gone": (errno.ELOOP, errno.ENOENT, errno.ENOENT, errno.ENOENT),
    "beside": (errno.ELOOP, LeadsOutside, errno.ENOENT, "outside"),
    "far": (errno.ELOOP, LeadsOutside, errno.ENOENT, "outside"),
    "a/../file": (LeadsOutside, "top", "top", LeadsOutside),
    "../outside/file": (LeadsOutside, LeadsOutside, errno.ENOENT, LeadsOutside),
    "/file": (LeadsOutside, LeadsOutside, "top", LeadsOutside),
    "x\0file": (ValueError, ValueError, ValueError, ValueError),
    "x" * 300: (errno.ENAMETOOLONG,) * 4,
}


@pytest.mark.parametrize("links", list(Links))
@pytest.mark.parametrize("path", list(CASES))
def test_both_ways_open_the_same(way: str, top: int, path: str, links: Links) -> None:
    wanted = CASES[path][list(Links).index(links)]
    if isinstance(wanted, str):
        with beneath.open_regular(top, path, links=links) as file:
            assert file.read() == wanted.encode()
        return
    with pytest.raises(wanted if isinstance(wanted, type) else OSError) as raised:
        beneath.open_regular(top, path, links=links)
    if isinstance(wanted, int):
        assert raised.value.errno == wanted


def test_an_absolute_link_to_the_directory_itself_is_followed(way: str, tree: Path, top: int) -> None:
    names = (str(tree), "/srv/other")
    with beneath.open_regular(top, "absolute", links=Links.BENEATH, known_as=names) as file:
        assert file.read() == b"deep"
    for path in ("far", "beside", "chroot", "machine"):
        with pytest.raises(LeadsOutside):
            beneath.open_regular(top, path, links=Links.BENEATH, known_as=names)
    with pytest.raises(OSError, match="symbolic links"):
        beneath.open_regular(top, "absolute", links=Links.REFUSED, known_as=names)


def test_a_directory_with_a_longer_name_is_another_one(way: str, tree: Path, top: int) -> None:
    other = tree.with_name("tree2")
    other.mkdir()
    (other / "file").write_text("outside")
    (tree / "longer").symlink_to(other / "file")
    with pytest.raises(LeadsOutside):
        beneath.open_regular(top, "longer", links=Links.BENEATH, known_as=(str(tree),))


def test_the_last_link_itself(way: str, top: int) -> None:
    for links in (Links.REFUSED, Links.BENEATH, Links.IN_ROOT, Links.ANYWHERE):
        found = beneath.open_beneath(top, "loop", os.O_PATH | os.O_NOFOLLOW, links=links)
        assert stat.S_ISLNK(os.fstat(found).st_mode)
        os.close(found)
    with pytest.raises(OSError, match="symbolic links"):
        beneath.open_beneath(top, "near", os.O_PATH)


def test_magic_links_are_never_followed() -> None:
    if not kernel_has_openat2():
        pytest.skip("this kernel has no openat2")
    with beneath.directory("/proc/self") as top:
        for links in Links:
            with pytest.raises(OSError, match="symbolic links"):
                beneath.open_beneath(top, "root/etc/passwd", os.O_PATH, links=links)


@pytest.mark.parametrize("links", list(Links))
def test_a_file_is_made(way: str, tree: Path, top: int, links: Links) -> None:
    old = os.umask(0o022)
    try:
        found = beneath.open_beneath(top, "a/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640, links=links)
    finally:
        os.umask(old)
    os.write(found, b"new")
    assert not os.get_inheritable(found)
    os.close(found)
    assert ((tree / "a/new").read_text(), (tree / "a/new").stat().st_mode & 0o777) == ("new", 0o640)


def test_a_file_is_never_made_through_a_link_that_is_refused(way: str, tree: Path, top: int) -> None:
    (tree / "new").symlink_to("../outside/new")
    for links in (Links.REFUSED, Links.BENEATH):
        with pytest.raises(OSError):
            beneath.open_beneath(top, "new", os.O_WRONLY | os.O_CREAT, links=links)
    assert not (tree.parent / "outside/new").exists()


def test_directories_are_made(way: str, tree: Path, top: int) -> None:
    beneath.make_directories(top, "x/y/z")
    beneath.make_directories(top, "x/y/z")
    assert (tree / "x/y/z").is_dir()
    assert (tree / "x").stat().st_mode & 0o777 == 0o700
    with pytest.raises(NotADirectoryError):
        beneath.make_directories(top, "file/x")
    with pytest.raises(OSError, match="symbolic links"):
        beneath.make_directories(top, "near/x")
    beneath.make_directories(top, "near/x", links=Links.BENEATH)
    assert (tree / "a/b/x").is_dir()
    (tree / "away").symlink_to(tree.parent / "outside")
    for path in ("away/x", "../x", "gone"):
        with pytest.raises(OSError):
            beneath.make_directories(top, path, links=Links.BENEATH)
    assert sorted(path.name for path in (tree.parent / "outside").iterdir()) == ["file"]


def test_the_parent_of_a_path(way: str, tree: Path, top: int) -> None:
    with beneath.parent(top, "a/b/file") as (directory, name):
        assert ([path.name for path in Path(f"/proc/self/fd/{directory}").iterdir()], name) == (["file"], "file")
        os.unlink(name, dir_fd=directory)
    assert not (tree / "a/b/file").exists()
    for path in ("", ".", ".."):
        with pytest.raises(LeadsOutside), beneath.parent(top, path, links=Links.BENEATH):
            pass


def test_no_descriptor_stays_open(way: str, top: int) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in CASES:
        for links in Links:
            try:
                beneath.open_regular(top, path, links=links).close()
            except (OSError, ValueError):
                continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_directory_beneath_a_directory(way: str, top: int) -> None:
    with beneath.directory("a", within=top) as inner, beneath.open_regular(inner, "b/file") as file:
        assert file.read() == b"deep"
    with pytest.raises(NotADirectoryError), beneath.directory("file", within=top):
        pass

"""The file and archive modules' functions that no state needs: devices, offsets, old copies, programs of the host, find."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CallFailed, CommandError, InvocationError
from tests.statecore.conftest import PlainMinion

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices and gives files away")


@pytest.fixture
def host(plain: PlainMinion) -> PlainMinion:
    """The minion, with things on its host."""
    for name, text in {"d/a.txt": "alpha\nbeta\n", "d/B.LOG": "x" * 2000, "d/sub/c.txt": "", "d/sub/e.gz": "z"}.items():
        path = plain.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
    (plain.root / "d/link").symlink_to("/d/a.txt")
    (plain.root / "d/hard").hardlink_to(plain.root / "d/sub/e.gz")
    (plain.root / "etc").mkdir()
    (plain.root / "etc/passwd").write_text(f"me:x:{os.geteuid()}:{os.getegid()}::/:/bin/sh\n")
    (plain.root / "etc/group").write_text(f"us:x:{os.getegid()}:\n")
    os.utime(plain.root / "d/sub/c.txt", (0, 0))
    return plain


#: Arguments of file.find below /d -> what is found.
_FOUND: list[tuple[dict[str, Any], list[Any]]] = [
    ({"name": "*.txt"}, ["/d/a.txt", "/d/sub/c.txt"]),
    ({"iname": "*.log"}, ["/d/B.LOG"]),
    ({"name": "*.{txt,gz}", "mindepth": 2}, ["/d/sub/c.txt", "/d/sub/e.gz"]),
    ({"regex": r"[a-c]\.txt"}, ["/d/a.txt", "/d/sub/c.txt"]),
    ({"iregex": r"b\."}, ["/d/B.LOG"]),
    ({"type": "d"}, ["/d", "/d/sub"]),
    ({"type": "l"}, ["/d/link"]),
    ({"type": "f", "maxdepth": 1, "name": "[al]*"}, ["/d/a.txt", "/d/link"]),
    ({"size": "+1k", "type": "f"}, ["/d/B.LOG"]),
    ({"size": "0", "type": "f"}, ["/d/sub/c.txt"]),
    ({"size": "-1", "type": "f"}, ["/d/hard", "/d/sub/c.txt", "/d/sub/e.gz"]),
    ({"mtime": "+1w 1d"}, ["/d/sub/c.txt"]),
    ({"mtime": "-1h", "name": "*.txt"}, ["/d/a.txt"]),
    ({"grep": "^beta", "name": "*.txt"}, ["/d/a.txt"]),
    ({"owner": "me", "name": "B*"}, ["/d/B.LOG"]),
    ({"group": "us, 99999", "name": "B*"}, ["/d/B.LOG"]),
    ({"owner": "99999"}, []),
    ({"name": "a.txt", "print": "name,size,type,mode,user"}, [["a.txt", 11, "f", 0o644, "me"]]),
    ({"name": "a.txt", "print": "md5"}, ["24d9f2d27f6ca92bb09dfea0e9a58b3f"]),
    ({"name": "*.txt", "maxdepth": 0}, []),
    ({"name": "*.txt", "delete": "f", "test": True}, ["/d/a.txt", "/d/sub/c.txt"]),
]


@pytest.mark.parametrize(("args", "found"), _FOUND)
def test_find(args: dict[str, Any], found: list[Any], host: PlainMinion) -> None:
    answer = host.call("file.find", "/d", **args)
    if args.get("print") == "md5":
        assert len(answer) == 1
        assert len(answer[0]) == 32
    else:
        assert answer == found
    assert (host.root / "d/sub/c.txt").exists()


def test_find_deletes(host: PlainMinion) -> None:
    assert host.call("file.find", "/d", "delete", name="*.txt") == ["/d/a.txt", "/d/sub/c.txt"]
    assert sorted(path.name for path in (host.root / "d").rglob("*")) == ["B.LOG", "e.gz", "hard", "link", "sub"]
    assert host.call("file.find", "/d/s*", delete="d") == ["/d/sub"]
    assert not (host.root / "d/sub").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"nmae": "x"}, "invalid option 'nmae'; there are name, iname"),
        ({"size": "big"}, "invalid size: 'big'"),
        ({"mtime": "soon"}, "invalid time interval: 'soon'"),
        ({"regex": "("}, "invalid regular expression"),
        ({"owner": "nobody"}, "nobody"),
        ({"print": "colour"}, "print must be of group, md5"),
        ({"delete": "x"}, "not 'x'"),
    ],
)
def test_find_refuses(args: dict[str, Any], says: str, host: PlainMinion) -> None:
    with pytest.raises(CallFailed, match=says.replace("(", r"\(")) as failed:
        host.call("file.find", "/d", **args)
    assert failed.value.value == f"error: {failed.value}"


#: Function, arguments -> answer.
_ANSWERS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("uid_to_user", (os.geteuid(),), "me"),
    ("uid_to_user", (4321,), "4321"),
    ("user_to_uid", ("me",), os.geteuid()),
    ("user_to_uid", ("none",), ""),
    ("gid_to_group", ("us",), "us"),
    ("gid_to_group", (os.getegid(),), "us"),
    ("gid_to_group", ("none",), ""),
    ("group_to_gid", ("us",), os.getegid()),
    ("group_to_gid", (None,), ""),
    ("normpath", ("/a/../b//c",), "/b/c"),
    ("pardir", (), ".."),
    ("is_hardlink", ("/d/hard",), True),
    ("is_hardlink", ("/d/a.txt",), False),
    ("is_hardlink", ("/none",), False),
    ("is_fifo", ("/d/a.txt",), False),
    ("is_chrdev", ("/none",), False),
    ("get_devmm", ("/d/a.txt",), (0, 0)),
    ("diskusage", ("/d/a.txt",), 11),
    ("diskusage", ("/d",), 11 + 2000 + 1 + 8),
    ("seek_read", ("/d/a.txt", 4, 6), b"beta"),
    ("contains_glob", ("/d/a.txt", "*beta*"), True),
    ("contains_glob", ("/none", "*"), False),
    ("sed", ("/none", "a", "b"), False),
    ("sed_contains", ("/none", "a"), False),
    ("lsattr", ("/d/a.txt",), None),
    ("list_backups", ("/d/a.txt",), {}),
    ("get_diff", ("/d/a.txt", "/d/a.txt"), ""),
]


@pytest.mark.parametrize(("name", "args", "answer"), _ANSWERS)
def test_answers(name: str, args: tuple[Any, ...], answer: Any, host: PlainMinion) -> None:
    assert host.call(f"file.{name}", *args) == answer


def test_a_file_system_has_numbers(host: PlainMinion) -> None:
    told = host.call("file.statvfs", "/d")
    assert told["f_bsize"] > 0
    assert set(told) >= {"f_bavail", "f_files", "f_namemax"}


def test_offsets(host: PlainMinion) -> None:
    assert host.call("file.seek_write", "/d/a.txt", "BETA", 6) == 4
    assert host.call("file.truncate", "/d/a.txt", 10) is None
    assert (host.root / "d/a.txt").read_text() == "alpha\nBETA"
    with pytest.raises(CommandError, match="/none"):
        host.call("file.truncate", "/none", 1)


def test_names_and_places(host: PlainMinion) -> None:
    assert host.call("file.link", "/d/a.txt", "/d/second") is True
    assert (host.root / "d/second").samefile(host.root / "d/a.txt")
    assert host.call("file.move", "/d/second", "/d/sub")["result"] is True
    assert (host.root / "d/sub/second").is_file()
    assert host.call("file.move", "/d/sub/second", "/d/third", disallow_copy_and_unlink=True) is True
    assert host.call("file.symlink", "/d/x", "/d/third", atomic=True) is True
    assert str((host.root / "d/third").readlink()) == "/d/x"
    with pytest.raises(CommandError, match="Could not create '/d/sub'"):
        host.call("file.symlink", "/d/x", "/d/sub", atomic=True)
    assert (host.root / "d/sub/c.txt").exists()
    with pytest.raises(CommandError, match="Unable to move '/none' to '/d/y'"):
        host.call("file.move", "/none", "/d/y")


def test_pipes(host: PlainMinion) -> None:
    told = host.call("file.mknod", "/new/p", "p", mode="0640")
    assert (told["result"], told["changes"]) == (True, {"new": "Fifo pipe /new/p created."})
    assert host.call("file.is_fifo", "/new/p") is True
    assert stat.S_IMODE((host.root / "new/p").stat().st_mode) == 0o640
    assert host.call("file.mknod_fifo", "/new/p")["comment"] == "File /new/p exists and cannot be overwritten"
    told = host.context(test=True).call("file.mknod_fifo", "/new/q")
    assert told["result"] is None
    assert not (host.root / "new/q").exists()
    with pytest.raises(InvocationError, match="Node type unavailable: 'x'"):
        host.call("file.mknod", "/new/x", "x")


@AS_ROOT
def test_devices_and_owners(host: PlainMinion) -> None:
    if host.call("file.mknod_chrdev", "/null", 1, 3)["result"]:
        assert host.call("file.is_chrdev", "/null") is True
        assert host.call("file.get_devmm", "/null") == (1, 3)
    assert host.call("file.lchown", "/d/link", 65534, 65534) is None
    assert (host.root / "d/link").lstat().st_uid == 65534
    assert (host.root / "d/a.txt").stat().st_uid == 0
    assert host.call("file.lchown", "/none", 1, 1) == "File not found"
    host.call("file.makedirs_perms", "/p/q", 65534, 65534, "0711")
    assert (host.root / "p").stat().st_uid == 65534
    with pytest.raises(CommandError, match="/p/q exists"):
        host.call("file.makedirs_perms", "/p/q")


def test_check_perms(host: PlainMinion) -> None:
    told, was = host.context(test=True).call("file.check_perms", "/d/a.txt", None, "me", None, "0600")
    assert told["changes"] == {"mode": "0600"}
    assert was == {"luser": "me", "lgroup": "us", "lmode": "0644"}
    given = {"name": "x", "changes": {"diff": "y"}, "comment": "so far", "result": True}
    told, _ = host.call("file.check_perms", "/d/a.txt", given, None, None, "0600")
    assert told == {"name": "x", "changes": {"diff": "y", "mode": "0600"}, "comment": "so far", "result": True}
    told, _ = host.call("file.check_perms", "/d/a.txt", None, None, None, None, attrs="i")
    assert told["result"] is False
    assert "no program lsattr" in told["comment"]
    assert host.call("file.check_perms", "/d/a.txt", None, None, None, "600")[0]["changes"] == {}


@pytest.mark.parametrize(
    ("option", "given", "kept"),
    [("minion", "", 1), ("both", "", 1), ("minion", "master", 0), ("", "", 0), ("", "minion", 1)],
)
def test_the_minion_says_what_is_kept_where_the_state_does_not(
    host: PlainMinion, option: str, given: str, kept: int
) -> None:
    host.opts["backup_mode"] = option
    assert host.state("file.managed", name="/d/a.txt", contents="one", backup=given)["result"] is True
    assert len(host.call("file.list_backups", "/d/a.txt")) == kept


def test_old_copies(host: PlainMinion) -> None:
    for text in ("one", "two", "three"):
        assert host.state("file.managed", name="/d/a.txt", contents=text, backup="minion")["result"] is True
    kept = host.call("file.list_backups", "/d/a.txt")
    assert [Path(kept[number]["Location"]).read_text() for number in kept] == ["two\n", "one\n", "alpha\nbeta\n"]
    assert kept[0]["Size"] == 4
    time.strptime(kept[0]["Backup Time"], "%a %b %d %Y %H:%M:%S.%f")
    assert len(host.call("file.list_backups", "/d/a.txt", 2)) == 2
    assert host.call("file.list_backups_dir", "/d/") == {"a.txt": kept}
    assert host.call("file.restore_backup", "/d/a.txt", 1)["result"] is True
    assert (host.root / "d/a.txt").read_text() == "one\n"
    # What was there is kept, too.
    assert len(host.call("file.list_backup", "/d/a.txt")) == 4
    assert host.call("file.delete_backup", "/d/a.txt", 3)["result"] is True
    assert len(host.call("file.list_backups", "/d/a.txt")) == 3
    assert host.call("file.remove_backup", "/d/a.txt", 7)["comment"] == "backup_id '7' does not exist for /d/a.txt"
    assert host.call("file.restore_backup", "/d/a.txt", "x")["comment"] == "Invalid backup_id 'x'"


def test_psed(host: PlainMinion) -> None:
    host.call("file.psed", "/d/a.txt", "a$", "!", flags="gM")
    assert (host.root / "d/a.txt").read_text() == "alph!\nbet!\n"
    assert (host.root / "d/a.txt.bak").read_text() == "alpha\nbeta\n"
    with pytest.raises(InvocationError, match="flags are letters of"):
        host.call("file.psed", "/d/a.txt", "a", "b", flags="q")


def test_differences(host: PlainMinion) -> None:
    host.write("a.txt", "beta\nalpha\n")
    told = host.call("file.get_diff", "/d/a.txt", "salt://a.txt", ignore_ordering=True)
    assert told[0] is False
    assert told[1].startswith("--- /d/a.txt\n+++ salt://a.txt\n")
    assert host.call("file.get_diff", "/d/a.txt", "salt://a.txt", show_changes=False) == "<show_changes=False>"
    with pytest.raises(CommandError, match=r"salt://none not found"):
        host.call("file.get_diff", "/d/a.txt", "salt://none")


@pytest.fixture
def here(tmp_path: Path) -> PlainMinion:
    """A minion whose programs run on this machine; its files are below its directory."""
    minion = PlainMinion(tmp_path)
    (tmp_path / "f").write_text("alpha\n/beta/\n")
    return minion


def _call(minion: PlainMinion, name: str, *args: Any, **kwargs: Any) -> Any:
    return minion.context(host=Host("/")).call(name, *args, **kwargs)


@pytest.mark.skipif(shutil.which("sed") is None or shutil.which("patch") is None, reason="no programs")
def test_programs_of_the_host(here: PlainMinion) -> None:
    place = here.directory / "f"
    assert _call(here, "file.sed", str(place), "/beta/", "x.y", backup="")["retcode"] == 0
    assert place.read_text() == "alpha\nx.y\n"
    assert _call(here, "file.sed", str(place), "x.y", "z", escape_all=True, limit="x")["retcode"] == 0
    assert place.read_text() == "alpha\nz\n"
    assert (here.directory / "f.bak").read_text() == "alpha\nx.y\n"
    assert _call(here, "file.sed_contains", str(place), "^al.ha$") is True
    assert _call(here, "file.sed_contains", str(place), "nothing") is False
    told = _call(here, "file.grep", f"{here.directory}/f*", "alpha", "-l")
    assert told["stdout"].splitlines() == [str(place), f"{place}.bak"]
    with pytest.raises(InvocationError, match="grep takes one option in each argument, not -i -v"):
        _call(here, "file.grep", str(place), "a", "-i -v")
    (here.directory / "p").write_text("--- f\n+++ f\n@@ -1,2 +1,2 @@\n-alpha\n+omega\n z\n")
    assert _call(here, "file.patch", str(place), f"{here.directory}/p", dry_run=True)["retcode"] == 0
    assert place.read_text() == "alpha\nz\n"
    assert _call(here, "file.patch", str(here.directory), f"{here.directory}/p")["retcode"] == 0
    assert place.read_text() == "omega\nz\n"


def test_a_program_that_is_not_there_is_named(host: PlainMinion) -> None:
    with pytest.raises(CommandError, match="grep executable not found"):
        host.call("file.grep", "/d/a.txt", "x")


def test_what_processes_have_open(here: PlainMinion) -> None:
    place = here.directory / "f"
    with place.open():
        assert os.getpid() in _call(here, "file.open_files")[str(place)]
        assert str(place) in _call(here, "file.open_files", by_pid=True)[os.getpid()]
    assert str(place) not in _call(here, "file.open_files")


def test_packing(here: PlainMinion) -> None:
    top = here.directory
    (top / "t/sub").mkdir(parents=True)
    (top / "t/sub/x").write_text("x")
    (top / "t/y.txt").write_text("y")
    assert _call(here, "archive.zip", f"{top}/a.zip", "t", cwd=str(top)) == ["t/", "t/sub/", "t/sub/x", "t/y.txt"]
    with zipfile.ZipFile(top / "a.zip") as made:
        assert made.read("t/y.txt") == b"y"
    assert _call(here, "archive.unzip", f"{top}/a.zip", f"{top}/out", excludes="*.txt", trim_output=2) == [
        "t/",
        "t/sub/",
    ]
    assert not (top / "out/t/y.txt").exists()
    assert (top / "out/t/sub/x").read_text() == "x"
    with pytest.raises(CommandError, match="Relative paths require the 'cwd' parameter: t"):
        _call(here, "archive.zip", f"{top}/b.zip", "t")
    with pytest.raises(CommandError, match="/none does not exist"):
        _call(here, "archive.zip", f"{top}/b.zip", "/none")
    assert not (top / "b.zip").exists()
    with pytest.raises(CommandError, match=r"not supported: runas of archive\.unzip; archive\.cmd_unzip takes them"):
        _call(here, "archive.unzip", f"{top}/a.zip", f"{top}/out", runas="nobody")


@pytest.mark.skipif(shutil.which("gzip") is None or shutil.which("tar") is None, reason="no programs")
def test_packing_by_programs(here: PlainMinion) -> None:
    top = here.directory
    assert _call(here, "archive.gzip", f"{top}/f", options="-9 -k") == []
    assert gzip.decompress((top / "f.gz").read_bytes()) == (top / "f").read_bytes()
    (top / "f").unlink()
    assert _call(here, "archive.gunzip", f"{top}/f.gz") == []
    assert (top / "f").read_text() == "alpha\n/beta/\n"
    assert _call(here, "archive.tar", "-czf", f"{top}/a.tgz", "f*", cwd=str(top)) == []
    assert _call(here, "archive.list", f"{top}/a.tgz") == ["f"]
    with pytest.raises(CommandError, match="none"):
        _call(here, "archive.gunzip", f"{top}/none.gz")

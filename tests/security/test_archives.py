"""Attack: an archive whose members try to write, or to have something removed, outside of the directory of the extraction."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError
from statecore.system.hostfiles import archives
from tests.statecore.conftest import PlainMinion

#: Kind of a member ("file", "dir", "link", "hard"), its name, and its content or the path that it links to.
Member = tuple[str, str, str]

_DEEP = "/".join(["d" * 240] * 16)


def _chain(depth: int) -> list[Member]:
    """Return archive members: nested directories with long names, a short link to each, and a link that leads outside.

    The path that the links spell is longer than PATH_MAX: realpath gives up, but the kernel follows one link after another.
    """
    members: list[Member] = []
    at = ""
    for letter in "abcdefghijklmnop"[:depth]:
        members += [("dir", f"{at}{letter * 247}", ""), ("link", f"{at}{letter}", letter * 247)]
        at += f"{letter}/"
    top = "/".join("abcdefghijklmnop"[:depth])
    members.append(("link", f"{top}/{'l' * 254}", "/".join([".."] * depth)))
    members.append(("link", "escape", f"{top}/{'l' * 254}/../../outside"))
    return members


ATTACKS: dict[str, list[Member]] = {
    "a name with ..": [("file", "../outside/x", "x")],
    "a name with .. behind a directory": [("file", "a/../../outside/x", "x")],
    "a name of many ..": [("file", "a/b/../../../outside/x", "x")],
    "a link to a directory outside": [("link", "l", "../outside"), ("file", "l/x", "x")],
    "an absolute link": [("link", "l", "OUTSIDE"), ("file", "l/x", "x")],
    "a link to a link that leads outside": [("link", "k", "l"), ("link", "l", "../outside"), ("file", "k/x", "x")],
    "a link that a later link turns outside": [
        ("dir", "a/b", ""),
        ("link", "k", "x/y/../../outside"),
        ("link", "x", "a"),
        ("link", "a/y", "."),
        ("file", "k/x", "x"),
    ],
    "a link over a name that is made later": [
        ("link", "k", "x/y/.."),
        ("link", "x", "."),
        ("link", "y", "."),
        ("file", "k/../outside/x", "x"),
        ("file", "k/outside/x", "x"),
        ("link", "m", "k/../outside"),
        ("file", "m/x", "x"),
    ],
    "a chain of links longer than PATH_MAX": [*_chain(16), ("file", "escape/x", "x")],
    "a chain of links longer than PATH_MAX to a file": [
        *_chain(16),
        ("link", "f", "escape/victim"),
        ("file", "f", "x"),
    ],
    "a hard link to a file outside": [("hard", "h", "../outside/victim"), ("file", "h", "x")],
    "a hard link through a link": [("link", "l", "../outside"), ("hard", "h", "l/victim"), ("file", "h", "x")],
    "a hard link through a long chain": [*_chain(16), ("hard", "h", "escape/victim")],
    "a directory through a link": [("link", "l", "../outside"), ("dir", "l/made", "")],
    "a link whose text has no end": [("link", "l", "a/" * 3000 + "../" * 3001 + "outside"), ("file", "l/x", "x")],
    "a deep name behind a link": [
        ("dir", _DEEP, ""),
        ("link", f"{_DEEP}/l", "../" * 17 + "outside"),
        ("file", f"{_DEEP}/l/x", "x"),
    ],
}


def _tar(path: Path, members: list[Member]) -> None:
    kinds = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}
    with tarfile.open(path, "w") as archive:
        for kind, name, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kinds[kind], 0o755
            member.linkname = content if kind in ("link", "hard") else ""
            member.size = len(content) if kind == "file" else 0
            archive.addfile(member, io.BytesIO(content.encode()) if kind == "file" else None)


def _zip(path: Path, members: list[Member]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for kind, name, content in members:
            info = zipfile.ZipInfo(f"{name}/" if kind == "dir" else name)
            bits = {"file": stat.S_IFREG, "dir": stat.S_IFDIR, "link": stat.S_IFLNK}[kind] | 0o755
            info.external_attr = bits << 16
            archive.writestr(info, content)


WRITERS: dict[str, Callable[[Path, list[Member]], None]] = {"tar": _tar, "zip": _zip}

CASES = [
    pytest.param(form, members, id=f"{form}: {name}")
    for form in WRITERS
    for name, members in ATTACKS.items()
    if form == "tar" or not any(kind == "hard" for kind, _, _ in members)
]


def _outside(top: Path) -> dict[str, object]:
    """Return {path: (content, number of links) or mode} of all files in ``top`` outside the directory of the extraction."""
    return {
        str(path.relative_to(top)): (path.read_text(), path.stat().st_nlink) if path.is_file() else path.stat().st_mode
        for path in sorted(top.rglob("*"))
        if not path.is_relative_to(top / "srv/target") and path.name != "archive"
    }


def _links_that_leave(top: Path) -> list[str]:
    """Return the paths of the links below ``top`` that lead to a file outside ``top`` when the kernel follows them."""
    leaving = []
    for place, directories, files, way in os.fwalk(top):
        for name in (*directories, *files):
            try:
                descriptor = os.open(name, os.O_PATH, dir_fd=way)
            except OSError:
                continue  # A link to nothing leads nowhere.
            led_to = Path(f"/proc/self/fd/{descriptor}").readlink()
            os.close(descriptor)
            if not led_to.is_relative_to(top.resolve()):
                leaving.append(f"{place}/{name}"[-80:])
    return leaving


@pytest.mark.parametrize("mounted", [False, True], ids=["this machine", "a mounted host"])
@pytest.mark.parametrize(("form", "members"), CASES)
def test_no_member_leaves_the_target(tmp_path: Path, form: str, members: list[Member], mounted: bool) -> None:
    (tmp_path / "srv/outside").mkdir(parents=True)
    (tmp_path / "srv/outside/victim").write_text("untouched")
    (tmp_path / "outside").mkdir()
    (tmp_path / "srv/target").mkdir()
    archive = tmp_path / "archive"
    absolute = "/srv/outside" if mounted else str(tmp_path / "srv/outside")
    WRITERS[form](archive, [(kind, name, content.replace("OUTSIDE", absolute)) for kind, name, content in members])
    before = _outside(tmp_path)
    target = Host(tmp_path).path("/srv/target") if mounted else tmp_path / "srv/target"
    try:
        archives.extract(archive, form, target)
    except CommandError:
        pass
    else:
        # An extraction that made no link to the outside refused the attack, too.
        assert _links_that_leave(tmp_path / "srv/target") == []
    assert _outside(tmp_path) == before


@pytest.mark.parametrize("args", [{"clean": True}, {"force": True}, {"overwrite": True}], ids=str)
@pytest.mark.parametrize("name", ["../outside/x", "a/../../outside/x", "../outside"])
def test_no_name_has_anything_removed_outside(plain: PlainMinion, name: str, args: dict[str, object]) -> None:
    """``clean`` and ``force`` remove paths by the names of the archive."""
    (plain.root / "srv/outside/x").mkdir(parents=True)
    (plain.root / "srv/outside/x/victim").write_text("untouched")
    (plain.root / "srv/target").mkdir()
    _tar(plain.tree / "a.tar", [("file", name, "x")])
    state = plain.state(
        "archive.extracted", name="/srv/target", source="salt://a.tar", skip_verify=True, enforce_toplevel=False, **args
    )
    assert state["result"] is False
    assert "outside of /srv/target" in state["comment"]
    assert (plain.root / "srv/outside/x/victim").read_text() == "untouched"

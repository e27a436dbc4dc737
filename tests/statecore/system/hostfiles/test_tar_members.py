"""Members of tar archives that may be extracted, compared with Python's own filter if this Python has one."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from statecore.system.hostfiles.archives import admitted, renamed

#: type, name, name of what it links to, mode
Member = tuple[bytes, str, str, int]

ADMITTED: list[tuple[Member, tuple[str, int | None]]] = [
    ((tarfile.REGTYPE, "a/b", "", 0o644), ("a/b", 0o644)),
    ((tarfile.REGTYPE, "/etc/x", "", 0o7777), ("etc/x", 0o755)),
    ((tarfile.REGTYPE, "a", "", 0o011), ("a", 0o600)),
    ((tarfile.REGTYPE, "a/../b", "", 0o666), ("a/../b", 0o644)),
    ((tarfile.DIRTYPE, "d", "", 0o777), ("d", None)),
    ((tarfile.DIRTYPE, ".", "", 0o755), (".", None)),
    ((tarfile.SYMTYPE, "d/s", "../a", 0o777), ("d/s", None)),
    ((tarfile.LNKTYPE, "d/h", "a", 0o500), ("d/h", 0o700)),
    ((tarfile.REGTYPE, "inside/x", "", 0o644), ("inside/x", 0o644)),
]

REFUSED: list[tuple[Member, str]] = [
    ((tarfile.REGTYPE, "../x", "", 0o644), "'../x' would be extracted to '.*x', which is outside the destination"),
    ((tarfile.REGTYPE, "outside/x", "", 0o644), "'outside/x' would be extracted to"),
    ((tarfile.REGTYPE, "a/../../x", "", 0o644), "would be extracted to"),
    ((tarfile.SYMTYPE, "s", "/etc/passwd", 0o777), "'s' is a link to an absolute path"),
    ((tarfile.SYMTYPE, "d/s", "../../x", 0o777), "'d/s' would link to '.*x', which is outside the destination"),
    ((tarfile.LNKTYPE, "h", "../x", 0o644), "'h' would link to"),
    ((tarfile.LNKTYPE, "h", "/etc/passwd", 0o644), "'h' is a link to an absolute path"),
    ((tarfile.FIFOTYPE, "f", "", 0o644), "'f' is a special file"),
    ((tarfile.CHRTYPE, "c", "", 0o644), "'c' is a special file"),
    ((tarfile.BLKTYPE, "b", "", 0o644), "'b' is a special file"),
]


def member_of(member: Member) -> tarfile.TarInfo:
    made = tarfile.TarInfo(member[1])
    made.type, made.linkname, made.mode = member[0], member[2], member[3]
    return made


@pytest.fixture
def target(tmp_path: Path) -> str:
    place = tmp_path / "target"
    (place / "real").mkdir(parents=True)
    (place / "inside").symlink_to("real")
    (place / "outside").symlink_to("..")
    return str(place)


@pytest.mark.parametrize(("member", "expected"), ADMITTED, ids=str)
def test_what_is_admitted(target: str, member: Member, expected: tuple[str, int | None]) -> None:
    given = member_of(member)
    made = admitted(given, target)
    assert (made.name, made.mode) == expected
    assert (given.name, given.mode) == (member[1], member[3]), "the archive's own is left alone"


@pytest.mark.parametrize(("member", "why"), REFUSED, ids=str)
def test_what_is_refused(target: str, member: Member, why: str) -> None:
    with pytest.raises(tarfile.TarError, match=why):
        admitted(member_of(member), target)


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="this Python has no filter to compare with")
@pytest.mark.parametrize("member", [*(row[0] for row in ADMITTED), *(row[0] for row in REFUSED)], ids=str)
def test_as_python_has_it(target: str, member: Member) -> None:
    def told(does: object) -> tuple[object, ...]:
        try:
            made = does(member_of(member), target)  # type: ignore[operator]
        except tarfile.TarError as error:
            return (str(error),)
        return made.name, made.mode, made.type, made.linkname

    assert told(admitted) == told(tarfile.data_filter)


def test_another_name() -> None:
    given = member_of((tarfile.LNKTYPE, "a/b", "a/c", 0o644))
    made = renamed(given, "b", "c")
    assert (made.name, made.linkname, given.name, given.linkname) == ("b", "c", "a/b", "a/c")

"""Archives (tar, zip): list, extract and pack.

A member that would be written outside the target directory (``..``, an absolute name, a link that leads outside) is
refused before anything is written. Members are then written through ``rooted_path.confined``: each path is walked by
descriptors from the target, so that a link that an earlier member made, however long its chain, cannot lead outside.
"""

from __future__ import annotations

import contextlib
import copy
import lzma
import os
import posixpath
import shutil
import stat
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from statecore.host.content import atomic_file
from statecore.host.rooted_path import RootedPath, confined, located
from statecore.model.errors import CommandError

#: Errors of Python's readers for a malformed archive. Their documentation names only some of them.
_MALFORMED = (
    *(OSError, RuntimeError, ValueError, LookupError, OverflowError, EOFError),
    *(tarfile.TarError, zipfile.BadZipFile, struct.error, zlib.error, lzma.LZMAError),
)

#: Bytes of a path's text that Linux accepts, with the final null byte.
_PATH_MAX = 4096

#: Format -> file name endings.
_ENDINGS = {
    "tar": (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz", ".tar.lzma", ".tlz"),
    "zip": (".zip", ".jar", ".war"),
    "rar": (".rar",),
}


@dataclass(frozen=True, slots=True)
class Contents:
    """Sorted names of the members of an archive (tar or zip): directories, files and links. Names of directories end
    with a slash.
    """

    dirs: tuple[str, ...]
    files: tuple[str, ...]
    links: tuple[str, ...]

    @property
    def top_dirs(self) -> tuple[str, ...]:
        """Names of the directories at the top level of the archive, including those that other names imply."""
        names = (name.lstrip("/") for name in (*self.dirs, *self.files, *self.links))
        return tuple(sorted({f"{name.split('/', 1)[0]}/" for name in names if "/" in name}))

    @property
    def top_files(self) -> tuple[str, ...]:
        """Names of the files at the top level of the archive."""
        return tuple(name for name in self.files if "/" not in name)

    @property
    def top_links(self) -> tuple[str, ...]:
        """Names of the symbolic links at the top level of the archive."""
        return tuple(name for name in self.links if "/" not in name)

    @property
    def outside(self) -> tuple[str, ...]:
        """Names of members that lead out of the target directory by ``..``. ``extract`` refuses them."""
        return tuple(name for name in (*self.dirs, *self.files, *self.links) if _leaves(name))


def guess(name: str) -> str | None:
    """Return the archive format ("tar", "zip" or "rar") that the ending of a file name indicates, or None."""
    lower = name.lower()
    return next((form for form, endings in _ENDINGS.items() if lower.endswith(endings)), None)


def contents(path: Path, form: str, strip: int = 0) -> Contents:
    """Return the names of an archive's members without their first ``strip`` components. Raises CommandError if the
    archive cannot be read.
    """
    kinds: dict[str, set[str]] = {"dir": set(), "file": set(), "link": set()}
    for name, kind in _zip_names(path) if form == "zip" else _tar_names(path):
        bare = name.rstrip("/")
        short = bare.split("/", strip)[strip] if bare.count("/") >= strip else ""
        if short:
            kinds[kind].add(f"{short}/" if kind == "dir" else short)
        if form == "zip" and "/" in bare:
            # Zip archives need not list directories.
            parent = short.rpartition("/")[0]
            kinds["dir"] |= {f"{parent}/"} if parent else set()
    return Contents(*(tuple(sorted(kinds[kind])) for kind in ("dir", "file", "link")))


def extract(
    path: Path,
    form: str,
    target: Path,
    *,
    strip: int = 0,
    password: str | None = None,
    modes: bool = True,
    wanted: Callable[[str], bool] = lambda name: True,
) -> list[str]:
    """Extract an archive into the directory ``target``. Return the names of the extracted members in the archive's
    order. Raise CommandError if the archive is malformed, or if a member cannot be extracted.

    ``wanted`` selects names, for zip archives only.
    """
    try:
        with confined(target) as inside:
            try:
                if form == "zip":
                    return _unzip(path, target, inside, password, modes=modes, wanted=wanted)
                return _untar(path, target, inside, strip)
            except OSError as error:
                # The path of a confined directory names a descriptor. The reader wants the directory's own name.
                if isinstance(error.filename, str):
                    error.filename = error.filename.replace(str(inside), str(target), 1)
                raise
    except _MALFORMED as error:
        raise CommandError(f"{path.name} cannot be extracted: {error}") from error


def pack(path: Path, members: Mapping[str, Path], *, large: bool = False) -> list[str]:
    """Write a zip archive of the files and directories in ``members`` (name in the archive: path).

    Return the names in the archive. Raise CommandError if a file cannot be read or the archive cannot be written; no
    archive is then left.
    """
    names = []
    try:
        with (
            atomic_file.replacement(path) as aside,
            aside.open("xb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=large) as archive,
        ):
            for name, place in _packed(members):
                info = zipfile.ZipInfo(
                    f"{name}/" if place.is_dir() else name, time.localtime(place.stat().st_mtime)[:6]
                )
                info.external_attr = place.stat().st_mode << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                names.append(info.filename)
                if place.is_dir():
                    archive.writestr(info, b"")
                    continue
                with place.open("rb") as source, archive.open(info, "w", force_zip64=large) as made:
                    shutil.copyfileobj(source, made)
    except (OSError, RuntimeError, ValueError, zipfile.LargeZipFile) as error:
        raise CommandError(f"{path.name} cannot be made: {error}") from error
    return names


def _packed(members: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    for name, place in members.items():
        yield name, place
        if place.is_dir():
            yield from _packed({f"{name.rstrip('/')}/{each.name}": each for each in sorted(place.iterdir())})


def encrypted(path: Path) -> bool:
    """Return True if a zip archive needs a password."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return any(member.flag_bits & 1 for member in archive.infolist())
    except _MALFORMED:
        return False


def _tar_names(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file) as archive:
            for member in archive:
                yield member.name, "link" if member.issym() else "dir" if member.isdir() else "file"
    except _MALFORMED as error:
        raise CommandError(f"Unable to list contents of {path.name}: {error}") from error


def _zip_names(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                mode = member.external_attr >> 16
                yield (
                    member.filename,
                    "link" if stat.S_ISLNK(mode) else "dir" if member.filename.endswith("/") else "file",
                )
    except _MALFORMED as error:
        raise CommandError(f"{path.name} is not a ZIP file: {error}") from error


def _untar(path: Path, target: Path, inside: RootedPath, strip: int) -> list[str]:
    with path.open("rb") as file, tarfile.open(fileobj=file) as archive:
        members = archive.getmembers()
        wanted = []
        for member in members:
            name = _stripped(member.name, strip)
            if name:
                link = _stripped(member.linkname, strip) if member.islnk() else member.linkname
                wanted.append(renamed(member, name, link))
        admissible = [admitted(member, str(target)) for member in wanted]
        for member in admissible:
            _extract_member(archive, member, inside)
        for member in reversed(admissible):
            # Modes are set last, deepest first, because a directory's mode may forbid writing into it.
            if member.isdir():
                _finish(member, inside / _normal(member.name))
        return [f"{each.name}/" if strip and each.isdir() else each.name for each in members]


def _extract_member(archive: tarfile.TarFile, member: tarfile.TarInfo, inside: RootedPath) -> None:
    """Extract one member of a tar archive below the directory ``inside``, replacing an existing file."""
    place = inside / _normal(member.name)
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        _link(place, member.linkname)
    elif member.islnk():
        with atomic_file.replacement(place) as aside:
            aside.hardlink_to(inside / _normal(member.linkname))
    else:
        source = archive.extractfile(member)
        if source is None:
            raise tarfile.ExtractError(f"'{member.name}' is not a regular file")
        with source, atomic_file.replacement(place) as aside:
            with aside.open("xb") as made:
                shutil.copyfileobj(source, made)
            _finish(member, aside)


def _link(place: Path, leads: str) -> None:
    """Make a symbolic link at a confined path, in place of an existing file or link.

    Raises PermissionError if the link leads outside of the directory.
    """
    # Without ``..`` behind a name, no later member can change where the link leads.
    text = _normal(leads)
    with contextlib.suppress(FileNotFoundError):
        (place.parent / text).lstat()
    with atomic_file.replacement(place) as aside:
        aside.symlink_to(text)


def _normal(name: str) -> str:
    return posixpath.normpath(name)


def _leaves(name: str) -> bool:
    normal = _normal(name.lstrip("/"))
    return normal == ".." or normal.startswith("../")


def _finish(member: tarfile.TarInfo, place: Path) -> None:
    if member.mode is not None:
        place.chmod(member.mode & 0o777)
    with located(place) as (name, way):
        os.utime(name, (member.mtime, member.mtime), dir_fd=way, follow_symlinks=False)


def _stripped(name: str, strip: int) -> str:
    return name.split("/", strip)[strip] if name.count("/") >= strip else ""


def _unzip(
    path: Path,
    target: Path,
    inside: RootedPath,
    password: str | None,
    *,
    modes: bool,
    wanted: Callable[[str], bool],
) -> list[str]:
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        if password:
            archive.setpassword(password.encode())
        members = [member for member in archive.infolist() if wanted(member.filename)]
        for member in members:
            _within(target, target / member.filename, member.filename)
        for member in members:
            place = inside / _normal(member.filename)
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                if member.file_size >= _PATH_MAX:
                    raise CommandError(
                        f"'{member.filename}' is a link to a path of {member.file_size} bytes: it is refused"
                    )
                leads = archive.read(member).decode()
                _within(target, target / posixpath.dirname(member.filename) / leads, member.filename)
                place.parent.mkdir(parents=True, exist_ok=True)
                _link(place, leads)
                continue
            bits = stat.S_IMODE(mode) & 0o777 if modes else 0
            if member.filename.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
                if bits:
                    place.chmod(bits)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file.replacement(place) as aside:
                with archive.open(member) as source, aside.open("xb") as made:
                    shutil.copyfileobj(source, made)
                if bits:
                    aside.chmod(bits)
        return [member.filename for member in members]


def _within(target: Path, place: Path, name: str) -> None:
    # An early refusal, before anything is written. Writes are confined to the target whatever this function finds.
    top = os.path.realpath(str(target))
    if os.path.commonpath((top, os.path.realpath(str(place)))) != top:
        raise CommandError(f"'{name}' would be extracted outside of the directory: it is refused")


def renamed(member: tarfile.TarInfo, name: str, linkname: str) -> tarfile.TarInfo:
    """Return a copy of a tar member with another name and link target."""
    made = copy.copy(member)
    made.name, made.linkname = name, linkname
    return made


def admitted(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo:
    """Return a copy of a tar member that may be extracted to ``target``: with a relative name, without owner, and
    without write permission for others.

    The ``mode`` of a directory or link is None: it is not changed. Raises tarfile.ExtractError for a member that would
    leave the target, or is not a file, directory or link.
    """
    root = os.path.realpath(target)
    made = copy.copy(member)
    made.name = member.name.lstrip("/")
    _inside(root, made.name, f"{member.name!r} would be extracted to")
    if not (member.isreg() or member.islnk() or member.isdir() or member.issym()):
        raise tarfile.ExtractError(f"{member.name!r} is a special file")
    if member.islnk() or member.issym():
        if member.linkname.startswith("/"):
            raise tarfile.ExtractError(f"{member.name!r} is a link to an absolute path")
        beside = made.name.rpartition("/")[0] if member.issym() else ""
        _inside(root, os.path.join(beside, member.linkname), f"{member.name!r} would link to")
    made.mode = None if member.isdir() or member.issym() else _mode(member.mode)  # type: ignore[assignment]
    return made


def _mode(mode: int) -> int:
    mode &= 0o755
    if not mode & 0o100:
        mode &= ~0o111
    return mode | 0o600


def _inside(root: str, path: str, what: str) -> None:
    place = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath([place, root]) != root:
        raise tarfile.ExtractError(f"{what} {place!r}, which is outside the destination")

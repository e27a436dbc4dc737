"""Files that minions send by ``cp.push``, kept in ``<cachedir>/minions/<id>/files/<path>``.

The option ``file_recv`` switches this on. A file arrives in chunks with offsets; a repeated chunk is written again at
the same offset. Files and directories are opened beneath ``<cachedir>/minions``, where no link of a minion's directory leads
out of the directory.

Salt: salt/master.py, _file_recv
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from saltern.mworker.quotas import Quota
from saltern.mworker.worker_context import WorkerContext
from saltwire.ids import is_minion_id
from saltwire.pack import octets
from statecore.host import beneath
from statecore.host.beneath import LeadsOutside, Links
from statecore.host.content import private_files
from statecore.sources.tree_roots import TreeRoot

_MEGABYTE = 1024 * 1024

#: Most files and directories that a minion may have.
MOST_ENTRIES = 10_000


class FileRefused(Exception):
    """Raised when a chunk of a file that a minion sends is not accepted. The message is the reason."""


class TooMuch(FileRefused):
    """Raised when a minion's files together would be too many or too large."""


def receive(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> bool:
    """Write one chunk of a file that a minion sends, and return True.

    Return False and log the reason if the chunk is not accepted.
    """
    options = context.options
    if not options.file_recv:
        context.log.info("a file is not taken: file_recv is off", extra={"minion": minion_id})
        return False
    try:
        directory = directory_of(options.cachedir, minion_id)
        data, loc = _chunk(load, options.file_recv_max_size * _MEGABYTE)
        store(directory, load.get("path"), data, loc, options.file_recv_max_total * _MEGABYTE)
    except TooMuch as error:
        context.quotas.refused(Quota.FILES, minion_id, f"a chunk of a file is not taken: {error}")
        return False
    except (FileRefused, OSError) as error:
        context.log.warning("a chunk of %r is not taken: %s", load.get("path"), error, extra={"minion": minion_id})
        return False
    return True


def directory_of(cachedir: str, minion_id: str) -> TreeRoot:
    """Return the directory for the files that a minion sends. Raises FileRefused for an invalid id."""
    if not is_minion_id(minion_id):
        raise FileRefused(f"{minion_id!r} is no minion id")
    return TreeRoot(str(Path(cachedir) / "minions"), f"{minion_id}/files")


def place_of(path: object) -> str:
    """Return the relative path of a received file; ``path`` is a list of names. Raises FileRefused if it leads outside."""
    if not isinstance(path, list) or not path or not all(isinstance(name, str) and name for name in path):
        raise FileRefused("a path is a list of names")
    parts = PurePosixPath(*path).parts
    # The path "." has no parts: it would replace the directory by a file.
    if not parts or any(name in ("..", "/", ".") or "\0" in name for name in parts):
        raise FileRefused("the path leaves the minion's directory")
    return "/".join(parts)


def store(directory: TreeRoot, path: object, data: bytes, loc: int, most: int = 0) -> None:
    """Write a chunk of the file ``path`` (a list of names) at byte ``loc``. ``most``: largest size in bytes of all files of the
    minion; 0: any.

    Raises FileRefused; TooMuch; OSError if the file cannot be written.
    """
    place = place_of(path)
    private_files.directory(Path(directory.configured))
    with beneath.directory(directory.configured) as minions:
        beneath.make_directories(minions, directory.derived, private_files.DIRECTORY_MODE)
    try:
        with directory.opened(Links.BENEATH) as top:
            if most:
                check_total(top, place, loc + len(data), most, directory.path)
            _write(top, place, data, loc)
    except OSError as error:
        if not isinstance(error, LeadsOutside) and error.errno != errno.ELOOP:
            raise
        # Minions cannot send links, but an operator may have made one in the directory.
        raise FileRefused("a link leads out of the minion's directory") from error


def check_total(top: int, place: str, size: int, most: int, directory: Path) -> None:
    """Raise TooMuch if the files below the directory ``top`` would have more than ``most`` bytes, or more than MOST_ENTRIES
    entries, with the file ``place`` of ``size`` bytes among them. ``directory`` is the path of ``top``, for messages.
    """
    new = [place, *(str(each) for each in PurePosixPath(place).parents)]
    count = sum(1 for each in new if not _exists(top, each))
    for relative, bytes_of_file in _entries(top):
        count += 1
        if relative != place:
            size += bytes_of_file
        if count > MOST_ENTRIES:
            raise TooMuch(f"the minion has {MOST_ENTRIES} files and directories already; remove some from {directory}")
        if size > most:
            raise TooMuch(
                f"the minion's files would have more than {most // _MEGABYTE} MB; remove some from {directory}"
            )


def _exists(top: int, relative: str) -> bool:
    try:
        os.close(beneath.open_beneath(top, relative, os.O_PATH | os.O_NOFOLLOW, links=Links.BENEATH))
    except FileNotFoundError:
        return False
    return True


def _entries(top: int) -> Iterator[tuple[str, int]]:
    """Yield (relative path, size in bytes) of each file and directory at any depth below the directory ``top``; the size of
    all but regular files is 0. Links are not followed.
    """
    left = ["."]
    while left:
        directory = left.pop()
        try:
            descriptor = beneath.open_beneath(top, directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    relative = entry.name if directory == "." else f"{directory}/{entry.name}"
                    is_file = entry.is_file(follow_symlinks=False)
                    yield relative, entry.stat(follow_symlinks=False).st_size if is_file else 0
                    if entry.is_dir(follow_symlinks=False):
                        left.append(relative)
        finally:
            os.close(descriptor)


def _chunk(load: Mapping[str, object], most: int) -> tuple[bytes, int]:
    data, loc = octets(load.get("data")), load.get("loc")
    if data is None or isinstance(loc, bool) or not isinstance(loc, int) or loc < 0:
        raise FileRefused("a chunk needs data, and loc, its place")
    if loc + len(data) > most:
        raise FileRefused(f"the file is larger than {most // _MEGABYTE} MB (file_recv_max_size)")
    return data, loc


def _write(top: int, place: str, data: bytes, loc: int) -> None:
    above, _, _ = place.rpartition("/")
    if above:
        beneath.make_directories(top, above, private_files.DIRECTORY_MODE, links=Links.BENEATH)
    # Without O_TRUNC, and never waiting: a FIFO that somebody made here is refused before anything happens.
    flags = os.O_RDWR | os.O_NONBLOCK | (0 if loc else os.O_CREAT)
    try:
        descriptor = beneath.open_beneath(top, place, flags, private_files.FILE_MODE, links=Links.BENEATH)
    except FileNotFoundError:
        raise FileRefused(f"the chunk before byte {loc} is missing") from None
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileRefused("the path is no regular file")
        if status.st_size < loc:
            raise FileRefused(f"the chunk before byte {loc} is missing")
        file.seek(loc)
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        # Bytes behind the chunk belong to an earlier, longer file.
        file.truncate()

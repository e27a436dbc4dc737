"""Files that minions send by ``cp.push``, kept in ``<cachedir>/minions/<id>/files/<path>``.

The option ``file_recv`` switches this on. A file arrives in chunks with offsets; a repeated chunk is written again at
the same offset.

Salt: salt/master.py, _file_recv
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from saltern.mworker.quotas import Quota
from saltern.mworker.worker_context import WorkerContext
from saltwire.ids import is_minion_id
from saltwire.pack import octets
from statecore.host.rooted_path import leads_into

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
        file_path = place_of(directory, load.get("path"))
        data, loc = _chunk(load, options.file_recv_max_size * _MEGABYTE)
        if options.file_recv_max_total:
            check_total(directory, file_path, loc + len(data), options.file_recv_max_total * _MEGABYTE)
        _write(file_path, data, loc)
    except TooMuch as error:
        context.quotas.refused(Quota.FILES, minion_id, f"a chunk of a file is not taken: {error}")
        return False
    except (FileRefused, OSError) as error:
        context.log.warning("a chunk of %r is not taken: %s", load.get("path"), error, extra={"minion": minion_id})
        return False
    return True


def directory_of(cachedir: str, minion_id: str) -> Path:
    """Return the directory for the files that a minion sends. Raises FileRefused for an invalid id."""
    if not is_minion_id(minion_id):
        raise FileRefused(f"{minion_id!r} is no minion id")
    return Path(cachedir) / "minions" / minion_id / "files"


def place_of(directory: Path, path: object) -> Path:
    """Return the path of a received file inside ``directory``; ``path`` is a list of names. Raises FileRefused if it
    leads outside.
    """
    if not isinstance(path, list) or not path or not all(isinstance(name, str) and name for name in path):
        raise FileRefused("a path is a list of names")
    parts = PurePosixPath(*path).parts
    # The path "." has no parts: it would replace the directory by a file.
    if not parts or any(name in ("..", "/", ".") or "\0" in name for name in parts):
        raise FileRefused("the path leaves the minion's directory")
    file_path = directory.joinpath(*parts)
    # Minions cannot send links, but an operator may have created one in the directory.
    if not leads_into(file_path, directory):
        raise FileRefused("a link leads out of the minion's directory")
    return file_path


def check_total(directory: Path, file_path: Path, size: int, most: int) -> None:
    """Raise TooMuch if the files below ``directory`` would have more than ``most`` bytes, or more than MOST_ENTRIES entries,
    with the file ``file_path`` of ``size`` bytes among them.
    """
    new = [file_path, *file_path.relative_to(directory).parents]
    count = sum(1 for place in new if not (directory / place).exists())
    for entry in _entries(directory):
        count += 1
        if entry.is_file(follow_symlinks=False) and entry.path != str(file_path):
            size += entry.stat(follow_symlinks=False).st_size
        if count > MOST_ENTRIES:
            raise TooMuch(f"the minion has {MOST_ENTRIES} files and directories already; remove some from {directory}")
        if size > most:
            raise TooMuch(
                f"the minion's files would have more than {most // _MEGABYTE} MB; remove some from {directory}"
            )


def _entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    """Yield an os.DirEntry for each file and directory at any depth below a directory; nothing if the directory does
    not exist. Links are not followed.
    """
    left = [str(directory)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
        except FileNotFoundError:
            continue


def _chunk(load: Mapping[str, object], most: int) -> tuple[bytes, int]:
    data, loc = octets(load.get("data")), load.get("loc")
    if data is None or isinstance(loc, bool) or not isinstance(loc, int) or loc < 0:
        raise FileRefused("a chunk needs data, and loc, its place")
    if loc + len(data) > most:
        raise FileRefused(f"the file is larger than {most // _MEGABYTE} MB (file_recv_max_size)")
    return data, loc


def _write(file_path: Path, data: bytes, loc: int) -> None:
    file_path.parent.mkdir(parents=True, exist_ok=True)
    if loc and (not file_path.is_file() or file_path.stat().st_size < loc):
        raise FileRefused(f"the chunk before byte {loc} is missing")
    with file_path.open("r+b" if loc else "wb") as file:
        file.seek(loc)
        file.write(data)
        # Bytes behind the chunk belong to an earlier, longer file.
        file.truncate()

"""Files that minions send (``cp.push``), each minion's in a directory of its own: ``<cachedir>/minions/<id>/files/<path>``.

Off unless the option ``file_recv`` is set. A file comes in chunks, each with its place; one that is sent again is written again
at the same place. Source: salt/master.py (_file_recv), protocol section 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from saltern.mworker.worker_context import WorkerContext
from saltwire.ids import is_minion_id
from saltwire.pack import octets

_MEGABYTE = 1024 * 1024


class FileRefused(Exception):
    """A chunk that is not taken. str() says why."""


def receive(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> bool:
    """Writes one chunk; False, with the reason in the log, for one that is not taken."""
    options = context.options
    if not options.file_recv:
        context.log.info("a file is not taken: file_recv is off", extra={"minion": minion_id})
        return False
    try:
        place = place_of(directory_of(options.cachedir, minion_id), load.get("path"))
        data, loc = _chunk(load, options.file_recv_max_size * _MEGABYTE)
        _write(place, data, loc)
    except (FileRefused, OSError) as error:
        context.log.warning("a chunk of %r is not taken: %s", load.get("path"), error, extra={"minion": minion_id})
        return False
    return True


def directory_of(cachedir: str, minion_id: str) -> Path:
    """Where the files of a minion are kept."""
    if not is_minion_id(minion_id):
        raise FileRefused(f"{minion_id!r} is no minion id")
    return Path(cachedir) / "minions" / minion_id / "files"


def place_of(directory: Path, path: Any) -> Path:
    """Where in the directory a file goes whose path came as a list of names. Raises Refused for one that leaves it."""
    if not isinstance(path, list) or not path or not all(isinstance(name, str) and name for name in path):
        raise FileRefused("a path is a list of names")
    parts = PurePosixPath(*path).parts
    if any(name in ("..", "/", ".") or "\0" in name for name in parts):
        raise FileRefused("the path leaves the minion's directory")
    place = directory.joinpath(*parts)
    # Nothing that a minion sends is a link; what an operator put there may be one.
    if not place.resolve().is_relative_to(directory.resolve()):
        raise FileRefused("a link leads out of the minion's directory")
    return place


def _chunk(load: Mapping[str, Any], most: int) -> tuple[bytes, int]:
    data, loc = octets(load.get("data")), load.get("loc")
    if data is None or isinstance(loc, bool) or not isinstance(loc, int) or loc < 0:
        raise FileRefused("a chunk needs data, and loc, its place")
    if loc + len(data) > most:
        raise FileRefused(f"the file is larger than {most // _MEGABYTE} MB (file_recv_max_size)")
    return data, loc


def _write(place: Path, data: bytes, loc: int) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if loc and (not place.is_file() or place.stat().st_size < loc):
        raise FileRefused(f"what goes before byte {loc} did not come")
    with place.open("r+b" if loc else "wb") as file:
        file.seek(loc)
        file.write(data)
        # What was there behind it is of an earlier, longer file.
        file.truncate()

"""Moves what a master remembers of its minions (grains, pillar and mine of each minion) between a stock Salt master and Saltern.

``read`` takes the data from the cache files of a stock master, and ``write`` writes such files, so that a fleet can move in both
directions. ``send`` sends the data to a running Saltern master, which stores it in Redis, and ``fetch`` asks that master for it.

The files are those of Salt's cache module ``localfs``. Below ``cachedir``, a master of release 3008 has
``grains/<id>.p``, ``pillar/<id>.p`` and ``mine/<id>.p``, and an older one ``minions/<id>/data.p`` and ``mine.p``.
Salt: salt/cache/localfs.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from saltern.kit.command.command_line import CommandError
from saltern.kit.links.answers import WheelCall
from saltwire.errors import PeerFault
from saltwire.ids import is_minion_id
from saltwire.pack import packb, unpackb
from statecore.host.content.guarded_tree import GuardedTree

#: The parts of a minion's data; the names of the directories of 3008.
PARTS = ("grains", "pillar", "mine")

#: Bytes of the largest file that is read.
_LARGEST_FILE = 64 * 1024 * 1024

#: Minions in one request. The worker may have to compile the pillar of each.
_AT_ONCE = 20

#: Bytes of data in one request, unless a single minion has more.
_MOST_BYTES = 4 * 1024 * 1024


@dataclass
class Remembered:
    """The data of minions that was read from the files of a stock master's cache.

    ``minions`` is {minion id: {part: map}}, with the parts grains, pillar and mine. ``faults`` is {path: reason} of
    files that cannot be used.
    """

    minions: dict[str, dict[str, object]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


@dataclass
class Brought:
    """The joined answers of the master to requests that import data of minions: what it stored, already had, or
    refused.
    """

    #: Minion id -> stored parts; [] if the master knew all of it.
    stored: dict[str, list[str]] = field(default_factory=dict)
    #: Minion id -> reason.
    refused: dict[str, str] = field(default_factory=dict)
    #: Minion id -> first error of its pillar.
    pillar_errors: dict[str, str] = field(default_factory=dict)


def count(cachedir: Path) -> int:
    """Return the number of minions of which a stock master's ``cachedir`` has grains, pillar or mine."""
    return len(_ids(cachedir))


def read(cachedir: Path) -> Remembered:
    """Read the data of minions from the files below a stock master's ``cachedir``. Raise CommandError if the directory
    does not exist or cannot be read.
    """
    if not cachedir.is_dir():
        raise CommandError(f"{cachedir}: is no directory; name the cachedir of the stock master")
    found = Remembered()
    tree = GuardedTree(cachedir, links=False)
    for minion in _ids(cachedir):
        if not is_minion_id(minion):
            found.faults[f"{cachedir}: {minion}"] = "the name is no minion id here"
            continue
        old = _content(tree, f"minions/{minion}/data.p", found.faults)
        parts = {
            "grains": _content(tree, f"grains/{minion}.p", found.faults) or old.get("grains"),
            "pillar": _content(tree, f"pillar/{minion}.p", found.faults) or old.get("pillar"),
            "mine": _content(tree, f"mine/{minion}.p", found.faults)
            or _content(tree, f"minions/{minion}/mine.p", found.faults),
        }
        if known := {name: value for name, value in parts.items() if isinstance(value, Mapping) and value}:
            found.minions[minion] = dict(known)
    return found


def send(remembered: Remembered, wheel: WheelCall, *, replace: bool) -> Brought:
    """Send the data of minions to the running master, and return its joined answers. Raise ControlError,
    ControlTimeout.

    ``wheel`` calls a wheel function of the master. ``replace``: the master replaces data that it has already.
    """
    whole = Brought()
    for portion in _portions(remembered.minions):
        answer = wheel("minions.import_data", data=portion, replace=replace)
        whole.stored |= answer["stored"]
        whole.refused |= answer["refused"]
        whole.pillar_errors |= answer["pillar_errors"]
    return whole


def fetch(wheel: WheelCall) -> dict[str, dict[str, object]]:
    """Return the data of all accepted minions of the running master as {minion id: {part: map}}, with the parts
    grains, pillar and mine. Raise ControlError, ControlTimeout.

    ``wheel`` calls a wheel function of the master.
    """
    accepted = iter(wheel("key.list_all")["minions"])
    found: dict[str, dict[str, object]] = {}
    while portion := list(islice(accepted, _AT_ONCE)):
        for minion, packed in wheel("minions.export_data", match=portion).items():
            parts = unpackb(packed)
            found[minion] = dict(parts) if isinstance(parts, Mapping) else {}
    return found


def write(cachedir: Path, minions: Mapping[str, Mapping[str, object]]) -> int:
    """Write data of minions ({minion id: {part: map}}) into a stock master's ``cachedir``, as files for release 3008
    and for older releases. Return the number of files. Raise CommandError.
    """
    files: dict[str, object] = {}
    for minion, parts in minions.items():
        if not is_minion_id(minion):
            raise CommandError(f"the master named a minion {minion!r}, which is no minion id; nothing was written")
        for name, value in parts.items():
            if name not in PARTS:
                raise CommandError(f"the master named data {name!r} of {minion}; known are {', '.join(PARTS)}")
            files[f"{name}/{minion}.p"] = value
        if data := {name: parts[name] for name in ("grains", "pillar") if name in parts}:
            files[f"minions/{minion}/data.p"] = data
        if "mine" in parts:
            files[f"minions/{minion}/mine.p"] = parts["mine"]
    tree = GuardedTree(cachedir)
    try:
        tree.make_top()
        for place, value in files.items():
            tree.put(place, packb(value))
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    return len(files)


def _ids(cachedir: Path) -> list[str]:
    """Return the sorted ids of all minions that have a file below ``cachedir``. Raise CommandError if it cannot be
    read.
    """
    try:
        # A name with a colon is a pillar of another environment.
        banks = {path.name.removesuffix(".p") for part in PARTS for path in (cachedir / part).glob("*.p")}
        old = {path.parent.name for name in ("data.p", "mine.p") for path in (cachedir / "minions").glob(f"*/{name}")}
    except OSError as error:
        raise CommandError(f"{cachedir}: cannot be read: {error.strerror}; run as the user who owns it") from error
    return sorted({name for name in banks if ":" not in name} | old)


def _content(tree: GuardedTree, name: str, faults: dict[str, str]) -> dict[str, object]:
    """Return the map that a file of the cache contains; {} if the file is missing. If the file cannot be read or
    contains no map, add the reason to ``faults`` and return {}.
    """
    path = tree.top / name
    try:
        found = unpackb(tree.read(name, _LARGEST_FILE))
    except FileNotFoundError:
        return {}
    except OSError as error:
        faults[str(path)] = f"cannot be read: {error.strerror}"
        return {}
    except PeerFault as error:
        faults[str(path)] = str(error)
        return {}
    if not isinstance(found, dict):
        faults[str(path)] = f"must hold a map, not a {type(found).__name__}"
        return {}
    return found


def _portions(minions: Mapping[str, Mapping[str, object]]) -> Iterator[dict[str, bytes]]:
    """Pack the data of each minion, and yield it in maps {minion id: packed bytes}. Each map has at most 20 minions,
    and at most 4 MB unless one minion alone has more.
    """
    portion: dict[str, bytes] = {}
    for minion, parts in minions.items():
        packed = packb(parts)
        if portion and (len(portion) == _AT_ONCE or sum(map(len, portion.values())) + len(packed) > _MOST_BYTES):
            yield portion
            portion = {}
        portion[minion] = packed
    if portion:
        yield portion

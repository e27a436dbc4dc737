"""Minion keys as a stock master keeps them: one file an id, in a directory a state, below its ``pki_dir``.

``{list: {id: PEM}}`` is what both sides speak; the lists are named like the directories (Salt's cache/localfs_key.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from saltern.kit.command.command_line import CommandError
from saltwire.errors import PeerFault
from saltwire.ids import is_minion_id
from saltwire.keys import PublicKey, clean_pem

#: Directories of keys below ``pki_dir``.
LISTS = ("minions", "minions_pre", "minions_rejected", "minions_denied")

Keys: TypeAlias = Mapping[str, Mapping[str, str]]

#: Longest key file that is read; a key of 16384 bits has 3 kB.
_MAX_BYTES = 64 * 1024


@dataclass
class Held:
    """What a directory holds: ``keys``, and what of it is no key of a minion, with the reason."""

    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    passed: dict[str, str] = field(default_factory=dict)

    def count(self) -> int:
        """How many keys."""
        return sum(map(len, self.keys.values()))


def read_keys(pki: Path) -> Held:
    """All minion keys below a master's ``pki_dir``. Raises CommandError for what is no such directory, or cannot be read.

    Hidden files are Salt's own indices and are not looked at.
    """
    found = [name for name in LISTS if (pki / name).is_dir()]
    if not found:
        near = " (its directory 'master' is)" if (pki / "master" / "minions").is_dir() else ""
        raise CommandError(f"{pki}: holds none of {', '.join(LISTS)}: it is no pki_dir of a master{near}")
    held = Held()
    for name in found:
        for path in sorted((pki / name).iterdir()):
            if path.name.startswith("."):
                continue
            pem = _pem(path)
            if why := _wrong(path.name, pem):
                held.passed[str(path)] = why
            else:
                held.keys.setdefault(name, {})[path.name] = clean_pem(pem)
    autosigned = sorted(path.name for path in (pki / "minions_autosign").glob("*"))
    for name in autosigned:
        held.passed[str(pki / "minions_autosign" / name)] = "is no key; put the id into the file of autosign_file"
    return held


def _pem(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except IsADirectoryError:
        return ""
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror}; run as the user who owns the keys") from error


def _wrong(minion: str, pem: str) -> str:
    if not is_minion_id(minion):
        return "the name is no minion id here: it must not mean several"
    try:
        PublicKey.from_pem(pem)
    except PeerFault as error:
        return str(error)
    return ""


def write_keys(pki: Path, keys: Keys) -> list[Path]:
    """Lays keys into a directory as a stock master reads them; the files that were written.

    Every list gets its directory. What is there already and the same stays; anything else there is somebody's: CommandError
    names it, and nothing is written.
    """
    wanted = {pki / name / minion: pem for name in LISTS for minion, pem in keys.get(name, {}).items()}
    here = [path for name in LISTS for path in (pki / name).glob("*")]
    others = [path for path in here if path not in wanted or clean_pem(_pem(path)) != clean_pem(wanted[path])]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise CommandError(f"{others[0]}{more}: is not what would be written; export to an empty directory")
    written = []
    try:
        for name in LISTS:
            (pki / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, content in wanted.items():
            if path not in here:
                # Never there in part: a master that looks meanwhile would deny the minion.
                temporary = path.with_name(f".{path.name}.{os.getpid()}")
                temporary.write_text(content, encoding="ascii")
                temporary.chmod(0o644)
                temporary.replace(path)
                written.append(path)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}; {len(written)} keys were written") from error
    return written

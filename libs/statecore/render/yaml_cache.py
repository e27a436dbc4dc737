"""Cache of parsed YAML texts on the minion's disk. A cached text loads in a tenth of the time.

Minions apply the same state trees again and again. The key is a digest of the text, so an entry cannot be stale. If the
cache is damaged, full or not writable, the text is parsed as usual. Only SLS texts of states are cached, as their high
data is (``HighCache`` of ``state_runs.state_system``). Pillar is never cached here.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack

from statecore.host.content import data_files
from statecore.model import yaml
from statecore.model.errors import CommandError

log = logging.getLogger(__name__)

#: Shorter texts (in characters) are not cached: reading the cache file would cost as much as parsing.
_MIN_CHARACTERS = 8_192

#: Bounds of the cache: number of files, bytes. The least recently used file is removed first.
_MAX_FILES = 64
_MAX_BYTES = 64 * 2**20

#: Seconds between two updates of a cache file's access mark (its mtime).
_FRESH = 86_400.0


class YamlCache:
    """Cache of parsed YAML texts, in files of the minion's ``cachedir``. If ``cachedir`` is "", nothing is cached."""

    def __init__(self, cachedir: str) -> None:
        self._directory = Path(cachedir) / "yaml" if cachedir else None

    def load(self, text: str) -> object:
        """Return the data of a YAML text, from the cache or parsed. Raise YamlFault with the line if it is not valid
        YAML.
        """
        if self._directory is None or len(text) < _MIN_CHARACTERS or "&" in text:
            # Values shared through anchors would become copies in the cache.
            return yaml.load(text, yaml.SLS)
        try:
            file = (
                self._directory
                / hashlib.blake2b(text.encode(), digest_size=32, key=_reader(), usedforsecurity=False).hexdigest()
            )
        except UnicodeEncodeError:
            return yaml.load(text, yaml.SLS)
        found, data = _read(file)
        if not found:
            data = yaml.load(text, yaml.SLS)
            self._keep(file, data)
        return data

    def _keep(self, file: Path, data: object) -> None:
        try:
            packed = msgpack.packb(data, strict_types=True)
        except (TypeError, ValueError, OverflowError, RecursionError):
            # The data has a type that msgpack cannot represent.
            return
        try:
            data_files.store_bytes(file, packed)
            for old in _surplus(file.parent):
                old.unlink(missing_ok=True)
        except (CommandError, OSError) as error:
            log.info("Parsed YAML is not cached in %s: %s", file.parent, error)


def _reader() -> bytes:
    """Return a digest of the YAML parser's version, for the cache keys: another parser may make other data of the same
    text.
    """
    folder = Path(yaml.__file__).parent
    own = (file.stat() for file in sorted(folder.glob("*.py")))
    words = [yaml.PARSER, *(f"{info.st_size} {info.st_mtime_ns}" for info in own)]
    return hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()


def _read(file: Path) -> tuple[bool, object]:
    """Return (True, data) from a cache file; (False, None) if the file does not exist or cannot be read."""
    try:
        data = msgpack.unpackb(file.read_bytes(), strict_map_key=False)
        if time.time() - file.stat().st_mtime > _FRESH:
            os.utime(file)
    except (OSError, ValueError, TypeError, msgpack.UnpackException):
        return False, None
    return True, data


def _surplus(directory: Path) -> Iterator[Path]:
    """Yield the cache files to remove, so that the number and total size of the files stay within the bounds: the least
    recently used ones.
    """
    with os.scandir(directory) as entries:
        kept = sorted(((entry.stat(), entry.path) for entry in entries), key=lambda each: -each[0].st_mtime_ns)
    size = 0
    for number, (info, path) in enumerate(kept, start=1):
        size += info.st_size
        if number > _MAX_FILES or size > _MAX_BYTES:
            yield Path(path)

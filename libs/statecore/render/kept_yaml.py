"""What large YAML texts were read to, kept by their content: the next run of the same states reads it in a tenth of the time.

Minions apply the same trees over and over. A text is known by its digest, so that what is kept cannot be stale; a cache
that is damaged, full or forbidden is one that knows nothing. Only states' texts are kept, as their high data is
(``state_runs.high_cache``), never those of pillars.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import yaml

from statecore.host.content import kept_files
from statecore.model.errors import CommandError
from statecore.render import yaml as yaml_text
from statecore.render import yaml_events, yaml_values

log = logging.getLogger(__name__)

#: Characters below which reading a file costs as much as reading the YAML.
_MIN_CHARACTERS = 8_192

#: What is kept at most; the oldest goes first.
_MAX_FILES = 64
_MAX_BYTES = 64 * 2**20

#: Seconds after which a file that was used counts as used again.
_FRESH = 86_400.0


class KeptYaml:
    """The cache of one minion below its cachedir; without a cachedir nothing is kept."""

    def __init__(self, cachedir: str) -> None:
        self._directory = Path(cachedir) / "yaml" if cachedir else None

    def load(self, text: str) -> Any:
        """The document of a text: as ``yaml.load``, whose faults it raises."""
        if self._directory is None or len(text) < _MIN_CHARACTERS or "&" in text:
            # What anchors share would be copied.
            return yaml_text.load(text)
        try:
            place = (
                self._directory
                / hashlib.blake2b(text.encode(), digest_size=32, key=_reader(), usedforsecurity=False).hexdigest()
            )
        except UnicodeEncodeError:
            return yaml_text.load(text)
        found, data = _read(place)
        if not found:
            data = yaml_text.load(text)
            self._keep(place, data)
        return data

    def _keep(self, place: Path, data: Any) -> None:
        try:
            packed = msgpack.packb(data, strict_types=True)
        except (TypeError, ValueError, OverflowError, RecursionError):
            # It holds what msgpack has no form of its own for.
            return
        try:
            kept_files.store_bytes(place, packed)
            for old in _surplus(place.parent):
                old.unlink(missing_ok=True)
        except (CommandError, OSError) as error:
            log.info("What a YAML text was read to is not kept: %s", error)


def _reader() -> bytes:
    """What else the data depends on: who reads the text."""
    own = (Path(module.__file__).stat() for module in (yaml_values, yaml_events) if module.__file__)
    words = [yaml.__version__, *(f"{info.st_size} {info.st_mtime_ns}" for info in own)]
    return hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()


def _read(place: Path) -> tuple[bool, Any]:
    """Whether there is something, and what."""
    try:
        data = msgpack.unpackb(place.read_bytes(), strict_map_key=False)
        if time.time() - place.stat().st_mtime > _FRESH:
            os.utime(place)
    except (OSError, ValueError, TypeError, msgpack.UnpackException):
        return False, None
    return True, data


def _surplus(directory: Path) -> Iterator[Path]:
    """Files beyond what is kept, those that were not used for longest."""
    with os.scandir(directory) as entries:
        kept = sorted(((entry.stat(), entry.path) for entry in entries), key=lambda each: -each[0].st_mtime_ns)
    size = 0
    for number, (info, path) in enumerate(kept, start=1):
        size += info.st_size
        if number > _MAX_FILES or size > _MAX_BYTES:
            yield Path(path)

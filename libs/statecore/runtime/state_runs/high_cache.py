"""High data of earlier state runs, in files ``<cachedir>/NAME.cache.p`` (argument ``cache=True`` of ``state.apply``)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from statecore.host.content import data_files
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import High

log = logging.getLogger(__name__)

_SUFFIX = ".cache.p"


class HighCache:
    """Cache of one minion. Without a ``cachedir`` it keeps nothing."""

    def __init__(self, cachedir: str) -> None:
        self._directory = Path(cachedir) if cachedir else None

    def load(self, name: str) -> High | None:
        """Return the high data stored under the name; None if there is none.

        Raises CommandError for a damaged file, InvocationError for a malformed name.
        """
        found = None if self._directory is None else data_files.load(self._place(self._directory, name))
        return found if isinstance(found, dict) else None

    def store(self, name: str, high: Mapping[str, object]) -> None:
        """Store high data under the name. A write error is only logged. Raises InvocationError for a malformed name."""
        if self._directory is None:
            return
        place = self._place(self._directory, name)
        try:
            data_files.store(place, high)
        except CommandError as error:
            log.info("The high data of this run is not kept: %s", error)

    def clear(self) -> list[str]:
        """Remove all files and return their names. Raises CommandError if a file cannot be removed."""
        if self._directory is None:
            return []
        return [place.name for place in sorted(self._directory.glob(f"*{_SUFFIX}")) if data_files.remove(place)]

    def _place(self, directory: Path, name: str) -> Path:
        if not data_files.is_plain(name):
            raise InvocationError(f"cache_name must be a plain name of letters, digits, '.', '_' and '-', not '{name}'")
        return directory / f"{name}{_SUFFIX}"

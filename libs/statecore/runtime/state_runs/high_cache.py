"""High data of earlier state runs, in files ``<cachedir>/NAME.cache.p`` (argument ``cache=True`` of ``state.apply``)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.host.content import kept_files
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import High

log = logging.getLogger(__name__)

_SUFFIX = ".cache.p"


class HighCache:
    """The cache of one minion. Without a cachedir nothing is kept and nothing found."""

    def __init__(self, cachedir: str) -> None:
        self._directory = Path(cachedir) if cachedir else None

    def load(self, name: str) -> High | None:
        """What the run of that name left, None without. Raises CommandError for a damaged file, InvocationError for a bad name."""
        found = None if self._directory is None else kept_files.load(self._place(self._directory, name))
        return found if isinstance(found, dict) else None

    def store(self, name: str, high: Mapping[str, Any]) -> None:
        """Keeps it. A minion that cannot is told in the log: the run needs no cache. Raises InvocationError for a bad name."""
        if self._directory is None:
            return
        place = self._place(self._directory, name)
        try:
            kept_files.store(place, high)
        except CommandError as error:
            log.info("The high data of this run is not kept: %s", error)

    def clear(self) -> list[str]:
        """Names of the files that were there. Raises CommandError when one cannot be removed."""
        if self._directory is None:
            return []
        return [place.name for place in sorted(self._directory.glob(f"*{_SUFFIX}")) if kept_files.remove(place)]

    def _place(self, directory: Path, name: str) -> Path:
        if not kept_files.is_plain(name):
            raise InvocationError(f"cache_name must be a plain name of letters, digits, '.', '_' and '-', not '{name}'")
        return directory / f"{name}{_SUFFIX}"

"""The options that say who may do what, read again while a role runs: a change of the master's files counts at once.

The files are looked at once a second, by their times and sizes, and read only after a change. Files that cannot be used
change nothing: the rows that were read before stay, and the log says what is wrong and where.

Source: docs/security.md#who-may-do-what
"""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from saltern.kit.config.config_files import ConfigError, config_files, include_folders
from saltern.kit.config.master import MasterOptions, config_directory, load_master
from statecore.model.text_lines import lines_of

_LOG = logging.getLogger("saltern.config")

#: Seconds between two looks at the files.
_LOOK_EVERY = 1.0

#: File or folder -> (device, inode, size, time of change in ns); None: it is not there.
_Stamps: TypeAlias = Mapping[Path, tuple[int, ...] | None]


@dataclass(frozen=True)
class AccessRows:
    """The options that say who may do what. Fields have the names of the options."""

    external_auth: Mapping[str, Any]
    permissive_acl: bool
    control_acl: Mapping[str, list[Any]]
    publisher_acl: Mapping[str, list[Any]]
    publisher_acl_blacklist: Mapping[str, list[str]]
    peer: Mapping[str, list[Any]]
    peer_run: Mapping[str, list[Any]]
    rest_cherrypy: Mapping[str, Any]

    @property
    def api_acl(self) -> object:
        """Return the setting ``api_acl`` of ``rest_cherrypy`` as the files have it; {} if they have none."""
        return self.rest_cherrypy.get("api_acl") or {}


def rows_of(options: MasterOptions) -> AccessRows:
    """Return the AccessRows in the options of a master."""
    return AccessRows(**{each.name: getattr(options, each.name) for each in dataclasses.fields(AccessRows)})


@dataclass
class LiveRows:
    """The AccessRows of a running role."""

    options: MasterOptions
    #: Directory of the file ``master``; None: that of the environment. Empty: the rows of ``options`` stay as they are.
    config_dir: str | None = ""
    clock: Callable[[], float] = time.monotonic
    _rows: AccessRows = field(init=False)
    _stamps: _Stamps = field(default_factory=dict, init=False)
    _looked: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        self._rows = rows_of(self.options)

    @property
    def follows(self) -> bool:
        """Return whether the rows are those of files, which are read again."""
        return self.config_dir != ""

    def current(self) -> AccessRows:
        """Return the rows as the files have them, at most a second old."""
        now = self.clock()
        if self.follows and now - self._looked >= _LOOK_EVERY:
            self._looked = now
            self._look()
        return self._rows

    def _look(self) -> None:
        if self._stamps and self._stamps == _stamps_of(self._stamps):
            return
        first = not self._stamps
        directory = config_directory(self.config_dir)
        # Taken before the files are read: a change meanwhile is seen at the next look.
        usual = {directory, directory / "master", directory / "master.d", *(directory / "master.d").glob("*.conf")}
        self._stamps = _stamps_of({*usual, *self._stamps})
        try:
            self._stamps = {**_stamps_of(_places(directory)), **self._stamps}
            found = rows_of(load_master(self.config_dir))
        except ConfigError as error:
            self._log_fault(error)
            return
        if found != self._rows:
            self._rows = found
            if not first:
                _LOG.info("the rows of who may do what were read anew from %s", directory)

    def _log_fault(self, error: ConfigError) -> None:
        said = lines_of(str(error)) or ["?"]
        more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
        _LOG.error("the rows of who may do what stay as they were: %s%s", said[0], more)


def _places(directory: Path) -> set[Path]:
    """Return the files of the master's configuration, and the folders in which a further one would count. Raises ConfigError."""
    files = list(config_files(directory, "master"))
    found = include_folders(directory, "master", files)
    for each in files:
        found |= {each.path, each.path.parent}
    return found


def _stamps_of(places: Iterable[Path]) -> dict[Path, tuple[int, ...] | None]:
    found: dict[Path, tuple[int, ...] | None] = {}
    for place in places:
        try:
            stat = os.stat(place)  # noqa: PTH116 - Path.stat would build the path anew each second
        except OSError:
            found[place] = None
        else:
            found[place] = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found

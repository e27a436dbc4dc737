"""Makes the directories of a minion's or master's process private at its start, and closes what earlier versions left open.

Earlier versions made caches with the umask of the process: files of 0644 in directories of 0755. Each start closes the
small directories. A cache may be large: it is closed once, and a mark in it says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from saltern.kit.config.state_options import StateOptions
from statecore.host.content import private_files

#: File in ``cachedir`` that says that an earlier version's files were closed. Its name has a version, for another rule.
_MARK = ".private-1"


def make_private(options: StateOptions, cachedir: str, log: logging.Logger, more: Iterable[str] = ()) -> None:
    """Make ``cachedir`` if it is missing, and take the rights of others from the files that earlier versions left in it, in
    the directories ``more`` and in ``log_file``. Log how many were changed.

    A directory that this process may not change is left as it is, and logged at level debug: the role may need none.
    """
    changed = 0
    for step in (_cache(cachedir), *(_small(path) for path in more if path), _log(options)):
        try:
            changed += sum(step)
        except OSError as error:
            log.debug("%s stays as it is: %s", error.filename, error.strerror)
    if changed:
        log.warning(
            "%d files and directories of an earlier version could be read by other users; now their owner alone reads them",
            changed,
        )


def _cache(cachedir: str) -> Iterable[int]:
    top = private_files.top(Path(cachedir))
    if not (top / _MARK).exists():
        yield private_files.close(top)
        private_files.write(top / _MARK, "")


def _small(path: str) -> Iterable[int]:
    # pki_dir may be readable for a group, as in Salt.
    yield private_files.close(Path(path), group=True)


def _log(options: StateOptions) -> Iterable[int]:
    if options.log_file and "://" not in options.log_file:
        yield private_files.close_file(Path(options.log_file), group=True)

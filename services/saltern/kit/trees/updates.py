"""Updates what the file server serves: fetches Git mirrors, and finds changes in directories.

Maintenance runs the updates by the clock. The runners fileserver.update and git_pillar.update run them on demand.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from saltern.kit.config.master import ConfigError, MasterOptions, as_opts
from saltern.kit.trees.served_files import file_server
from statecore.host.content import private_files
from statecore.model.errors import StatecoreError
from statecore.model.lazy import lazy_module
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import GITFS, PILLAR, all_pillar_remotes, gitfs_remotes
from statecore.sources.local_tree import LocalFiles, tree_options

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")

#: Seconds after which a file that was exported from a mirror and not asked for again is removed.
_UNUSED = 7 * 86400.0


class Update(NamedTuple):
    """The result of fetching one Git remote: its mirror, whether a branch or tag has changed, and the error, if any."""

    mirror: Mirror
    #: Whether a branch or tag has changed.
    changed: bool
    #: Reason why the remote could not be fetched; "" on success.
    error: str


def mirrors(options: MasterOptions) -> list[Mirror]:
    """Return the Git mirrors of all remotes that the file server or the pillar uses. Raises ConfigError."""
    opts, home = as_opts(options), Path(options.cachedir)
    served = "gitfs" in file_server(options).backends
    try:
        found = [Mirror(home / GITFS, remote) for remote in (gitfs_remotes(opts) if served else [])]
        return found + [Mirror(home / PILLAR, remote) for remote in all_pillar_remotes(opts)]
    except StatecoreError as error:
        raise ConfigError(str(error)) from error


def fetched(wanted: Iterable[Mirror]) -> list[Update]:
    """Fetch each Git mirror from its remote; return one Update for each mirror, in order. A failure is in
    ``error`` of its Update.

    A mirror that occurs twice is fetched once.
    """
    done: dict[Path, Update] = {}
    found = []
    for mirror in wanted:
        known = done.get(mirror.place)
        update = _fetched(mirror) if known is None else known._replace(mirror=mirror)
        done[mirror.place] = update
        found.append(update)
    return found


def _fetched(mirror: Mirror) -> Update:
    try:
        return Update(mirror, mirror.update(), "")
    except StatecoreError as error:
        return Update(mirror, False, f"{mirror.remote.role} remote '{mirror.remote.shown}': {error}")


def tidy(options: MasterOptions) -> None:
    """Delete mirrors of remotes that are no longer configured, and files exported from mirrors that were not used lately.

    Raises ConfigError.
    """
    kept = {mirror.place for mirror in mirrors(options)}
    for home in (Path(options.cachedir) / GITFS, Path(options.cachedir) / PILLAR):
        for path in _below(home / "mirrors"):
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)
        for blob in (each for half in _below(home / "blobs") for each in _below(half)):
            with contextlib.suppress(OSError):
                if time.time() - max(file.stat().st_mtime for file in (blob, *blob.iterdir())) > _UNUSED:
                    shutil.rmtree(blob)


def _below(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def roots_changes(options: MasterOptions) -> dict[str, object]:
    """Return the data of Salt's fileserver event: {"changed": bool, "backend": "roots", "files": {"changed",
    "added", "removed": paths}}.

    The files in ``file_roots`` are compared with the state of the last call, which ``cachedir`` keeps. Raises
    OSError if ``cachedir`` cannot be written.
    """
    path = Path(options.cachedir) / "roots" / "mtime_map.json"
    before = _remembered(path)
    now = _times(options)
    private_files.write(path, json.dumps(now))
    changed = sorted(path for path, mtime in now.items() if path in before and before[path] != mtime)
    return {
        "changed": before != now,
        "backend": "roots",
        "files": {"changed": changed, "added": sorted(now.keys() - before), "removed": sorted(before.keys() - now)},
    }


def _remembered(path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _times(options: MasterOptions) -> dict[str, int]:
    found: dict[str, int] = {}
    for roots in options.file_roots.values():
        for root in roots:
            files = LocalFiles({"base": [root]}, **tree_options(as_opts(options)))
            for path in files.paths():
                file = files.fetch(path)
                if file is not None:
                    with contextlib.suppress(OSError):
                        found[str(file)] = file.stat().st_mtime_ns
    return found

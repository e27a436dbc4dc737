"""Git repositories for the state tree and pillar of a minion without a master. The minion's own process fetches them.

A repository is fetched at its first use, once in a process. A repository that cannot be fetched is an error in the log,
and the earlier mirror is used.

Salt: salt/fileserver/__init__.py, FSChan
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statecore.model.errors import StatecoreError
from statecore.model.lazy import deferred
from statecore.model.ports import Files
from statecore.sources.fileserver import FileServer
from statecore.sources.fileserver.users import BackendLoader
from statecore.sources.gitrepos.mirror import Mirror, mirrors_directory
from statecore.sources.gitrepos.remotes import GITFS, PILLAR, GitRemote, all_pillar_remotes, gitfs_remotes
from statecore.sources.local_tree import LocalFiles

log = logging.getLogger(__name__)


class MasterlessRepositories:
    """Fetches the Git repositories of a masterless minion, once in a process, and returns its fileserver."""

    def __init__(self, opts: Mapping[str, Any], load: BackendLoader) -> None:
        """Prepare the Git repositories that the minion's options ``opts`` name; fetch nothing yet. ``load`` loads
        fileserver backends written by users.

        Options used: cachedir, fileserver_backend, ext_pillar, gitfs_* and git_pillar_*.
        """
        self._opts = opts
        self._load = load
        #: Id of the process that fetched for the pillar. A forked child fetches again.
        self._pillar_fetched_by = 0

    def files(self) -> Files:
        """Return the masterless minion's fileserver with all backends. Its Git repositories are fetched at the first
        use of the fileserver.
        """
        if list(self._opts.get("fileserver_backend") or ["roots"]) == ["roots"]:
            return LocalFiles.of(self._opts)
        return deferred(self._served)

    def for_pillar(self) -> None:
        """Fetch the Git repositories of the external pillar ``git``, at the first call in a process.

        A repository that cannot be fetched is logged. Raises GitConfigError for invalid options.
        """
        if self._pillar_fetched_by != os.getpid():
            self._pillar_fetched_by = os.getpid()
            _fetch(mirrors_directory(self._opts, PILLAR), all_pillar_remotes(self._opts))

    def _served(self) -> FileServer:
        server = FileServer.of(self._opts, self._load)
        for backend in server.users:
            try:
                backend.update()
            except StatecoreError as error:
                log.error("%s", error)
        if "gitfs" in server.backends:
            _fetch(mirrors_directory(self._opts, GITFS), gitfs_remotes(self._opts))
        return server


def _fetch(home: Path, remotes: Sequence[GitRemote]) -> None:
    for mirror in {mirror.place: mirror for mirror in (Mirror(home, remote) for remote in remotes)}.values():
        try:
            mirror.update()
        except StatecoreError as error:
            log.error(
                "%s remote '%s': %s; what was fetched before counts", mirror.remote.role, mirror.remote.shown, error
            )

"""Cache that a worker keeps between pillar compilations: texts, trees and mirrors. It holds no minion's data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from statecore.model.ports import Files
from statecore.render.memory import RenderMemory
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import GitRemote

#: Number of pillarenvs whose trees are cached.
_TREES = 100


class PillarMemory:
    """Cache of one worker process for the compilations of pillar: rendered texts, trees of pillar files, and Git
    mirrors.
    """

    def __init__(self) -> None:
        self.texts = RenderMemory()
        self._mirrors: dict[Path, list[Mirror]] = {}
        self._files: dict[tuple[str, ...], Files] = {}

    def files(self, key: tuple[str, ...], make: Callable[[], Files]) -> Files:
        """Return the cached tree of pillar files for ``key``; on the first call, make the tree with ``make``.

        ``key`` must hold everything that the tree depends on.
        """
        if key not in self._files:
            if len(self._files) >= _TREES:
                # Minions may request any pillarenv, so the cache must be bounded.
                self._files.clear()
            self._files[key] = make()
        return self._files[key]

    def mirror(self, directory: Path, remote: GitRemote) -> Mirror:
        """Return the mirror of a git repository from the cache, with the trees that it has read so far.

        The first call for a repository makes the mirror.
        """
        known = self._mirrors.setdefault(directory, [])
        found = next((mirror for mirror in known if mirror.remote == remote), None)
        if found is None:
            known.append(found := Mirror(directory, remote))
        return found

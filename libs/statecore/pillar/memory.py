"""What a process remembers from one compilation of pillar to the next: nothing of it is any minion's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from statecore.model.ports import Files
from statecore.render.memory import RenderMemory
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import GitRemote

#: Environments whose trees are remembered.
_TREES = 100


class PillarMemory:
    """One for a worker."""

    def __init__(self) -> None:
        self.texts = RenderMemory()
        self._mirrors: dict[Path, list[Mirror]] = {}
        self._files: dict[tuple[str, ...], Files] = {}

    def files(self, key: tuple[str, ...], make: Callable[[], Files]) -> Files:
        """The pillar tree of environments, with the lists that it keeps. ``key``: all that it depends on."""
        if key not in self._files:
            if len(self._files) >= _TREES:
                # Minions may name any environment.
                self._files.clear()
            self._files[key] = make()
        return self._files[key]

    def mirror(self, directory: Path, remote: GitRemote) -> Mirror:
        """The mirror of a remote, with the trees that it has read."""
        known = self._mirrors.setdefault(directory, [])
        found = next((mirror for mirror in known if mirror.remote == remote), None)
        if found is None:
            known.append(found := Mirror(directory, remote))
        return found

"""Fetches Git remotes and updates users' fileserver backends in threads, so that a slow server does not block maintenance."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from saltern.kit.trees.updates import Update, fetched
from statecore.model.errors import StatecoreError
from statecore.sources.fileserver.users import UserFiles
from statecore.sources.gitrepos.mirror import Mirror

_LOG = logging.getLogger("saltern.maintenance")


@dataclass
class Fetches:
    """The Git remotes of the master, the times at which each is fetched, and the round of fetches in progress.

    There is at most one round at a time.
    """

    mirrors: Sequence[Mirror]
    #: Fetches the mirrors; may take minutes.
    fetch: Callable[[Sequence[Mirror]], list[Update]] = fetched
    _due: dict[tuple[str, Path], float] = field(default_factory=dict)
    _done: queue.SimpleQueue[list[Update]] = field(default_factory=queue.SimpleQueue)
    _round_running: bool = False

    def poll(self, now: float) -> list[Update]:
        """Return the results of the last round of fetches if it has ended, and start the next round.

        ``now``: seconds of a monotonic clock.
        """
        ended: list[Update] = []
        if self._round_running:
            try:
                ended = self._done.get_nowait()
            except queue.Empty:
                return []
            self._round_running = False
        due = [mirror for mirror in self.mirrors if self._due.get(_key(mirror), now) <= now]
        if due:
            for mirror in due:
                self._due[_key(mirror)] = now + max(1, mirror.remote.update_interval)
            self._round_running = True
            # A daemon thread: if the process ends, git still leaves each mirror in its old or its new state.
            threading.Thread(target=self._work, args=(due,), name="fetches", daemon=True).start()
        return ended

    def _work(self, due: Sequence[Mirror]) -> None:
        ended: list[Update] = []
        try:
            ended = self.fetch(due)
        finally:
            self._done.put(ended)


@dataclass
class BackendUpdates:
    """Users' fileserver backends, updated one after the other in a thread, one round at a time."""

    backends: Sequence[UserFiles]
    _round: threading.Thread | None = None

    def start_round(self) -> None:
        """Start to update the users' fileserver backends, unless an update is in progress."""
        if self.backends and (self._round is None or not self._round.is_alive()):
            self._round = threading.Thread(target=self._work, name="backends", daemon=True)
            self._round.start()

    def _work(self) -> None:
        for backend in self.backends:
            try:
                backend.update()
            except StatecoreError as error:
                _LOG.error("%s", error)


def _key(mirror: Mirror) -> tuple[str, Path]:
    return mirror.remote.role, mirror.place

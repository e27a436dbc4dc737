"""What jobs needed, loaded for the jobs after them: a jobber tells which parts of the engine it loaded, the zygote loads them too.

A minion that nobody asks for anything stays small, and one that runs states has them loaded: its second job of a kind is
forked with all that the first one had to read.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import select
import sys
from collections import deque
from collections.abc import Iterable

#: Parts of the engine; users' modules are loaded under other names, and anew for each job.
_ENGINE = "statecore."

#: Bytes that the kernel writes as one piece whoever else writes.
_PIECE = select.PIPE_BUF


class Preload:
    """A pipe from jobbers to the process that they are forked from, and what came through it. Made before the first fork."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        # Neither end ever waits: a lesson that is lost comes again with the next job.
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self.mark_loaded()
        self._waiting: deque[str] = deque()
        self._rest = b""

    def fileno(self) -> int:
        """Readable when a jobber has told something."""
        return self._reader

    def mark_loaded(self) -> None:
        """What is loaded now is no news. To be called before a fork."""
        self._known = len(sys.modules)

    def _loaded_since_fork(self) -> list[str]:
        """Parts of the engine that were loaded since: the last names. To look at all would copy the pages that names are in."""
        since = itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - self._known))
        return sorted(name for name in since if name.startswith(_ENGINE))

    def report(self) -> None:
        """In a jobber: names of what was loaded since the fork."""
        with contextlib.suppress(BlockingIOError):
            for piece in _pieces(self._loaded_since_fork()):
                os.write(self._writer, piece)

    def receive(self) -> None:
        """Takes in what jobbers told."""
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self._reader, 65536):
                *names, self._rest = (self._rest + block).split(b"\n")
                self._waiting.extend(name.decode() for name in names)

    @property
    def waiting(self) -> bool:
        """Whether there is something left to load."""
        return bool(self._waiting)

    def load_one(self) -> None:
        """Loads one part: between two of them a job can be forked. After the last one all that lives is shared for good."""
        name = self._waiting.popleft()
        if name not in sys.modules:
            # A library that it needs may have been taken away since.
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        if not self._waiting:
            share()


def share() -> None:
    """What lives now is shared by all jobbers: a collection in one of them would copy every page of it."""
    gc.collect()
    gc.freeze()


def _pieces(names: Iterable[str]) -> Iterable[bytes]:
    piece = b""
    for name in names:
        line = f"{name}\n".encode()
        if len(piece) + len(line) > _PIECE:
            yield piece
            piece = b""
        piece += line
    if piece:
        yield piece

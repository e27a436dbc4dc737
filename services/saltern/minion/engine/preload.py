"""Preloading: the zygote imports the modules of the engine that earlier jobs needed, so that later jobs find them loaded.

Each jobber reports the modules it imported over a pipe. A minion that runs no jobs stays small; the second job of a kind
imports nothing.
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

#: Prefix of the engine's modules. Users' modules have other names and are loaded anew for each job.
_ENGINE = "statecore."

#: Bytes that a pipe takes in one piece, even if several processes write.
_PIECE = select.PIPE_BUF


class Preload:
    """The pipe over which jobbers report imported modules to the zygote, and the reported modules.

    Create it before the first fork.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        # Neither end waits: a lost report is repeated by the next job.
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self.mark_loaded()
        self._waiting: deque[str] = deque()
        self._rest = b""

    def fileno(self) -> int:
        """Return the file descriptor that becomes readable after a jobber's report."""
        return self._reader

    def mark_loaded(self) -> None:
        """Record which modules are loaded. Call before each fork: modules loaded later are reported to the zygote."""
        self._known = len(sys.modules)

    def _loaded_since_fork(self) -> list[str]:
        """Return the names of the engine's modules that were imported since the fork.

        Only the end of ``sys.modules`` is read: reading all names would copy the memory pages that hold them.
        """
        since = itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - self._known))
        return sorted(name for name in since if name.startswith(_ENGINE))

    def report(self) -> None:
        """Write the names of the modules that this jobber imported to the zygote's pipe."""
        with contextlib.suppress(BlockingIOError):
            for piece in _pieces(self._loaded_since_fork()):
                os.write(self._writer, piece)

    def receive(self) -> None:
        """Read the jobbers' reports of imported modules from the pipe."""
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self._reader, 65536):
                *names, self._rest = (self._rest + block).split(b"\n")
                self._waiting.extend(name.decode() for name in names)

    @property
    def waiting(self) -> bool:
        """Return whether the zygote still has reported modules to import."""
        return bool(self._waiting)

    def load_one(self) -> None:
        """Import one reported module; the zygote can fork a job before the next. After the last module, call ``share``."""
        name = self._waiting.popleft()
        if name not in sys.modules:
            # A library that the module needs may have been removed since.
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        if not self._waiting:
            share()


def share() -> None:
    """Exclude all current objects from garbage collection: a collection in a jobber would copy every memory page of them.

    CPython's cache of looked up attributes is emptied, because each entry that a jobber replaces would copy the page of its name.
    """
    gc.collect()
    gc.freeze()
    if sys.version_info < (3, 12):
        # Later versions do not count references to such names.
        sys._clear_type_cache()


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

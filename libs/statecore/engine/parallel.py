"""States with ``parallel: True``: each in a forked child, its entry back through a pipe (seed 003).

A child has everything its parent had loaded; what it changes in memory is lost with it, so only its entry counts.
"""

from __future__ import annotations

import logging
import os
import selectors
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from statecore.compile.graph import Node
from statecore.engine.machine import CallState
from statecore.model.types import RunningEntry

log = logging.getLogger(__name__)

_BLOCK = 65536


@dataclass(slots=True)
class _Child:
    """A state that runs in a process of its own."""

    instruction: CallState
    pid: int
    pipe: int
    received: bytearray = field(default_factory=bytearray)


@dataclass(slots=True)
class Children:
    """The states that run now."""

    _running: dict[Node, _Child] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._running)

    def start(self, instruction: CallState, work: Callable[[], RunningEntry]) -> None:
        """Forks; the child does the work. Raises OSError when there can be no more processes."""
        ours, theirs = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(ours)
            os.close(theirs)
            raise
        if not pid:
            os.close(ours)
            _serve(theirs, work)
        os.close(theirs)
        self._running[instruction.node] = _Child(instruction, pid, ours)

    def finished(self, nodes: Collection[Node]) -> tuple[CallState, RunningEntry]:
        """Waits for one of these; its instruction and what came of it."""
        with selectors.DefaultSelector() as selector:
            for node in nodes:
                selector.register(self._running[node].pipe, selectors.EVENT_READ, node)
            while True:
                for key, _ in selector.select():
                    child = self._running[key.data]
                    block = os.read(child.pipe, _BLOCK)
                    child.received += block
                    if not block:
                        return child.instruction, self._ended(self._running.pop(key.data))

    def all(self) -> frozenset[Node]:
        """The nodes whose states run."""
        return frozenset(self._running)

    def _ended(self, child: _Child) -> RunningEntry:
        os.close(child.pipe)
        _, status = os.waitpid(child.pid, 0)
        low = child.instruction.low
        import pickle

        try:
            entry: RunningEntry = pickle.loads(child.received)
        except (pickle.UnpicklingError, EOFError):
            code = os.waitstatus_to_exitcode(status)
            how = f"it was ended by signal {-code}" if code < 0 else f"exit code {code}"
            comment = f"Parallel process failed to return: {how}"
            entry = {"name": low["name"], "changes": {}, "result": False, "comment": comment}
        return {**entry, "__parallel__": True}


def _serve(pipe: int, work: Callable[[], RunningEntry]) -> None:
    """The child's whole life. Nothing of the parent's is flushed, closed or run on the way out."""
    code = 1
    try:
        answer = _packed(work())
        with os.fdopen(pipe, "wb") as file:
            file.write(answer)
        code = 0
    except BaseException:
        log.exception("A state that ran in parallel did not return")
    finally:
        os._exit(code)


def _packed(entry: RunningEntry) -> bytes:
    import pickle

    try:
        return pickle.dumps(entry)
    except (pickle.PicklingError, TypeError, AttributeError):
        # A module may return anything; what cannot leave the process is told as text.
        return pickle.dumps(_plain(entry))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else str(value)

"""States with ``parallel: True``: each runs in a forked child process, which sends its entry of the running dictionary
back through a pipe.

A child has all modules that its parent had loaded. Its changes in memory end with the child: only its entry of the
running dictionary reaches the parent.

Source: docs/state-system.md#parallel
"""

from __future__ import annotations

import logging
import os
import selectors
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from statecore.compile.graph import Node
from statecore.engine.machine import CallState
from statecore.model.types import RunningEntry

log = logging.getLogger(__name__)

_BLOCK = 65536


@dataclass(slots=True)
class _Child:
    """Child process that runs one state: its instruction, its pid, and the reading end of the pipe for its result."""

    instruction: CallState
    pid: int
    pipe: int
    received: bytearray = field(default_factory=bytearray)


@dataclass(slots=True)
class Children:
    """Child processes of a state run: each runs one state with ``parallel: True``."""

    _running: dict[Node, _Child] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._running)

    def start(self, instruction: CallState, work: Callable[[], RunningEntry]) -> None:
        """Fork a child process that calls ``work`` and writes the returned entry of the running dictionary to a pipe;
        ``finished`` reads it. Return nothing. Raise OSError if no process can be started.
        """
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
        """Wait until one of these states (nodes of the run list) ends in its child process. Return (its instruction,
        its entry of the running dictionary).

        A child process that died gives a failed entry.
        """
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
        """Return the nodes (states of the run list) that run in child processes now."""
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
    """Run ``work`` in the child process, write the RunningEntry (a state's result) that it returns to the pipe, and
    end the process.

    If ``work`` fails, nothing is written and the exit code is 1. ``os._exit`` skips exit handlers and the buffers that
    the child has from its parent.
    """
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
        # A user's module may return any object; objects that cannot be pickled are sent as text.
        return pickle.dumps(_plain(entry))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else str(value)

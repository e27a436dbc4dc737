"""A minion that is connected to several masters at once, with one main process for each master.

A master that does not answer therefore delays no other master. This process starts the main processes, restarts one that died,
and answers the health probes. One byte of shared memory for each main process says whether it is ready.
The main processes end when this process ends, even if it is killed.
"""

from __future__ import annotations

import dataclasses
import logging
import mmap
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.config.reading import ConfigError
from saltern.kit.process.health import Health
from saltern.kit.process.metrics import new_metrics
from saltern.kit.process.process import EX_CONFIG, Stop
from saltern.minion.duties.leadership import Leadership
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import Masters
from saltern.minion.master.sign_in import Ended, Rejected, Shutdown
from saltern.minion.minion import Minion

_LOG = logging.getLogger("saltern.minion")

#: Exit code of a main process whose master rejected the minion's key.
_EX_REJECTED = 77

#: Seconds before a main process that died is restarted.
_PAUSE = 2.0

#: Seconds between two checks of the main processes.
_TICK = 0.2

#: Seconds for main processes to end; longer than each waits for its jobs.
_GRACE = 8.0

_READY = 1


class _Board:
    """Shared memory with one byte for each main process of the minion: 1 if the process is ready."""

    def __init__(self, size: int) -> None:
        self._memory = mmap.mmap(-1, max(size, 1))

    def put(self, index: int, value: int) -> None:
        self._memory[index] = value

    def ready(self, index: int) -> bool:
        return self._memory[index] == _READY


@dataclass(frozen=True)
class _ChildShutdown(Shutdown):
    """A Shutdown for the main process of one of several masters: ``ended`` is also True when the parent process has
    ended.
    """

    parent: int

    def ended(self) -> bool:
        return super().ended() or os.getppid() != self.parent


class _BoardHealth(Health):
    """The health of one of several main processes: writes to shared memory whether the process is ready.

    The parent process reads it and answers the HTTP probes.
    """

    def __init__(self, board: _Board, index: int) -> None:
        super().__init__("minion", new_metrics("minion").registry)
        self._board = board
        self._index = index

    def record_iteration(self) -> None:
        super().record_iteration()
        self._board.put(self._index, 0 if self.unready() else _READY)


def run_at_once(options: MinionOptions, masters: Sequence[str], shutdown: Shutdown) -> None:
    """Run a main process of the minion for each master until the minion is asked to end.

    Raise Rejected if no master accepts the key of this minion, and ConfigError if a main process cannot use its configuration.
    """
    # Make the key pair before there are several processes that would each make one.
    Identity.load(options.id, Path(options.pki_dir), options.keysize)
    board, start = _Board(len(masters)), os.urandom(8).hex()
    shutdown.health.check("master", lambda: _unready(board, masters))
    running: dict[int, int] = {}
    due = dict.fromkeys(range(len(masters)), 0.0)
    try:
        while not shutdown.ended():
            now = time.monotonic()
            for index in [one for one, when in due.items() if when <= now]:
                del due[index]
                running[_start(options, masters, index, board, start)] = index
            for index, code in _ended(running):
                board.put(index, 0)
                if code == _EX_REJECTED:
                    continue
                if code == EX_CONFIG:
                    raise ConfigError(f"master {masters[index]}: its process cannot use the configuration; see the log")
                _LOG.error("the process of the master %s ended with %d; it is started again", masters[index], code)
                due[index] = now + _PAUSE
            if not running and not due:
                raise Rejected("all masters rejected the key of this minion")
            time.sleep(_TICK)
    finally:
        _end(running)


def _unready(board: _Board, masters: Sequence[str]) -> str | None:
    """Return the reason why no main process is ready; None as soon as one is ready, since the minion then receives jobs."""
    if any(board.ready(index) for index in range(len(masters))):
        return None
    return f"not signed in at any of {', '.join(masters)}, or no pillar yet"


def _ended(running: dict[int, int]) -> list[tuple[int, int]]:
    """Remove ended main processes from ``running`` and return (index of the master, exit code) for each."""
    found = []
    for pid in list(running):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            found.append((running.pop(pid), os.waitstatus_to_exitcode(status)))
    return found


def _end(running: dict[int, int]) -> None:
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while running and time.monotonic() < deadline:
        _ended(running)
        time.sleep(0.02)
    for pid in running:
        _LOG.warning("process %d did not end within %g s", pid, _GRACE)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _start(options: MinionOptions, masters: Sequence[str], index: int, board: _Board, start: str) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # The listening sockets of the health probes belong to the parent.
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))
        own = dataclasses.replace(options, master=masters[index])
        code = _child(own, masters, index, board, parent, Leadership(own, shared=True, start=start))
    except Exception:  # noqa: BLE001 - the process ends here, whatever happened
        _LOG.exception("the process of the master %s failed", masters[index])
    finally:
        logging.shutdown()
        os._exit(code)


def _child(
    options: MinionOptions, masters: Sequence[str], index: int, board: _Board, parent: int, leadership: Leadership
) -> int:
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop.request)
    shutdown = _ChildShutdown(stop, _BoardHealth(board, index), parent)
    minion = Minion(options, Masters(masters[index], tuple(masters)), leadership, shutdown)
    try:
        minion.run()
    except Ended:
        pass
    except Rejected as error:
        _LOG.critical("the master %s: %s", masters[index], error)
        return _EX_REJECTED
    except ConfigError as error:
        _LOG.critical("%s", error)
        return EX_CONFIG
    finally:
        minion.close()
        leadership.close()
    return 0

"""The processes of engines: one for each engine, started, watched and started again by their parent process.

The parent calls ``EngineProcesses.check`` every now and then; ``supervision`` decides when a process starts, and is killed.
Salt: salt/engines/__init__.py
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from saltern.kit.config.engine_rows import NOT_HERE, EngineRow
from saltern.kit.config.state_options import StateOptions
from saltern.kit.process.logs import LEVELS, configure
from saltern.kit.process.prefork import end_with_parent
from saltern.kit.process.supervision import Watched
from statecore.model.errors import CommandError, NotAvailable

_LOG = logging.getLogger("saltern.engines")

#: Seconds between SIGTERM and SIGKILL.
_GRACE = 1.5

#: Seconds between two looks for ended processes while all are being ended.
_TICK = 0.02


class EngineProcesses:
    """The processes of the configured engines, children of this process."""

    def __init__(self, rows: Sequence[EngineRow], run: Callable[[EngineRow], None]) -> None:
        """Prepare the processes; none is started. ``run`` runs an engine in its own process, until the engine ends."""
        self._rows = {row.name: row for row in rows if row.module not in NOT_HERE}
        self._run = run
        self._watched = {name: Watched(name, grace=_GRACE, wanted=False) for name in self._rows}
        for row in rows:
            if row.module in NOT_HERE:
                _LOG.error("the engine %s is not started: %s", row.name, NOT_HERE[row.module])

    def want(self, wanted: bool) -> None:
        """Set whether the engines must run. ``check`` then starts them; running engines are ended by ``stop`` only."""
        now = time.monotonic()
        for engine in self._watched.values():
            if wanted and not engine.wanted:
                engine.want(now)
            engine.wanted = wanted

    def check(self) -> None:
        """Log which engines have ended, and start those whose time to start has come. Returns at once."""
        now = time.monotonic()
        for engine in self._watched.values():
            if engine.pid:
                self._reap(engine, now)
            if engine.is_due(now):
                engine.began(self._fork(self._rows[engine.name]), now)
                _LOG.info("the engine %s starts (process %d)", engine.name, engine.pid)

    def stop(self) -> None:
        """End all engines, with the programs that they started. Returns after at most two seconds."""
        self.want(False)
        running = [engine for engine in self._watched.values() if engine.pid]
        for engine in running:
            engine.asked_to_end(time.monotonic())
            _signal_group(engine.pid, signal.SIGTERM)
        while any(engine.pid for engine in running):
            for engine in running:
                now = time.monotonic()
                if engine.pid and engine.kill_at <= now:
                    _LOG.warning("the engine %s did not end within %g seconds and is killed", engine.name, _GRACE)
                    _signal_group(engine.pid, signal.SIGKILL)
                    engine.killed()
                if engine.pid:
                    self._reap(engine, now)
            time.sleep(_TICK)

    def _reap(self, engine: Watched, now: float) -> None:
        pid, status = os.waitpid(engine.pid, os.WNOHANG)
        if not pid:
            return
        # The engine's programs would otherwise go on beside those of its next process.
        _signal_group(pid, signal.SIGKILL)
        pause = engine.ended(os.waitstatus_to_exitcode(status), now)
        if not engine.wanted:
            _LOG.info("the engine %s has ended: %s", engine.name, engine.last_end)
        else:
            # An unusable configuration may be one of the engine's own program: it is tried again as any other.
            engine.due_at = min(engine.due_at, now + 30.0)
            pause = min(pause, 30.0)
            _LOG.error("the engine %s ended: %s; it starts again in %g s", engine.name, engine.last_end, pause)

    def _fork(self, row: EngineRow) -> int:
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            self._become(row, parent)
        with contextlib.suppress(OSError):
            # The child does the same: whichever comes first.
            os.setpgid(pid, pid)
        return pid

    def _become(self, row: EngineRow, parent: int) -> NoReturn:
        code = 1
        try:
            os.setpgid(0, 0)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            end_with_parent(parent)
            self._run(row)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except (CommandError, NotAvailable) as error:
            _LOG.error("the engine %s failed: %s", row.name, error)
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; it is started again
            _LOG.exception("the engine %s failed: %s", row.name, error)
        finally:
            logging.shutdown()
            os._exit(code)


def name_logs(role: str, options: StateOptions, process: str) -> None:
    """Configure the log of this process so that its lines name it ``process``. The log level stays."""
    present = logging.getLogger().level
    level = next((name for name, number in LEVELS.items() if number == present), None)
    configure(role, options, level, process)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)

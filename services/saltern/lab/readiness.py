"""Waits until the lab's programs are ready. An error names those that are not, with the reason and the end of their logs."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from masterstore.errors import StoreError, StoreUnavailable
from masterstore.store import Store
from saltern.kit.process import probe
from saltern.lab.plan import LabError, Paths, Program
from saltern.lab.supervisor import Supervisor
from statecore.model.text_lines import lines_of

#: Seconds between two rounds of probes, and for each probe.
_ROUND = 0.1
_QUESTION = 2.0

#: Lines of a failed program's log in the error.
_TAIL_LINES = 8


def log_sizes(paths: Paths, programs: Iterable[Program]) -> dict[str, int]:
    """Return the map of program name to the current size of its log in bytes. An error message then quotes only the
    lines that were written after this size.
    """
    return {one.name: _size(paths.log_of(one.name)) for one in programs}


def why_not_ready(program: Program, store: Store) -> str | None:
    """Return the reason why a program of the lab is not ready; None if it is ready."""
    if not program.health_port:
        try:
            store.ping()
        except (StoreUnavailable, StoreError) as error:
            return str(error)
        return None
    try:
        return probe.ask(program.health_port, probe.READY, timeout=_QUESTION)
    except (OSError, http.client.HTTPException) as error:
        return f"no answer on its health port {program.health_port}: {error}"


@dataclass(frozen=True)
class Readiness:
    """Waits until the programs of one lab are ready."""

    supervisor: Supervisor
    store: Store
    paths: Paths
    #: Size of each log before the start, in bytes.
    sizes: Mapping[str, int]
    #: Longest wait in seconds.
    seconds: float

    def wait_for(self, programs: Iterable[Program]) -> None:
        """Wait until all these programs are ready. Raise LabError if one has ended for good, or after the longest wait."""
        deadline = time.monotonic() + self.seconds
        waiting = list(programs)
        while True:
            reasons = {one.name: why for one in waiting if (why := why_not_ready(one, self.store))}
            waiting = [one for one in waiting if one.name in reasons]
            if not waiting:
                return
            ended = self._ended(reasons)
            if ended:
                raise LabError(self._report(ended, "does not stay up"))
            if time.monotonic() > deadline:
                raise LabError(self._report(reasons, f"is not ready after {self.seconds:g} s"))
            time.sleep(_ROUND)

    def _ended(self, names: Iterable[str]) -> dict[str, str]:
        states = self.supervisor.states()
        return {name: states[name].description for name in names if name in states and not states[name].under_way}

    def _report(self, reasons: Mapping[str, str], what: str) -> str:
        parts = []
        for name, why in reasons.items():
            log = self.paths.log_of(name)
            tail = last_lines(log, self.sizes.get(name, 0))
            parts.append(f"{name} {what}: {why}")
            parts.append(f"  {log}" + (" ends:" if tail else " says nothing"))
            parts += [f"  | {line}" for line in tail]
        return "\n".join(parts)


def last_lines(log: Path, start: int) -> list[str]:
    """Return the last lines that were written to a log after byte ``start``; of the whole file if it was truncated since."""
    try:
        content = log.read_bytes()
    except OSError:
        return []
    return lines_of(content[start if start <= len(content) else 0 :].decode("utf-8", "replace"))[-_TAIL_LINES:]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

"""A worker and a minion that break a promise on purpose, to prove that the accountant finds it.

    python -m tests.chaos.broken forgets -c DIR      a worker that acknowledges results and does not store them
    python -m tests.chaos.broken doubles -c DIR      a minion that runs each job twice

Saltern's code does not know them: this module replaces functions of it in its own process.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from saltern.minion.jobs import jobber
from saltern.minion.main import main as minion
from saltern.mworker import commands, request_handler
from saltern.mworker.main import main as mworker
from saltern.mworker.worker_context import WorkerContext

#: One result of so many is not kept.
FORGOTTEN = 3


def forgets(argv: Sequence[str]) -> int:
    """Run an mworker that acknowledges every third result of a counted job without storing it. Return its exit code."""
    row = commands.MINION_COMMANDS["_return"]
    numbers = itertools.count(1)

    def store(context: WorkerContext, minion_id: str, load: Mapping[str, Any]) -> Any:
        is_counted = load.get("fun") == "chaos.run"
        return None if is_counted and next(numbers) % FORGOTTEN == 0 else row.handler(context, minion_id, load)

    request_handler.MINION_COMMANDS = {**commands.MINION_COMMANDS, "_return": replace(row, handler=store)}  # type: ignore[attr-defined]
    return mworker(argv)


def doubles(argv: Sequence[str]) -> int:
    """Run a minion that executes each job twice. Return its exit code."""
    run = jobber.run

    def twice(*words: Any, **named: Any) -> dict[str, Any]:
        run(*words, **named)
        return run(*words, **named)

    jobber.run = twice
    return minion(argv)


#: Promise -> who breaks it.
BROKEN: Mapping[str, Callable[[Sequence[str]], int]] = {"forgets": forgets, "doubles": doubles}


def words(name: str) -> list[str]:
    """Return the command line that starts the broken role of this name (``forgets`` or ``doubles``)."""
    return [sys.executable, "-m", "tests.chaos.broken", name]


if __name__ == "__main__":
    sys.exit(BROKEN[sys.argv[1]](sys.argv[2:]))

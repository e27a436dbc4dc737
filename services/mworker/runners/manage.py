"""Questions about minions: who answers, who does not."""

from __future__ import annotations

import time
from typing import Any

from services.mworker.runners.runner import RunnerTools


def status(
    tools: RunnerTools,
    output: bool = True,
    tgt: Any = "*",
    tgt_type: str = "glob",
    timeout: Any = None,
    gather_job_timeout: Any = None,
) -> dict[str, list[str]]:
    """{"up": minions that answer a ping in time, "down": accepted minions that do not}."""
    asked = tools.ask(tgt, tgt_type, "test.ping", timeout=_seconds(timeout))
    return {"up": sorted(asked.returns), "down": sorted(set(asked.expected) - asked.returns.keys())}


def up(
    tools: RunnerTools, tgt: Any = "*", tgt_type: str = "glob", timeout: Any = None, gather_job_timeout: Any = None
) -> list[str]:
    """Minions that answer a ping in time."""
    return status(tools, tgt=tgt, tgt_type=tgt_type, timeout=timeout)["up"]


def down(
    tools: RunnerTools,
    removekeys: bool = False,
    tgt: Any = "*",
    tgt_type: str = "glob",
    timeout: Any = None,
    gather_job_timeout: Any = None,
) -> list[str]:
    """Accepted minions that do not answer a ping in time; with ``removekeys`` their keys are deleted."""
    silent = status(tools, tgt=tgt, tgt_type=tgt_type, timeout=timeout)["down"]
    if removekeys and silent:
        tools.control.call("wheel", fun="key.delete", kwarg={"match": silent})
    return silent


def present(tools: RunnerTools) -> list[str]:
    """Minions that the master heard of within ``presence_window`` seconds; nobody is asked."""
    since = int((time.time() - tools.options.presence_window) * 1000)
    return sorted(tools.store.presence.present(since))


def _seconds(timeout: Any) -> float | None:
    return None if timeout is None else float(timeout)

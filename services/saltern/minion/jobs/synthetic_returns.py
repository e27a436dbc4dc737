"""Returns that the minion makes itself, of jobs whose own result there is not: every job has an end, and says why."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from typing import Any

#: What a return takes over from the job (as ``jobber.run`` does).
_KEPT = ("user", "metadata", "ret_config", "ret_kwargs")


def ending(load: Mapping[str, Any], jid: str, why: str) -> dict[str, Any]:
    """The failed ``_return`` of a job. ``load`` may be empty: what was published is lost."""
    base = {"cmd": "_return", "jid": jid, "fun": load.get("fun", "unknown"), "fun_args": list(load.get("arg") or ())}
    base |= {name: load[name] for name in _KEPT if name in load}
    return base | {"return": why, "retcode": 1, "success": False, "out": "nested"}


def killed(began_ms: int, how: str = "") -> str:
    """The jobber is gone and left no result. ``how``: what became of its process, where that is known."""
    what = f"the process of this job {how}" if how else "the minion was killed while it ran this job"
    return (
        f"JobKilled: {what}; it began at {_moment(began_ms)}. What it had done until then is done, and it was not run again: "
        "publish it again if it may run twice."
    )


def too_late(received_ms: int) -> str:
    """The job was received, and could not begin in its time."""
    return (
        f"JobExpired: the minion was killed or stopped before it began this job, which it received at {_moment(received_ms)}, "
        "and came back too late to run it (option replay_window of the master, salt --no-replay). It has not run."
    )


def refused(waiting: int, most: int) -> str:
    """There is no room for what it would return."""
    return (
        f"JobRefused: {waiting} bytes of results wait on the minion for the master, more than spool_max_bytes ({most}), and its "
        "spool_policy is to refuse new jobs until they are sent. It has not run."
    )


def how_it_ended(code: int) -> str:
    """The words for an exit code as ``os.waitstatus_to_exitcode`` gives it."""
    if code >= 0:
        return f"ended with exit code {code} and left no result (the minion's log says why)"
    try:
        name = f" ({signal.strsignal(-code)})"
    except ValueError:
        name = ""
    return f"was killed by signal {-code}{name}"


def _moment(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ms / 1000)) if ms else "an unknown time"

"""The status of one job: the state of each of its minions, its times, and when the master last heard of the minion.

Runners show it in words and dates (``shown_states``), the control command ``job_status`` in numbers (``status_of``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from masterstore.jobs import Job, failed
from masterstore.life import OPEN, Life, State
from masterstore.store import Store
from saltern.kit.links.answers import MinionJobState

#: Counters of a job that ``status_of`` returns.
_COUNTERS = ("expected", "answered", "returned", "failed", "late", "duplicates")


def status_of(store: Store, job: Job, now_ms: int, only: Collection[str] | None = None) -> dict[str, object]:
    """Return {jid, fun, user, tgt, now, created, ended, complete, counts, minions} of a job that has load and meta.

    Times are milliseconds since 1970; ``ended`` is None while the job runs. ``minions`` is {id: {state, since, late,
    times, seen}}: ``times`` maps each state to its time, ``seen`` is the time of the minion's last request (None:
    never) and is left out for minions that have returned. ``only``: minions to which the answer is restricted; None: all.
    Counters are then counted from their states, ``failed`` from their returns.
    """
    lives = store.jobs.life(job.jid)
    counts = {name: _whole(job.meta.get(name)) for name in _COUNTERS}
    if only is not None:
        lives = {minion: life for minion, life in lives.items() if minion in only}
        counts |= _counted(store, job.jid, lives)
    seen = store.presence.last_seen([minion for minion, life in lives.items() if life.state is not State.RETURNED])
    named = {name: job.load.get(name) for name in ("fun", "user", "tgt")}
    ended = job.meta.get("ended")
    return {
        "jid": job.jid,
        **named,
        "now": now_ms,
        "created": _whole(job.meta.get("created")),
        "ended": _whole(ended) if ended else None,
        "complete": is_complete(lives),
        "counts": counts,
        "minions": {minion: _numbers(life, seen.get(minion)) for minion, life in lives.items()},
    }


def _counted(store: Store, jid: str, lives: Mapping[str, Life]) -> dict[str, int]:
    returned = [minion for minion, life in lives.items() if life.state is State.RETURNED]
    bad = sum(failed(ret) for ret in store.jobs.returns(jid, returned).values()) if returned else 0
    late = sum(life.late for life in lives.values())
    return {
        "expected": len(lives),
        "answered": len(returned),
        "returned": len(returned),
        "failed": bad,
        "late": late,
    }


def is_complete(lives: Mapping[str, Life]) -> bool:
    """Return whether no minion of the job is expected to return any more."""
    return all(life.state not in OPEN for life in lives.values())


def shown_states(lives: Mapping[str, Life], seen: Mapping[str, int]) -> dict[str, dict[str, object]]:
    """Return {minion id: {State, time of each state by its name, Late, Last seen}}, with times written as StartTime."""
    return {minion: _words(life, seen.get(minion)) for minion, life in lives.items()}


def shown_time(ms: int) -> str:
    """Return a time (milliseconds since 1970) as UTC text in the form of the field StartTime of job lists."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y, %b %d %H:%M:%S.%f")


def silence(state: State) -> str:
    """Return the text that is shown in place of a missing return for a job in this state on the minion: it says that
    the minion works on the job, or begins with Salt's "Minion did not return".
    """
    return _SILENCE.get(state, "Minion did not return")


_SILENCE: Mapping[State, str] = {
    State.DELIVERED: "Minion has the job and has not returned yet",
    State.STARTED: "Minion works on the job and has not returned yet",
    State.OFFLINE: "Minion did not return: it was offline",
    State.LOST: "Minion did not return: it had the job, and fell silent",
    State.CANCELLED: "Minion did not return: the job was called off",
    State.EXPIRED: "Minion did not return: the job was not delivered in time, and is no longer sent",
}


def not_a_jid(text: str) -> str:
    """Return the error message for a malformed JID."""
    return f"'{text}' is not a JID: 20 digits, the UTC time of the job to the microsecond"


def unknown_job(jid: str, kept: int) -> str:
    """Return the error message for a JID that is not in the job cache. ``kept``: seconds for which jobs are kept."""
    return (
        f"no job with the JID {jid} is in the job cache; jobs are kept for {kept} s "
        "(keep_jobs_seconds), and jobs.list_jobs lists them"
    )


def _numbers(life: Life, seen: int | None) -> MinionJobState:
    times = {state.value: ms for state, ms in life.times.items()}
    shown: MinionJobState = {
        "state": life.state.value,
        "since": life.times[life.state],
        "late": life.late,
        "times": times,
    }
    if life.state is not State.RETURNED:
        shown["seen"] = seen
    return shown


def _words(life: Life, seen: int | None) -> dict[str, object]:
    shown: dict[str, object] = {"State": life.state.value}
    shown |= {state.value.capitalize(): shown_time(ms) for state, ms in life.times.items()}
    if life.late:
        shown["Late"] = True
    if life.state is not State.RETURNED:
        shown["Last seen"] = "never" if seen is None else shown_time(seen)
    return shown


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0

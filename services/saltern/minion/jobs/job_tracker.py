"""Tracks each job of the minion from its publication to its return, in the main process.

All decisions are based on the journal, so a restarted main process continues where a killed one stopped.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator, Mapping
from typing import cast

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.ipc.messages import JobLoad, ReturnLoad, ZygoteRequest
from saltern.minion.jobs.journal import Journal, JournalEntry, JournalStep, may_still_run
from saltern.minion.jobs.spool import Spool
from statecore.model.redaction import shown_arguments

_LOG = logging.getLogger("saltern.minion")

#: Milliseconds that a job must have run before the master is told that it runs. A shorter job just returns.
_REPORT_AFTER = 1000

#: Milliseconds between two such reports of one job: the master gives up a job whose minion is silent.
_REPORT_AGAIN = 120_000

#: Seconds between two checks of the journal.
_EVERY = 0.5

#: Bytes beyond ``spool_max_bytes`` that the returns of refused jobs may use.
_FOR_REFUSALS = 1024 * 1024


class JobTracker:
    """Follows each job that a minion receives from its master until a return exists for it. It starts no process itself.

    A received job is written to the journal (a file of jobs in progress, which survives a restart), and ``take`` returns the
    request for the zygote, the process that forks a child process, the jobber, for each job. A job that cannot return by itself
    gets a failed return in the spool (the directory of returns that wait for the master): it was refused because the spool is
    full, it is too old after a restart, or its jobber died.
    """

    def __init__(self, options: MinionOptions, journal: Journal, spool: Spool) -> None:
        self._options = options
        self._journal = journal
        self._spool = spool
        self._next_look = 0.0
        #: JID -> time of the last report to the master that the job runs, in milliseconds since 1970.
        self._reported: dict[str, int] = {}
        #: Jobs without a jobber at the last check. They are checked twice: the message about the jobber's end may be on
        #: its way.
        self._gone: set[str] = set()
        #: JID -> how its jobber ended, as reported by the zygote.
        self._exit_texts: dict[str, str] = {}

    def __bool__(self) -> bool:
        """Return whether any job is in progress."""
        return bool(self._journal)

    def __contains__(self, jid: str) -> bool:
        return jid in self._journal

    def take(self, job: Mapping[str, object]) -> ZygoteRequest | None:
        """Enter a published job into the journal and return the request that makes the zygote run it.

        Return None if the spool is full: the job is refused, and a failed return is spooled for it.
        """
        jid = str(job["jid"])
        if not self.has_room(jid):
            self._journal.remember(jid)
            waiting = self._spool.size()
            if waiting <= self._options.spool_max_bytes + _FOR_REFUSALS:
                self._put(failed_return(job, jid, refused_text(waiting, self._options.spool_max_bytes)))
            return None
        # Checked by job_fault when it arrived.
        load = cast("JobLoad", dict(job))
        return {"journalled": load} if self._journal.receive(job) else {"job": load}

    def has_room(self, jid: str) -> bool:
        """Return whether the spool has room for the return of one more job.

        With ``spool_policy: drop_oldest`` old returns are dropped to make room, and the result is True.
        """
        most = self._options.spool_max_bytes
        if self._spool.size() <= most:
            return True
        if self._options.spool_policy == "drop_oldest":
            self._spool.shed(most)
            return True
        _LOG.error(
            "the job is refused: the spool has more than spool_max_bytes of returns for the master", extra={"jid": jid}
        )
        return False

    def resume(self) -> Iterator[ZygoteRequest]:
        """Yield a zygote request for each job in the journal that was received and not begun. Call it when a new
        zygote has started.

        A job that may no longer run (``may_still_run``) gets a failed return instead.
        """
        for entry in self._journal.entries():
            if entry.step is not JournalStep.RECEIVED:
                continue
            load, received = self._journal.load(entry), entry.since_ms()
            if load is None:
                continue
            if may_still_run(load, received, int(time.time() * 1000), self._options.replay_window):
                _LOG.info("starting %s, which was received before the restart", load["fun"], extra={"jid": entry.jid})
                yield {"journalled": load}
            elif self._put(failed_return(load, entry.jid, expired_text(received))):
                self._journal.end(entry)

    def job_died(self, jid: str, code: int) -> None:
        """Record how the jobber of a job ended; the next ``check`` then spools a failed return with this reason.

        ``code``: exit code (not 0); a negative code is the number of a signal.
        """
        self._exit_texts[jid] = exit_text(code)
        self._next_look = 0.0

    def check(self, now: float) -> list[dict[str, object]]:
        """Return the reports that jobs run, to be sent to the master, as [{"jid", "sign": "started", "ms"}].

        Also spool a failed return for each job whose jobber has ended without a return. ``now``: monotonic seconds.
        The journal is read at most every 0.5 seconds; in between the list is empty.
        """
        if now < self._next_look:
            return []
        self._next_look = now + _EVERY
        if self._options.spool_policy == "drop_oldest" and self._spool.size() > self._options.spool_max_bytes:
            self._spool.shed(self._options.spool_max_bytes)
        if not self._journal:
            return []
        running = [entry for entry in self._journal.entries() if entry.step is JournalStep.BEGAN]
        gone = {entry.jid for entry in running if not entry.alive()}
        for entry in running:
            if entry.jid in gone and (entry.jid in self._gone or entry.jid in self._exit_texts):
                self._end_lost_job(entry)
        self._gone = gone
        self._exit_texts = {jid: how for jid, how in self._exit_texts.items() if jid in gone}
        alive = [entry for entry in running if entry.jid not in gone]
        self._reported = {entry.jid: self._reported[entry.jid] for entry in alive if entry.jid in self._reported}
        return list(self._signs(alive))

    def _end_lost_job(self, entry: JournalEntry) -> None:
        """End a job whose jobber is gone: spool a failed return, unless its real return is in the spool, and end its
        journal entry.
        """
        how = self._exit_texts.pop(entry.jid, "")
        if not self._spool.holds(entry.jid):
            load: Mapping[str, object] = self._journal.load(entry) or {}
            _LOG.error("the job's process is gone and left no return", extra={"jid": entry.jid})
            if not self._put(failed_return(load, entry.jid, killed_text(entry.since_ms(), how))):
                return
        self._journal.end(entry)

    def _signs(self, running: list[JournalEntry]) -> Iterator[dict[str, object]]:
        now_ms = int(time.time() * 1000)
        for entry in running:
            began = entry.since_ms()
            reported = self._reported.get(entry.jid)
            if began and (now_ms - reported >= _REPORT_AGAIN if reported else now_ms - began >= _REPORT_AFTER):
                self._reported[entry.jid] = now_ms
                yield {"jid": entry.jid, "sign": "started", "ms": began}

    def _put(self, ret: Mapping[str, object]) -> bool:
        try:
            self._spool.put(ret)
        except OSError as error:
            _LOG.error(
                "the failed return of a job cannot be spooled: %s; it is tried again", error, extra={"jid": ret["jid"]}
            )
            return False
        return True


#: Fields of the published load that a return repeats (``jobber.run`` does the same).
_KEPT = ("user", "metadata", "ret_config", "ret_kwargs")


def failed_return(load: Mapping[str, object], jid: str, why: str) -> ReturnLoad:
    """Return the failed return of a job with the JID ``jid``, as a ``_return`` load whose value of ``return`` is ``why``.

    ``load`` is the job's publication; it may be empty if it is lost.
    """
    args = load.get("arg")
    failed: ReturnLoad = {
        "cmd": "_return",
        "jid": jid,
        "fun": load.get("fun", "unknown"),
        "fun_args": cast("list[object]", shown_arguments(load.get("fun"), list(args)))
        if isinstance(args, list | tuple)
        else [],
        "return": why,
        "retcode": 1,
        "success": False,
        "out": "nested",
    }
    return cast("ReturnLoad", {**failed, **{name: load[name] for name in _KEPT if name in load}})


def killed_text(began_ms: int, how: str = "") -> str:
    """Return the text for the failed return of a job whose jobber is gone.

    ``began_ms``: start of the job, milliseconds since 1970. ``how``: how the process ended, if known.
    """
    what = f"the process of this job {how}" if how else "the minion was killed while it ran this job"
    return (
        f"JobKilled: {what}; it began at {_moment(began_ms)}. What it had done until then is done, and it was not run again: "
        "publish it again if it may run twice."
    )


def expired_text(received_ms: int) -> str:
    """Return the text for the failed return of a job that was received at ``received_ms`` and could not start in time."""
    return (
        f"JobExpired: the minion was killed or stopped before it began this job, which it received at {_moment(received_ms)}, "
        "and came back too late to run it (option replay_window of the master, salt --no-replay). It has not run."
    )


def refused_text(waiting: int, most: int) -> str:
    """Return the text for the failed return of a job that was refused because the spool is full.

    ``waiting`` bytes are in the spool, ``most`` bytes are allowed.
    """
    return (
        f"JobRefused: {waiting} bytes of results wait on the minion for the master, more than spool_max_bytes ({most}), and its "
        "spool_policy is to refuse new jobs until they are sent. It has not run."
    )


def exit_text(code: int) -> str:
    """Return words for a process's exit code, such as "was killed by signal 9"; a negative code is the number of a signal."""
    if code >= 0:
        return f"ended with exit code {code} and left no result (the minion's log says why)"
    try:
        name = f" ({signal.strsignal(-code)})"
    except ValueError:
        name = ""
    return f"was killed by signal {-code}{name}"


def _moment(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ms / 1000)) if ms else "an unknown time"

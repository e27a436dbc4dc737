"""What a sender may see of a job.

A sender sees its own jobs whole, and so does whoever reads all jobs (``@jobs``, or the runner ``jobs.lookup_jid``). Of
others' jobs it sees the states and returns of the minions that its rules cover, and the arguments only if it might have
run the job itself. A job of which it sees nothing does not exist for it. A job of a runner or wheel function is seen whole
by those who might have started it, and by nobody else.

Source: docs/security.md#who-sees-which-jobs
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from masterstore.jobs import Job
from saltern.kit.links.control import ControlError
from saltern.kit.links.rights import Call, Kind
from saltern.mworker.authorise import covered, decided, matching_of
from saltern.mworker.commands.control import calls_of
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext

#: Fields of a job's load that are shown of a job that the sender might not have run.
_PLAIN = ("jid", "fun", "user")

#: Counters and times of a job that are shown of a job of which only some minions are seen.
_PLAIN_META = ("created", "ended", "user", "fun")

#: First part of the name of a master's function, and the kind of request that starts it.
_MASTERS = {"runner": Kind.RUNNER, "wheel": Kind.WHEEL}


@dataclass(frozen=True)
class JobView:
    """What one sender sees of one job."""

    #: Whose states and returns are seen; None: those of all minions.
    minions: frozenset[str] | None = None
    #: The arguments, the target and the metadata are seen.
    arguments: bool = True

    @property
    def whole(self) -> bool:
        """Return whether nothing of the job is hidden."""
        return self.minions is None and self.arguments

    def of(self, wanted: Sequence[str] | None) -> list[str] | None:
        """Return those of the wanted minions (None: all) that are seen; None: all of the job's."""
        if self.minions is None:
            return None if wanted is None else list(wanted)
        return sorted(self.minions) if wanted is None else [name for name in wanted if name in self.minions]

    def load(self, load: Mapping[str, object]) -> dict[str, object]:
        """Return the job's load without what is hidden, and without its owner."""
        if not self.arguments:
            return {name: load[name] for name in _PLAIN if name in load} | {"arg": [], "tgt": "", "tgt_type": "list"}
        return {name: value for name, value in load.items() if name != "owner"}

    def meta(self, meta: Mapping[str, str]) -> dict[str, str]:
        """Return the job's counters and times without what is hidden: counters would count minions that are not seen."""
        if self.whole:
            return dict(meta)
        if self.minions is None:
            return {name: value for name, value in meta.items() if name != "tgt"}
        return {name: meta[name] for name in _PLAIN_META if name in meta} | {"expected": str(len(self.minions))}


_WHOLE = JobView()


class JobViews:
    """What one sender sees of jobs, for one request."""

    def __init__(self, context: WorkerContext, sender: Sender) -> None:
        self._context = context
        self._sender = sender

    @cached_property
    def everything(self) -> bool:
        """Return whether the sender sees all jobs whole."""
        return not decided(self._sender.rights, Kind.JOBS, [Call("")]).refused

    @cached_property
    def covered(self) -> frozenset[str] | None:
        """Return the ids of the minions that the sender's rules cover; None: all."""
        return covered(self._context, self._sender.rights)

    @cached_property
    def _matching(self) -> Callable[[str], frozenset[str]]:
        """Return a function that resolves the targets in the sender's rules, each once for all jobs."""
        return matching_of(self._context, self._sender.rights)

    def of_load(self, jid: str, load: Mapping[str, object] | None) -> JobView | None:
        """Return what the sender sees of a job with this load (None: the job cache has none); None: nothing."""
        return self.of_jobs([Job(jid, dict(load or {}))]).get(jid)

    def of_jobs(self, jobs: Sequence[Job]) -> dict[str, JobView]:
        """Return {JID: what the sender sees of the job} for those of the jobs of which it sees anything."""
        if self.everything:
            return {job.jid: _WHOLE for job in jobs}
        found = {job.jid: _WHOLE for job in jobs if self.is_own(job.load)}
        others = [job for job in jobs if job.jid not in found]
        found |= {job.jid: _WHOLE for job in others if self._might_have_started(job.load)}
        others = [job for job in others if _kind(job.load) is None]
        if self.covered is None:
            return found | {job.jid: JobView(None, self._might_have_run(job, None)) for job in others}
        among = self._context.store.found_jobs.minions_among([job.jid for job in others], sorted(self.covered))
        for job in others:
            minions, complete = among[job.jid]
            if minions:
                arguments = complete and self._might_have_run(job, minions)
                found[job.jid] = JobView(None if arguments else minions, arguments)
        return found

    def is_own(self, load: Mapping[str, object]) -> bool:
        """Return whether a job with this load is the sender's own."""
        return load.get("owner") == self._sender.owner

    def _might_have_started(self, load: Mapping[str, object]) -> bool:
        """Return whether the sender may call the runner or wheel function of a job of the master."""
        kind = _kind(load)
        if kind is None:
            return False
        arg = load.get("arg")
        call = Call(str(load.get("fun")).partition(".")[2], arg if isinstance(arg, list) else ())
        return not decided(self._sender.rights, kind, [call]).refused

    def _might_have_run(self, job: Job, minions: Collection[str] | None) -> bool:
        """Return whether the sender may publish a job's functions with its arguments to its minions (None: read them)."""
        try:
            calls = calls_of(job.load)
        except ControlError:
            return False
        decision = decided(self._sender.rights, Kind.PUBLISH, calls)
        if decision.refused or decision.everywhere:
            return not decision.refused
        expected = self._context.store.jobs.expected(job.jid) if minions is None else minions
        return not decision.refused_on(frozenset(expected), self._matching)


def _kind(load: Mapping[str, object]) -> Kind | None:
    """Return the kind of request that starts the master's function of a job; None for a job of minions."""
    fun = load.get("fun")
    return _MASTERS.get(fun.partition(".")[0]) if isinstance(fun, str) else None

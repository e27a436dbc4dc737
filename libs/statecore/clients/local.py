"""The methods of Salt's ``LocalClient``: publish jobs to minions, and read their returns.

``JobClient`` needs a ``Master`` (``statecore.model.ports``). ``salt.client.LocalClient`` of users' runners and
``saltern.LocalClient`` of scripts are its subclasses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, NotRequired, TypedDict, overload

from statecore.model.errors import InvocationError
from statecore.model.ports import Master, MinionJob


class Answer(TypedDict):
    """Return of one minion, as Salt's clients show it with ``full_return``."""

    #: Value of the function. A batch or an orchestration has none for a minion that did not return.
    ret: NotRequired[object]
    retcode: NotRequired[int]
    jid: NotRequired[str]
    #: Name of the outputter that the return names.
    out: NotRequired[str]


class Progress(TypedDict):
    """What ``cmd_cli`` yields before each return, with ``progress``: the number of minions, and of returns so far."""

    minion_count: int
    return_count: int


class PublishedJob(TypedDict, total=False):
    """A published job, as ``run_job`` returns it; empty if no minion matches the target."""

    jid: str
    minions: list[str]


#: Arguments of Salt's methods that have no meaning here, and that scripts pass on.
_IGNORED = frozenset({"listen", "show_timeout", "show_jid", "verbose", "gather_job_timeout", "expect_minions", "raw"})

#: Arguments of Salt's methods that become fields of the publication.
PUBLISHED = frozenset(
    {"delimiter", "metadata", "module_executors", "executor_opts", "ret_config", "ret_kwargs", "start_event"}
)


class JobArguments(NamedTuple):
    """The arguments of a method of Salt's ``LocalClient`` that describe its job, under Salt's names."""

    #: Name of the method, for messages.
    method: str
    tgt: object
    fun: str
    arg: Sequence[object]
    tgt_type: str
    ret: str
    kwarg: Mapping[str, object] | None
    #: Arguments that the method does not name itself.
    further: Mapping[str, object]

    def job(self, client: str, passed_on: frozenset[str]) -> MinionJob:
        """Return the MinionJob. ``client``: name of the method's class, for messages.

        Arguments in ``passed_on`` become fields of the publication. Raise InvocationError if ``further`` has arguments
        that are not supported.
        """
        tgt, kind = listed(self.tgt, str(self.further.get("expr_form") or self.tgt_type))
        if unknown := sorted(self.further.keys() - _IGNORED - {"expr_form"} - passed_on):
            raise InvocationError(
                f"{client}.{self.method}: not supported: {', '.join(unknown)}; arguments of the function go into arg"
                " and kwarg"
            )
        fields = {name: self.further[name] for name in passed_on if self.further.get(name)}
        return MinionJob(tgt, self.fun, kind, tuple(self.arg), dict(self.kwarg or {}), self.ret, fields)


class JobClient:
    """Publishes jobs to minions and waits for their returns.

    ``expr_form``, the old name of ``tgt_type``, is accepted everywhere.
    """

    # `self, /`: the asynchronous client takes its signatures from these methods.

    #: Name of the class in messages.
    NAME: ClassVar[str] = "LocalClient"

    #: Names of further arguments that are passed on with a job.
    PASSED_ON = PUBLISHED

    def _master_for(self, what: str, further: dict[str, object]) -> Master:
        """Return the master for a call of the method ``what``. Arguments that say for whom the call acts may be
        removed from ``further``. Raise CommandError if there is none.
        """
        raise NotImplementedError

    def _batch(self, job: MinionJob, master: Master) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield (minion id, return) for each minion of a batch."""
        yield from master.ask(job, {}).items()

    def gather_minions(self, tgt: object, expr_form: str = "glob") -> list[str]:
        """Return the ids of the minions that a target matches."""
        raise NotImplementedError

    def get_cache_returns(self, jid: str) -> dict[str, Answer]:
        """Return {minion id: {"ret": return}} of a job from the job cache, with ``out`` if the return names an
        outputter. Nothing is waited for.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- jobs with a wait

    def cmd(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        timeout: float | None = None,
        tgt_type: str = "glob",
        ret: str = "",
        jid: str = "",
        full_return: bool = False,
        kwarg: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> dict[str, object]:
        """Publish a job and return {minion id: return} for the minions that returned within ``timeout`` seconds.

        With ``full_return`` the value of each minion is {"ret": return, "retcode": exit code, "jid": JID}. Raise
        CommandError if the master refuses the job; InvocationError for unsupported arguments.
        """
        further = {**({"jid": jid} if jid else {}), **kwargs}
        answers = self._answers(JobArguments("cmd", tgt, fun, arg, tgt_type, ret, kwarg, further), timeout)
        return {name: answer if full_return else answer.get("ret") for name, answer in answers.items()}

    def cmd_full_return(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        timeout: float | None = None,
        tgt_type: str = "glob",
        ret: str = "",
        verbose: bool = False,
        kwarg: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> dict[str, Answer]:
        """Publish a job and return {minion id: {"ret": return, "retcode": exit code, "jid": JID}}. ``verbose`` is
        ignored: nothing is printed.
        """
        return self._answers(JobArguments("cmd_full_return", tgt, fun, arg, tgt_type, ret, kwarg, kwargs), timeout)

    def cmd_iter(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        timeout: float | None = None,
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> Iterator[dict[str, Answer]]:
        """Publish a job and yield {minion id: {"ret": return, "retcode": exit code, "jid": JID}} for each minion, when
        its return arrives.

        Raise CommandError if the master refuses the job; InvocationError for unsupported arguments.
        """
        given = JobArguments("cmd_iter", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        for one in self._published(given, timeout):
            if one is not None and not is_silent(one[1]):
                yield {one[0]: answer_of(one[1])}

    def cmd_iter_no_block(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        timeout: float | None = None,
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, object] | None = None,
        show_jid: bool = False,
        verbose: bool = False,
        **kwargs: object,
    ) -> Iterator[dict[str, Answer] | None]:
        """As ``cmd_iter``, but yield None whenever no return has arrived for a moment. ``show_jid`` and ``verbose`` have
        no effect: each return has its ``jid``.
        """
        given = JobArguments("cmd_iter_no_block", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        for one in self._published(given, timeout):
            if one is None:
                yield None
            elif not is_silent(one[1]):
                yield {one[0]: answer_of(one[1])}

    def cmd_cli(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        timeout: float | None = None,
        tgt_type: str = "glob",
        ret: str = "",
        verbose: bool = False,
        kwarg: Mapping[str, object] | None = None,
        progress: bool = False,
        **kwargs: object,
    ) -> Iterator[dict[str, Answer] | Progress]:
        """As ``cmd_iter``, for the command line: minions that do not return in time are yielded, too, with ``out``
        "no_return" and a sentence as ``ret``.

        ``progress``: also yield {"minion_count": number of minions, "return_count": number of returns} before each.
        """
        master, job = self._job(JobArguments("cmd_cli", tgt, fun, arg, tgt_type, ret, kwarg, kwargs))
        made = published_job(master.publish(job))
        if made:
            yield from _shown(
                master.follow(made["jid"], sorted(made["minions"]), timeout), made["jid"], made["minions"], progress
            )

    def cmd_batch(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, object] | None = None,
        batch: str | int = "10%",
        **kwargs: object,
    ) -> Iterator[dict[str, object]]:
        """Run a job on ``batch`` minions at the same time (a number or a percentage) until all have run it, and yield
        {minion id: return} for each. ``failhard``: start no further minions after a failure.

        Raise CommandError if the master refuses the job; InvocationError for unsupported arguments.
        """
        failhard = bool(kwargs.pop("failhard", False))
        master, job = self._job(JobArguments("cmd_batch", tgt, fun, arg, tgt_type, ret, kwarg, kwargs))
        for name, answer in self._batch(job._replace(batch=str(batch), failhard=failhard, expected=False), master):
            yield {name: answer.get("ret")}

    @overload
    def cmd_subset(
        self,
        tgt: object,
        fun: str,
        arg: Sequence[object] = ...,
        tgt_type: str = ...,
        ret: str = ...,
        kwarg: Mapping[str, object] | None = ...,
        subset: int = ...,
        cli: Literal[False] = ...,
        progress: bool = ...,
        full_return: bool = ...,
        **kwargs: object,
    ) -> dict[str, object]: ...
    @overload
    def cmd_subset(
        self,
        tgt: object,
        fun: str,
        arg: Sequence[object] = ...,
        tgt_type: str = ...,
        ret: str = ...,
        kwarg: Mapping[str, object] | None = ...,
        subset: int = ...,
        *,
        cli: Literal[True],
        progress: bool = ...,
        full_return: bool = ...,
        **kwargs: object,
    ) -> Iterator[dict[str, Answer] | Progress]: ...

    def cmd_subset(
        self,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, object] | None = None,
        subset: int = 3,
        cli: bool = False,
        progress: bool = False,
        full_return: bool = False,
        **kwargs: object,
    ) -> dict[str, object] | Iterator[dict[str, Answer] | Progress]:
        """Run a job on as many minions as ``subset`` says, chosen at random from the target. Return {minion id: value
        of the function}, or with ``full_return`` {minion id: map with ``ret``, ``retcode`` and ``jid``}.

        ``cli``: return the iterator of ``cmd_cli`` for the chosen minions. Raise CommandError if the master refuses
        the job; InvocationError for unsupported arguments.
        """
        if cli:
            tgt, tgt_type = listed(tgt, str(kwargs.pop("expr_form", "") or tgt_type))
            matched = self.gather_minions(tgt, tgt_type)
            some = random.sample(matched, min(int(subset), len(matched)))
            publish: Callable[..., PublishedJob] = self.run_job
            made = publish(some, fun, arg, "list", ret, kwarg=kwarg, **kwargs)
            return self.get_cli_event_returns(made.get("jid", ""), made.get("minions", ()), progress=progress)
        master, job = self._job(JobArguments("cmd_subset", tgt, fun, arg, tgt_type, ret, kwarg, kwargs))
        answers = master.ask(job._replace(subset=int(subset), expected=False), {})
        return {name: answer_of(answer) if full_return else answer.get("ret") for name, answer in answers.items()}

    # ---------------------------------------------------------------------------------------------- jobs without a wait

    def run_job(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        tgt_type: str = "glob",
        ret: str = "",
        timeout: float | None = None,
        jid: str = "",
        kwarg: Mapping[str, object] | None = None,
        listen: bool = False,
        **kwargs: object,
    ) -> PublishedJob:
        """Publish a job without waiting. Return {"jid": JID, "minions": [minion id ...]}; {} if no minion matches the
        target.

        ``timeout`` and ``listen`` are accepted and ignored, because they concern waiting. Raise CommandError if the
        master refuses the job; InvocationError for unsupported arguments.
        """
        further = {**({"jid": jid} if jid else {}), **kwargs}
        master, job = self._job(JobArguments("run_job", tgt, fun, arg, tgt_type, ret, kwarg, further))
        return published_job(master.publish(job))

    def cmd_async(
        self,
        /,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        tgt_type: str = "glob",
        ret: str = "",
        jid: str = "",
        kwarg: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> str | int:
        """Publish a job without waiting and return its JID; 0 if no minion matches the target. The runner
        ``jobs.lookup_jid`` shows the returns. ``timeout`` is accepted and ignored, because nobody waits.
        """
        further = {**({"jid": jid} if jid else {}), **kwargs}
        further.pop("timeout", None)
        master, job = self._job(JobArguments("cmd_async", tgt, fun, arg, tgt_type, ret, kwarg, further))
        made = published_job(master.publish(job))
        return made["jid"] if made else 0

    # ----------------------------------------------------------------------------------------- returns of known jobs

    def returns_for_job(self, jid: str) -> bool:
        """Return whether the job cache has returns of a job."""
        return bool(self.get_cache_returns(jid))

    def get_cli_returns(
        self,
        jid: str,
        minions: Iterable[str],
        timeout: float | None = None,
        tgt: object = "*",
        tgt_type: str = "glob",
        verbose: bool = False,
        show_jid: bool = False,
        **kwargs: object,
    ) -> Iterator[dict[str, Answer]]:
        """Yield {minion id: map with ``ret``, ``retcode`` and ``jid``} for each of the ``minions`` that returned a job,
        or returns it within ``timeout`` seconds. The other arguments are ignored.
        """
        for one in self._followed("get_cli_returns", jid, minions, timeout):
            if one is not None and not is_silent(one[1]):
                yield {one[0]: answer_of(one[1])}

    get_iter_returns = get_cli_returns

    def get_event_iter_returns(
        self, jid: str, minions: Iterable[str], timeout: float | None = None
    ) -> Iterator[dict[str, Answer]]:
        """Yield the returns of a job as ``get_cli_returns`` does."""
        return self.get_cli_returns(jid, minions, timeout)

    def get_returns(self, jid: str, minions: Iterable[str], timeout: float | None = None) -> dict[str, object]:
        """Wait up to ``timeout`` seconds for the returns of a job, and return {minion id: value of the function}."""
        return {name: answer.get("ret") for name, answer in self.get_full_returns(jid, minions, timeout).items()}

    def get_full_returns(self, jid: str, minions: Iterable[str], timeout: float | None = None) -> dict[str, Answer]:
        """As ``get_returns``, but the value of each minion is a map with ``ret``, ``retcode`` and ``jid``."""
        found: dict[str, Answer] = {}
        for one in self.get_cli_returns(jid, minions, timeout):
            found |= one
        return dict(sorted(found.items()))

    def get_cli_static_event_returns(
        self, jid: str, minions: Iterable[str], timeout: float | None = None, *_: object, **__: object
    ) -> dict[str, Answer]:
        """Return the returns of a job as ``get_full_returns`` does. Further arguments are ignored."""
        return self.get_full_returns(jid, minions, timeout)

    def get_cli_event_returns(
        self,
        jid: str,
        minions: Iterable[str],
        timeout: float | None = None,
        tgt: object = "*",
        tgt_type: str = "glob",
        verbose: bool = False,
        progress: bool = False,
        show_timeout: bool = False,
        show_jid: bool = False,
        **kwargs: object,
    ) -> Iterator[dict[str, Answer] | Progress]:
        """Yield the returns of a job as ``cmd_cli`` does, also for minions that do not return."""
        names = sorted(map(str, minions))
        yield from _shown(self._followed("get_cli_event_returns", jid, names, timeout), str(jid), names, progress)

    # ---------------------------------------------------------------------------------------------------------- parts

    def _job(self, given: JobArguments) -> tuple[Master, MinionJob]:
        """Return the master for a call, and its job."""
        further = dict(given.further)
        master = self._master_for(given.method, further)
        return master, given._replace(further=further).job(self.NAME, self.PASSED_ON)

    def _answers(self, given: JobArguments, timeout: float | None) -> dict[str, Answer]:
        master, job = self._job(given)
        answers = master.ask(job._replace(timeout=timeout, expected=False), {})
        return {name: answer_of(answer) for name, answer in answers.items()}

    def _published(
        self, given: JobArguments, timeout: float | None
    ) -> Iterator[tuple[str, Mapping[str, object]] | None]:
        """Publish a job and yield (minion id, return) for each return that arrives, and None whenever nothing has
        arrived for a moment.
        """
        master, job = self._job(given)
        made = published_job(master.publish(job))
        if made:
            yield from master.follow(made["jid"], sorted(made["minions"]), timeout)

    def _followed(
        self, what: str, jid: str, minions: Iterable[str], timeout: float | None
    ) -> Iterator[tuple[str, Mapping[str, object]] | None]:
        return self._master_for(what, {}).follow(str(jid), sorted(map(str, minions)), timeout)


def listed(tgt: object, tgt_type: str) -> tuple[object, str]:
    """Return (target, target type); a target of the type ``list`` that is a text is split at its commas."""
    if tgt_type == "list" and isinstance(tgt, str):
        return [name.strip() for name in tgt.split(",")], tgt_type
    return tgt, tgt_type


def published_job(made: Mapping[str, object]) -> PublishedJob:
    """Return a master's answer to a publication as a PublishedJob."""
    minions = made.get("minions")
    if not made:
        return {}
    return {"jid": str(made["jid"]), "minions": [str(name) for name in minions] if isinstance(minions, list) else []}


def answer_of(answer: Mapping[str, object]) -> Answer:
    """Return a minion's return (``ret``, ``retcode``, ``jid``, ``out``) as an Answer."""
    shown: Answer = {}
    if "ret" in answer:
        shown["ret"] = answer["ret"]
    code = answer.get("retcode")
    if isinstance(code, int):
        shown["retcode"] = code
    if "jid" in answer:
        shown["jid"] = str(answer["jid"])
    if answer.get("out"):
        shown["out"] = str(answer["out"])
    return shown


def is_silent(answer: Mapping[str, object]) -> bool:
    """Return whether this stands for a minion that did not return."""
    return bool(answer.get("failed"))


def silent_answer(jid: str) -> Answer:
    """Return the Answer of ``cmd_cli`` for a minion that did not return, with Salt's text."""
    text = (
        "Minion did not return. [No response]\nThe minions may not have all finished running and any remaining minions"
        f" will return upon completion. To look up the return data for this job later, run:\n\nsalt-run jobs.lookup_jid {jid}"
    )
    return {"out": "no_return", "ret": text, "retcode": 1}


def _shown(
    returns: Iterator[tuple[str, Mapping[str, object]] | None], jid: str, minions: Sequence[str], progress: bool
) -> Iterator[dict[str, Answer] | Progress]:
    count = 0
    for one in returns:
        if one is None:
            continue
        name, answer = one
        if is_silent(answer):
            yield {name: silent_answer(jid)}
            continue
        count += 1
        if progress:
            yield {"minion_count": len(minions), "return_count": count}
        yield {name: answer_of(answer)}

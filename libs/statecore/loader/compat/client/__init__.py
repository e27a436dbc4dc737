"""``salt.client`` for users' modules: LocalClient publishes jobs from runners, Caller calls the minion's own functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from statecore.loader.compat.utils import event as event_bus
from statecore.loader.compat.utils.minions import CkMinions, runner
from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts, SaltTable
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Master, MinionJob

#: Return of one minion: ``ret``, ``retcode``, ``jid`` and, if it names an outputter, ``out``.
Answer = dict[str, Any]


class LocalClient:
    """Publishes jobs to minions and waits for their returns. It works in runners only: a minion cannot publish through
    a master.

    ``expr_form``, the old name of ``tgt_type``, is accepted everywhere.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments (configuration path, options): the client uses the running master."""

    def __enter__(self) -> LocalClient:
        return self

    def __exit__(self, *args: object) -> None:
        """Do nothing: the client holds no resources."""

    def destroy(self) -> None:
        """Do nothing: the client holds no resources."""

    @property
    def opts(self) -> dict[str, object]:
        """Options of the master, a map."""
        return ModuleOpts(context_of("salt.client.LocalClient.opts"))

    @property
    def event(self) -> event_bus.LocalClientEvent:
        """The master's event bus, with the methods of ``salt.utils.event.SaltEvent``."""
        return event_bus.LocalClientEvent()

    def gather_minions(self, tgt: Any, expr_form: str = "glob") -> list[str]:
        """Return the ids of the minions that a target matches. Raise CommandError on a minion."""
        _master("gather_minions")
        return list(CkMinions(None).check_minions(tgt, expr_form)["minions"])

    def cmd(
        self,
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
        CommandError on a minion or if the master refuses the job; InvocationError for unsupported arguments.
        """
        job = _job("cmd", tgt, fun, arg, tgt_type, ret, kwarg, {**({"jid": jid} if jid else {}), **kwargs})
        answers = _returns("cmd", job._replace(timeout=timeout))
        return {name: dict(answer) if full_return else answer.get("ret") for name, answer in answers.items()}

    def cmd_full_return(
        self,
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
        ignored: runners have no terminal.
        """
        job = _job("cmd_full_return", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        return {
            name: dict(answer) for name, answer in _returns("cmd_full_return", job._replace(timeout=timeout)).items()
        }

    def run_job(
        self,
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
    ) -> dict[str, object]:
        """Publish a job without waiting. Return {"jid": JID, "minions": [minion id ...]}; {} if no minion matches the
        target.

        ``timeout`` and ``listen`` are accepted and ignored, because they concern waiting. Raise CommandError on a
        minion or if the master refuses the job; InvocationError for unsupported arguments.
        """
        given = {**({"jid": jid} if jid else {}), **kwargs}
        return _master("run_job").publish(_job("run_job", tgt, fun, arg, tgt_type, ret, kwarg, given))

    def cmd_async(
        self,
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
        ``jobs.lookup_jid`` shows the returns.
        """
        publish: Callable[..., dict[str, object]] = self.run_job
        made = publish(tgt, fun, arg, tgt_type, ret, jid=jid, kwarg=kwarg, **kwargs)
        return str(made["jid"]) if made else 0

    def cmd_iter(
        self,
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

        Raise CommandError on a minion or if the master refuses the job; InvocationError for unsupported arguments.
        """
        job = _job("cmd_iter", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        for one in _published("cmd_iter", job, timeout):
            if one is not None and not one[1].get("failed"):
                yield {one[0]: one[1]}

    def cmd_iter_no_block(
        self,
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
        job = _job("cmd_iter_no_block", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        for one in _published("cmd_iter_no_block", job, timeout):
            if one is None:
                yield None
            elif not one[1].get("failed"):
                yield {one[0]: one[1]}

    def cmd_cli(
        self,
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
    ) -> Iterator[dict[str, Any]]:
        """As ``cmd_iter``, for the command line: minions that do not return in time are yielded, too, with ``out``
        "no_return" and a sentence as ``ret``.

        ``progress``: also yield {"minion_count": number of minions, "return_count": number of returns} before each.
        """
        job = _job("cmd_cli", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        made = _master("cmd_cli").publish(job)
        if made:
            yield from self.get_cli_event_returns(made["jid"], made["minions"], timeout, progress=progress)

    def cmd_batch(
        self,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, object] | None = None,
        batch: str | int = "10%",
        **kwargs: object,
    ) -> Iterator[dict[str, object]]:
        """Run a job on ``batch`` minions at the same time (a number or a percentage) until all have run it. Then yield
        {minion id: return} for each.

        Raise CommandError on a minion or if the master refuses the job; InvocationError for unsupported arguments.
        """
        job = _job("cmd_batch", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        for name, answer in _returns("cmd_batch", job._replace(batch=str(batch))).items():
            yield {name: answer.get("ret")}

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
    ) -> Any:
        """Run a job on as many minions as ``subset`` says, chosen at random from the target. Return {minion id: value
        of the function}, or with ``full_return`` {minion id: map with ``ret``, ``retcode`` and ``jid``}.

        ``cli``: return the iterator of ``cmd_cli`` for the chosen minions. Raise CommandError on a minion or if the
        master refuses the job; InvocationError for unsupported arguments.
        """
        job = _job("cmd_subset", tgt, fun, arg, tgt_type, ret, kwarg, kwargs)
        if cli:
            matched = self.gather_minions(job.tgt, job.tgt_type)
            some = random.sample(matched, min(int(subset), len(matched)))
            return self.cmd_cli(some, fun, arg, tgt_type="list", ret=ret, kwarg=kwarg, progress=progress)
        answers = _returns("cmd_subset", job._replace(subset=int(subset)))
        return {name: dict(answer) if full_return else answer.get("ret") for name, answer in answers.items()}

    # ----------------------------------------------------------------------------------------- returns of known jobs

    def get_cache_returns(self, jid: str) -> dict[str, Answer]:
        """Return {minion id: {"ret": return}} of a job from the job cache, with ``out`` if the return names an
        outputter. Nothing is waited for.
        """
        found = runner(context_of("salt.client.LocalClient.get_cache_returns"), "jobs.list_job", str(jid))
        returns = found.get("Result") if isinstance(found, Mapping) else None
        return {
            str(name): {"ret": entry.get("return")} | ({"out": entry["out"]} if entry.get("out") else {})
            for name, entry in (returns.items() if isinstance(returns, Mapping) else ())
        }

    def returns_for_job(self, jid: str) -> bool:
        """Return whether the job cache has returns of a job."""
        return bool(self.get_cache_returns(jid))

    def get_cli_returns(
        self,
        jid: str,
        minions: Sequence[str] | set[str],
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
        for one in _followed("get_cli_returns", jid, minions, timeout):
            if one is not None and not one[1].get("failed"):
                yield {one[0]: one[1]}

    get_iter_returns = get_cli_returns

    def get_event_iter_returns(
        self, jid: str, minions: Sequence[str] | set[str], timeout: float | None = None
    ) -> Iterator[dict[str, Answer]]:
        """Yield the returns of a job as ``get_cli_returns`` does."""
        return self.get_cli_returns(jid, minions, timeout)

    def get_returns(
        self, jid: str, minions: Sequence[str] | set[str], timeout: float | None = None
    ) -> dict[str, object]:
        """Wait up to ``timeout`` seconds for the returns of a job, and return {minion id: value of the function}."""
        return {name: answer["ret"] for name, answer in self.get_full_returns(jid, minions, timeout).items()}

    def get_full_returns(
        self, jid: str, minions: Sequence[str] | set[str], timeout: float | None = None
    ) -> dict[str, Answer]:
        """As ``get_returns``, but the value of each minion is a map with ``ret``, ``retcode`` and ``jid``."""
        found: dict[str, Answer] = {}
        for one in self.get_cli_returns(jid, minions, timeout):
            found |= one
        return found

    def get_cli_static_event_returns(
        self, jid: str, minions: Sequence[str] | set[str], timeout: float | None = None, *_: object, **__: object
    ) -> dict[str, Answer]:
        """Return the returns of a job as ``get_full_returns`` does. Further arguments are ignored."""
        return self.get_full_returns(jid, minions, timeout)

    def get_cli_event_returns(
        self,
        jid: Any,
        minions: Any,
        timeout: float | None = None,
        tgt: object = "*",
        tgt_type: str = "glob",
        verbose: bool = False,
        progress: bool = False,
        show_timeout: bool = False,
        show_jid: bool = False,
        **kwargs: object,
    ) -> Iterator[dict[str, Any]]:
        """Yield the returns of a job as ``cmd_cli`` does, also for minions that do not return."""
        count = 0
        for one in _followed("get_cli_event_returns", str(jid), minions, timeout):
            if one is None:
                continue
            name, answer = one
            if answer.get("failed"):
                yield {name: {"out": "no_return", "ret": _silent(str(jid)), "retcode": 1}}
                continue
            count += 1
            if progress:
                yield {"minion_count": len(minions), "return_count": count}
            yield {name: answer}


class Caller:
    """Calls execution functions of the minion on which the user's module runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running minion is used."""

    def cmd(self, fun: str, *args: object, **kwargs: object) -> object:
        """Call an execution function such as ``test.ping`` and return its result. Raise KeyError if the function does
        not exist.
        """
        return SaltTable(context_of("salt.client.Caller.cmd").functions)[fun](*args, **kwargs)

    function = cmd


def get_local_client(*args: object, **kwargs: object) -> LocalClient:
    """Return a LocalClient, which publishes jobs to minions. The arguments are ignored."""
    return LocalClient()


#: Arguments of Salt's methods that have no meaning here, and that scripts pass on.
_IGNORED = frozenset({"listen", "show_timeout", "show_jid", "verbose", "gather_job_timeout", "expect_minions"})


def _job(
    what: str,
    tgt: object,
    fun: str,
    arg: Sequence[object],
    tgt_type: str,
    ret: str,
    kwarg: Mapping[str, object] | None,
    more: Mapping[str, object],
) -> MinionJob:
    """Return the MinionJob for the arguments of a LocalClient method. ``what`` is the method's name, for messages.
    Raise InvocationError if ``more`` has arguments that are not supported.
    """
    kind = str(more.get("expr_form") or tgt_type)
    if unknown := sorted(more.keys() - _IGNORED - {"expr_form", "ret_config", "ret_kwargs"}):
        raise InvocationError(f"salt.client.LocalClient.{what}: not supported: {', '.join(unknown)}")
    passed_on = {name: more[name] for name in ("ret_config", "ret_kwargs") if more.get(name)}
    return MinionJob(tgt, fun, kind, tuple(arg), dict(kwarg or {}), ret, passed_on)


def _published(what: str, job: MinionJob, timeout: float | None) -> Iterator[tuple[str, Answer] | None]:
    """Publish a job and yield (minion id, return) for each return that arrives, and None whenever nothing has arrived
    for a moment.
    """
    made = _master(what).publish(job)
    if made:
        minions = made["minions"]
        yield from _followed(what, str(made["jid"]), minions if isinstance(minions, list) else [], timeout)


def _followed(
    what: str, jid: str, minions: Sequence[str] | set[str], timeout: float | None
) -> Iterator[tuple[str, Answer] | None]:
    return _master(what).follow(str(jid), sorted(map(str, minions)), timeout)


def _silent(jid: str) -> str:
    return (
        "Minion did not return. [No response]\nThe minions may not have all finished running and any remaining minions will"
        f" return upon completion. To look up the return data for this job later, run:\n\nsalt-run jobs.lookup_jid {jid}"
    )


def _returns(what: str, job: MinionJob) -> dict[str, dict[str, object]]:
    return _master(what).ask(job._replace(expected=False), {})


def _master(what: str) -> Master:
    master = context_of(f"salt.client.LocalClient.{what}").master
    if master is None:
        raise CommandError(
            "salt.client.LocalClient works in runners only: on a minion, use __salt__['publish.publish']"
        )
    return master

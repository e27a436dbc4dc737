"""``salt.client`` for users' modules: LocalClient publishes jobs from runners, Caller calls the minion's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from statecore.loader.current_context import context_of
from statecore.loader.dunders import SaltTable
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Master, MinionJob


class LocalClient:
    """Publishes jobs to minions and waits for their returns. It works in runners only: a minion cannot publish through
    a master.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments (configuration path, options): the client uses the running master."""

    def __enter__(self) -> LocalClient:
        return self

    def __exit__(self, *args: object) -> None:
        """Do nothing: the client holds no resources."""

    def destroy(self) -> None:
        """Do nothing: the client holds no resources."""

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
        _refuse("cmd", {**({"jid": jid} if jid else {}), **kwargs})
        answers = _returns("cmd", MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, timeout=timeout))
        return {name: dict(answer) if full_return else answer.get("ret") for name, answer in answers.items()}

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
        _refuse("run_job", {**({"jid": jid} if jid else {}), **kwargs})
        return _master("run_job").publish(MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret))

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
    ) -> Iterator[dict[str, object]]:
        """Publish a job and yield {minion id: {"ret": return, "retcode": exit code}} for each minion that returned in
        time.

        Raise CommandError on a minion or if the master refuses the job; InvocationError for unsupported arguments.
        """
        _refuse("cmd_iter", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, timeout=timeout)
        for name, answer in _returns("cmd_iter", job).items():
            yield {name: dict(answer)}

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
        _refuse("cmd_batch", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, batch=str(batch))
        for name, answer in _returns("cmd_batch", job).items():
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
        full_return: bool = False,
        **kwargs: object,
    ) -> dict[str, object]:
        """Run a job on as many minions as ``subset`` says, chosen at random from the target. Return {minion id: value
        of the function}, or with ``full_return`` {minion id: map with ``ret``, ``retcode`` and ``jid``}.

        Raise CommandError on a minion or if the master refuses the job; InvocationError for unsupported arguments.
        """
        _refuse("cmd_subset", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, subset=int(subset))
        answers = _returns("cmd_subset", job)
        return {name: dict(answer) if full_return else answer.get("ret") for name, answer in answers.items()}


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


def _refuse(what: str, given: Mapping[str, object]) -> None:
    if given:
        raise InvocationError(f"salt.client.LocalClient.{what}: not supported: {', '.join(sorted(given))}")


def _returns(what: str, job: MinionJob) -> dict[str, dict[str, object]]:
    return _master(what).ask(job._replace(expected=False), {})


def _master(what: str) -> Master:
    master = context_of(f"salt.client.LocalClient.{what}").master
    if master is None:
        raise CommandError(
            "salt.client.LocalClient works in runners only: on a minion, use __salt__['publish.publish']"
        )
    return master

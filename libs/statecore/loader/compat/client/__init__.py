"""``salt.client``: publishes jobs from runners (LocalClient), and calls the minion's own functions (Caller)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from statecore.loader.current_context import context_of
from statecore.loader.dunders import SaltTable
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Master, MinionJob


class LocalClient:
    """Publishes jobs and waits for their returns. Works in runners only: a minion cannot publish through a master."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments (configuration path, options): the running master is used."""

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
        """Publish a job and return {minion id: return} of the minions that returned in time; ``full_return`` adds the exit code.

        Raise CommandError on a minion or if the master refuses the job; InvocationError for unsupported arguments.
        """
        _refuse("cmd", {**({"jid": jid} if jid else {}), **kwargs})
        answers = _asked("cmd", MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, timeout=timeout))
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
        """Publish a job without waiting; return a map with ``jid`` and ``minions``, or {} if no minion matches. Raises as ``cmd``.

        ``timeout`` and ``listen`` are accepted and ignored, because they are about waiting.
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
        """Publish a job without waiting and return its JID; 0 if no minion matches. ``jobs.lookup_jid`` shows the returns."""
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
        """Yield ``{minion: {"ret": ..., "retcode": ...}}`` for each minion that returned in time. Raises as ``cmd``."""
        _refuse("cmd_iter", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, timeout=timeout)
        for name, answer in _asked("cmd_iter", job).items():
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
        """Yield ``{minion: return}`` of a job run in batches of ``batch`` minions (number or percentage), after all returned.

        Raises as ``cmd``.
        """
        _refuse("cmd_batch", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, batch=str(batch))
        for name, answer in _asked("cmd_batch", job).items():
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
        """Run a job on ``subset`` randomly chosen minions and return the same as ``cmd``."""
        _refuse("cmd_subset", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, subset=int(subset))
        answers = _asked("cmd_subset", job)
        return {name: dict(answer) if full_return else answer.get("ret") for name, answer in answers.items()}


class Caller:
    """Calls functions of the minion on which the module runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running minion is used."""

    def cmd(self, fun: str, *args: object, **kwargs: object) -> object:
        """Call an execution function and return its result. Raise KeyError if the function does not exist."""
        return SaltTable(context_of("salt.client.Caller.cmd").functions)[fun](*args, **kwargs)

    function = cmd


def get_local_client(*args: object, **kwargs: object) -> LocalClient:
    """Return a LocalClient."""
    return LocalClient()


def _refuse(what: str, given: Mapping[str, object]) -> None:
    if given:
        raise InvocationError(f"salt.client.LocalClient.{what}: not supported: {', '.join(sorted(given))}")


def _asked(what: str, job: MinionJob) -> dict[str, dict[str, object]]:
    return _master(what).ask(job._replace(expected=False), {})


def _master(what: str) -> Master:
    master = context_of(f"salt.client.LocalClient.{what}").master
    if master is None:
        raise CommandError("salt.client.LocalClient is for runners: on a minion, use __salt__['publish.publish']")
    return master

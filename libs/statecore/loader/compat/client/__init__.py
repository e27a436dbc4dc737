"""``salt.client``: jobs for minions, published by runners; on a minion, a caller of its own functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statecore.loader.dunders import SaltTable
from statecore.loader.entered import context_of
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Master, MinionJob


class LocalClient:
    """Publishes jobs and waits for what comes back. For runners: on a minion there is no master to publish."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments (a configuration's path, options) say nothing here: the running master is asked."""

    def __enter__(self) -> LocalClient:
        return self

    def __exit__(self, *args: object) -> None:
        """Nothing is held open."""

    def destroy(self) -> None:
        """Nothing is held open."""

    def cmd(
        self,
        tgt: Any,
        fun: str,
        arg: Sequence[Any] = (),
        timeout: float | None = None,
        tgt_type: str = "glob",
        ret: str = "",
        jid: str = "",
        full_return: bool = False,
        kwarg: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Minion -> what it returned (``full_return``: with its exit code), of those that returned in time.

        Raises CommandError on a minion, or where the master refuses; InvocationError for arguments that are not supported.
        """
        _refuse("cmd", {**({"jid": jid} if jid else {}), **kwargs})
        answers = _asked("cmd", MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, timeout=timeout))
        return {name: dict(answer) if full_return else answer.get("ret") for name, answer in answers.items()}

    def run_job(
        self,
        tgt: Any,
        fun: str,
        arg: Sequence[Any] = (),
        tgt_type: str = "glob",
        ret: str = "",
        timeout: float | None = None,
        jid: str = "",
        kwarg: Mapping[str, Any] | None = None,
        listen: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """``jid`` and ``minions`` of a job that nobody waits for; empty where no minion is meant. Raises as ``cmd``.

        ``timeout`` and ``listen`` are about waiting: they change nothing.
        """
        _refuse("run_job", {**({"jid": jid} if jid else {}), **kwargs})
        return _master("run_job").publish(MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret))

    def cmd_async(
        self,
        tgt: Any,
        fun: str,
        arg: Sequence[Any] = (),
        tgt_type: str = "glob",
        ret: str = "",
        jid: str = "",
        kwarg: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> str | int:
        """The JID of a job that nobody waits for (``jobs.lookup_jid`` shows what came of it); 0 where no minion is meant."""
        made = self.run_job(tgt, fun, arg, tgt_type, ret, jid=jid, kwarg=kwarg, **kwargs)
        return str(made["jid"]) if made else 0

    def cmd_iter(
        self,
        tgt: Any,
        fun: str,
        arg: Sequence[Any] = (),
        timeout: float | None = None,
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        """``{minion: {"ret": ..., "retcode": ...}}`` of each that returned in time, once all have. Raises as ``cmd``."""
        _refuse("cmd_iter", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, timeout=timeout)
        for name, answer in _asked("cmd_iter", job).items():
            yield {name: dict(answer)}

    def cmd_batch(
        self,
        tgt: Any,
        fun: str,
        arg: Sequence[Any] = (),
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, Any] | None = None,
        batch: str | int = "10%",
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        """``{minion: return}`` of each, so many at a time, once all have returned. Raises as ``cmd``."""
        _refuse("cmd_batch", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, batch=str(batch))
        for name, answer in _asked("cmd_batch", job).items():
            yield {name: answer.get("ret")}

    def cmd_subset(
        self,
        tgt: Any,
        fun: str,
        arg: Sequence[Any] = (),
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, Any] | None = None,
        subset: int = 3,
        full_return: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """As ``cmd``, of so many minions, drawn at random."""
        _refuse("cmd_subset", kwargs)
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, subset=int(subset))
        answers = _asked("cmd_subset", job)
        return {name: dict(answer) if full_return else answer.get("ret") for name, answer in answers.items()}


class Caller:
    """Functions of the minion that the module runs on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments say nothing here: the running minion is asked."""

    def cmd(self, fun: str, *args: Any, **kwargs: Any) -> Any:
        """What the function returns. Raises KeyError for one that is not there."""
        return SaltTable(context_of("salt.client.Caller.cmd").functions)[fun](*args, **kwargs)

    function = cmd


def get_local_client(*args: Any, **kwargs: Any) -> LocalClient:
    """A LocalClient."""
    return LocalClient()


def _refuse(what: str, given: Mapping[str, Any]) -> None:
    if given:
        raise InvocationError(f"salt.client.LocalClient.{what}: not supported: {', '.join(sorted(given))}")


def _asked(what: str, job: MinionJob) -> dict[str, dict[str, Any]]:
    return _master(what).ask(job._replace(expected=False), {})


def _master(what: str) -> Master:
    master = context_of(f"salt.client.LocalClient.{what}").master
    if master is None:
        raise CommandError("salt.client.LocalClient is for runners: on a minion, use __salt__['publish.publish']")
    return master

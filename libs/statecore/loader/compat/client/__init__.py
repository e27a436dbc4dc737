"""``salt.client``: jobs for minions, published by runners; on a minion, a caller of its own functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.errors import CommandError, InvocationError
from statecore.loader.dunders import SaltTable
from statecore.loader.entered import context_of
from statecore.ports import Master, MinionJob


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
        if jid or kwargs:
            given = ", ".join([*(["jid"] if jid else []), *sorted(kwargs)])
            raise InvocationError(f"salt.client.LocalClient.cmd: not supported: {given}")
        job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, timeout=timeout, expected=False)
        answers = _master("cmd").ask(job, {})
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


def _master(what: str) -> Master:
    master = context_of(f"salt.client.LocalClient.{what}").master
    if master is None:
        raise CommandError("salt.client.LocalClient is for runners: on a minion, use __salt__['publish.publish']")
    return master

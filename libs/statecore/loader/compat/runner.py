"""``salt.runner`` for users' runners: calls other runners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts, SaltTable
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import Master, MasterCall

#: Keys of a low chunk that are no arguments of its function: who asks is decided by the key of the operator.
_RESERVED = frozenset(
    {"fun", "client", "user", "username", "password", "eauth", "token", "key", "full_return", "print_event", "__user__"}
)


class RunnerClient:
    """Calls runner functions of the master on which the user's runner runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running master is used."""

    def __enter__(self) -> RunnerClient:
        return self

    def __exit__(self, *args: object) -> None:
        """Do nothing: the client holds no resources."""

    def destroy(self) -> None:
        """Do nothing: the client holds no resources."""

    @property
    def opts(self) -> dict[str, object]:
        """Options of the master, a map."""
        return ModuleOpts(context_of("salt.runner.RunnerClient.opts"))

    @property
    def functions(self) -> SaltTable:
        """Map of runner name ("jobs.active") to the runner function."""
        return SaltTable(_context("functions").functions)

    def cmd(
        self,
        fun: str,
        arg: Sequence[object] | None = None,
        pub_data: object = None,
        kwarg: Mapping[str, object] | None = None,
        print_event: bool = True,
        full_return: bool = False,
    ) -> object:
        """Call a runner function and return its result; with ``full_return`` {"return": result, "success": True}.

        Raise KeyError if the runner does not exist, CommandError on a minion.
        """
        value = SaltTable(_context("cmd").functions)[fun](*(arg or ()), **(kwarg or {}))
        return {"return": value, "success": True} if full_return else value

    def cmd_sync(self, low: Mapping[str, Any], timeout: float | None = None, full_return: bool = False) -> Any:
        """Call the runner that ``low`` describes ({"fun": ..., "arg": [...], "kwarg": {...}}; other keys are arguments by
        name) as a job of the master, wait for it, and return its result.

        With ``full_return`` return {"tag": tag of the job's last event, "data": map with ``return``, ``success``, ``jid``
        and ``fun``}. ``timeout`` is ignored: the runner's own time limits apply. Raise CommandError on a minion.
        """
        call = call_of_low(low)
        done = _master("cmd_sync").run([call])[0]
        if full_return:
            jid = str(done.get("jid", ""))
            return {"tag": f"salt/run/{jid}/ret", "data": {"fun": f"runner.{call.fun}", **done}}
        return done["return"]

    def cmd_async(self, low: Mapping[str, Any]) -> dict[str, str]:
        """Start the runner that ``low`` describes, as for ``cmd_sync``, and return {"jid": JID, "tag": start of the tags of
        its events} at once. Raise CommandError on a minion, or if the master refuses it.
        """
        return _master("cmd_async").start(call_of_low(low))

    def asynchronous(self, fun: str, low: Mapping[str, Any], *_: object, **__: object) -> dict[str, str]:
        """Start the runner ``fun`` as ``cmd_async`` does. Further arguments are ignored."""
        return self.cmd_async({**low, "fun": fun})

    def low(self, fun: str, low: Mapping[str, Any], print_event: bool = True, full_return: bool = False) -> object:
        """Call the runner ``fun`` with the arguments of a low chunk, as ``cmd`` does."""
        call = call_of_low({**low, "fun": fun})
        return self.cmd(fun, list(call.arg), kwarg=dict(call.kwarg), full_return=full_return)

    def master_call(self, **kwargs: Any) -> dict[str, str]:
        """Start the runner that the arguments describe as a low chunk, as ``cmd_async`` does."""
        return self.cmd_async(kwargs)

    def get_docs(self, arg: str | None = None) -> dict[str, str]:
        """Return {runner name: docstring} of the runners whose names start with ``arg``; without ``arg``, of all
        runners.
        """
        names = (name for name in self.functions if name.startswith(arg or ""))
        return {name: doc for name in names if (doc := self.functions[name].__doc__)}


def call_of_low(low: Mapping[str, Any]) -> MasterCall:
    """Return the MasterCall (function name and arguments) that a low chunk of Salt's clients describes: a map with
    ``fun``, ``arg``, ``kwarg`` and further arguments by name. Raise CommandError if it has no ``fun``.
    """
    if not low.get("fun"):
        raise CommandError("a low chunk needs the key fun")
    arg = low.get("arg") or ()
    named = {name: value for name, value in low.items() if name not in _RESERVED and name not in ("arg", "kwarg")}
    fun = str(low["fun"]).removeprefix("runner.").removeprefix("wheel.")
    return MasterCall(
        fun, tuple(arg if isinstance(arg, list | tuple) else [arg]), {**named, **(low.get("kwarg") or {})}
    )


def _context(what: str) -> Context:
    context = context_of(f"salt.runner.RunnerClient.{what}")
    if context.master is None:
        raise CommandError(
            "salt.runner.RunnerClient works in runners only: on a minion, use __salt__['publish.runner']"
        )
    return context


def _master(what: str) -> Master:
    master = _context(what).master
    assert master is not None
    return master


Runner = RunnerClient

"""Base classes of Salt's clients of a running master, for users' runners: LocalClient, RunnerClient, WheelClient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import Master, MasterCall

#: Keys of a low chunk that are no arguments of its function: who asks is decided by the key of the operator.
_RESERVED = frozenset(
    {"fun", "client", "user", "username", "password", "eauth", "token", "key", "full_return", "print_event", "__user__"}
)


class MasterClient:
    """A client of the master on which the user's runner runs."""

    #: The client's name in Salt, for messages: "salt.runner.RunnerClient".
    NAME: ClassVar[str]
    #: Message for a minion, which has no such client.
    NO_MASTER: ClassVar[str]

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments (configuration path, options): the client uses the running master."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        """Do nothing: the client holds no resources."""

    def destroy(self) -> None:
        """Do nothing: the client holds no resources."""

    @property
    def opts(self) -> dict[str, object]:
        """Options of the master, a map."""
        return ModuleOpts(context_of(f"{self.NAME}.opts"))

    def _context(self, method: str) -> Context:
        """Return the Context of the running runner. ``method`` is the client's method that was called, for messages.
        Raise CommandError on a minion.
        """
        context = context_of(f"{self.NAME}.{method}")
        if context.master is None:
            raise CommandError(self.NO_MASTER)
        return context

    def _master(self, method: str) -> Master:
        """Return the running master, for one of the client's methods. Raise CommandError on a minion."""
        master = self._context(method).master
        assert master is not None
        return master


class LowClient(MasterClient):
    """A client that calls functions of the master, which low chunks describe: runners or wheel functions."""

    def cmd(
        self,
        fun: str,
        arg: Sequence[object] | None = None,
        pub_data: object = None,
        kwarg: Mapping[str, object] | None = None,
        print_event: bool = True,
        full_return: bool = False,
    ) -> object:
        """Call a function and return its result, or with ``full_return`` a map with ``return`` and ``success``."""
        raise NotImplementedError

    def cmd_async(self, low: Mapping[str, Any]) -> dict[str, str]:
        """Call the function that ``low`` describes and return {"jid": JID, "tag": start of the tags of its events}."""
        raise NotImplementedError

    def asynchronous(self, fun: str, low: Mapping[str, Any], *_: object, **__: object) -> dict[str, str]:
        """Call the function ``fun`` as ``cmd_async`` does. Further arguments are ignored."""
        return self.cmd_async({**low, "fun": fun})

    def low(self, fun: str, low: Mapping[str, Any], print_event: bool = True, full_return: bool = False) -> object:
        """Call the function ``fun`` with the arguments of a low chunk, as ``cmd`` does."""
        call = call_of_low({**low, "fun": fun})
        return self.cmd(fun, list(call.arg), kwarg=dict(call.kwarg), full_return=full_return)


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

"""Base classes of Salt's clients of a running master, for users' runners: LocalClient, RunnerClient, WheelClient."""

from __future__ import annotations

from typing import ClassVar, Self

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import Master


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

"""Services of a minion without a master: event bus, running jobs, requests to the minion or master, and refreshes of
pillar, modules and grains.

They are used by salt-call --local, and by embedding programs that give no services of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from statecore.model.errors import CommandError

#: (saltenv, pillarenv, override, external pillar on demand) -> pillar.
PillarCompiler: TypeAlias = Callable[
    [str | None, str | None, Mapping[str, object] | None, Mapping[str, object] | None], dict[str, object]
]

#: (area, request) -> answer of the minion that runs on this host. Raises CommandError.
Manager: TypeAlias = Callable[[str, Mapping[str, object]], dict[str, object]]


class NoEvents:
    """Event bus of a process that has none: events are dropped."""

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        """Drop the event and return False."""
        return False


class NoJobs:
    """Running jobs of a process that knows of no jobs."""

    def running(self) -> list[dict[str, object]]:
        """Return an empty list: no job is known to run."""
        return []

    def signal(self, jid: str, number: int) -> str:
        """Return "": no job of this JID is known to run."""
        return ""


class LocalMinion:
    """Services of a master and of the minion's main process for ``salt-call --local``, implemented in its own process."""

    def __init__(
        self,
        compile_pillar: PillarCompiler | None = None,
        tops: Callable[[], dict[str, list[str]]] | None = None,
        manage: Manager | None = None,
        refreshed: Callable[[str], bool] | None = None,
    ) -> None:
        """Store the functions that implement the services.

        ``compile_pillar`` compiles pillar; without it the pillar is the override alone. ``tops`` returns {saltenv: SLS
        references} of master_tops modules. ``manage`` sends requests about schedule and beacons to the minion that runs on this
        host. ``refreshed`` is called with "pillar", "modules" or "grains" when a function asks to refresh it, and returns True
        if the request was accepted.
        """
        self._compile_pillar = compile_pillar
        self._tops = tops
        self._manage = manage
        self._refreshed = refreshed or (lambda what: True)

    def refresh_pillar(self) -> bool:
        """Request that the minion compiles its pillar again. Return True if the request was accepted; always True if
        the LocalMinion was made without ``refreshed``.
        """
        return self._refreshed("pillar")

    def refresh_modules(self) -> bool:
        """Request that the minion lists its module files again. Return True if the request was accepted; always True
        if the LocalMinion was made without ``refreshed``.
        """
        return self._refreshed("modules")

    def refresh_grains(self) -> bool:
        """Request that the minion gathers its grains again. Return True if the request was accepted; always True if
        the LocalMinion was made without ``refreshed``.
        """
        return self._refreshed("grains")

    def compile_pillar(
        self,
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, object] | None,
        on_demand: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """Return the pillar compiled from the local pillar directories; its errors are a list under ``_errors``."""
        if self._compile_pillar is None:
            return dict(override or {})
        return self._compile_pillar(saltenv, pillarenv, override, on_demand)

    def master_tops(self) -> dict[str, list[str]]:
        """Map of saltenv to the SLS references that tops modules on this host assign."""
        return self._tops() if self._tops is not None else {}

    def ask_master(
        self, cmd: str, fields: Mapping[str, object], *, once: bool = False, master: str | None = None
    ) -> object:
        """Raise CommandError: ``salt-call --local`` has no master to ask."""
        raise CommandError(f"{cmd}: there is no master")

    def manage(self, area: str, request: Mapping[str, object]) -> dict[str, object]:
        """Send a request about the schedule or the beacons to the minion that runs on this host, and return its reply, a map.

        Raises CommandError if no minion runs here.
        """
        if self._manage is None:
            raise CommandError(f"no minion runs here that has a {area}")
        return self._manage(area, request)

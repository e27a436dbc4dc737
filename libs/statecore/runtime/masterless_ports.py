"""The ports of a minion without a master: what salt-call --local and embedders get where nothing else is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from statecore.model.errors import CommandError

#: (saltenv, pillarenv, override, external pillar on demand) -> pillar.
PillarCompiler: TypeAlias = Callable[
    [str | None, str | None, Mapping[str, Any] | None, Mapping[str, Any] | None], dict[str, Any]
]

#: (area, request) -> answer of the running minion. Raises CommandError.
Manager: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any]]


class NoEvents:
    """There is no bus; events go nowhere and say so."""

    def fire(self, tag: str, data: Mapping[str, Any]) -> bool:
        """False: it was not handed over."""
        return False


class NoJobs:
    """Nothing runs beside this process."""

    def running(self) -> list[dict[str, Any]]:
        """Always empty."""
        return []

    def signal(self, jid: str, number: int) -> str:
        """Always "": there is no such job."""
        return ""


class LocalMinion:
    """Does in this process what a minion asks of its master or main process."""

    def __init__(
        self,
        compile_pillar: PillarCompiler | None = None,
        tops: Callable[[], dict[str, list[str]]] | None = None,
        manage: Manager | None = None,
        refreshed: Callable[[str], bool] | None = None,
    ) -> None:
        """Without ``compile_pillar`` there is no pillar but the override; ``tops`` is what a master's tops would be; ``manage``
        asks the minion that runs beside this process. ``refreshed`` is told what was asked for anew: pillar, modules, grains."""
        self._compile_pillar = compile_pillar
        self._tops = tops
        self._manage = manage
        self._refreshed = refreshed or (lambda what: True)

    def refresh_pillar(self) -> bool:
        """True: the runtime compiles it anew for the next call."""
        return self._refreshed("pillar")

    def refresh_modules(self) -> bool:
        """True: the runtime looks for modules anew."""
        return self._refreshed("modules")

    def refresh_grains(self) -> bool:
        """True: the runtime gathers them anew for the next call."""
        return self._refreshed("grains")

    def compile_pillar(
        self,
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, Any] | None,
        on_demand: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Pillar from the local roots; errors under ``_errors``."""
        if self._compile_pillar is None:
            return dict(override or {})
        return self._compile_pillar(saltenv, pillarenv, override, on_demand)

    def master_tops(self) -> dict[str, list[str]]:
        """What tops modules on this host assign."""
        return self._tops() if self._tops is not None else {}

    def ask_master(self, cmd: str, fields: Mapping[str, Any], *, once: bool = False, master: str | None = None) -> Any:
        """There is nobody to ask."""
        raise CommandError(f"{cmd}: there is no master")

    def manage(self, area: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Asks the minion that runs here."""
        if self._manage is None:
            raise CommandError(f"no minion runs here that has a {area}")
        return self._manage(area, request)

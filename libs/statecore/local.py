"""The ports of a minion without a master: what salt-call --local and embedders get where nothing else is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

#: (saltenv, pillarenv, override, external pillar on demand) -> pillar.
PillarCompiler: TypeAlias = Callable[
    [str | None, str | None, Mapping[str, Any] | None, Mapping[str, Any] | None], dict[str, Any]
]


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
        self, compile_pillar: PillarCompiler | None = None, tops: Callable[[], dict[str, list[str]]] | None = None
    ) -> None:
        """Without ``compile_pillar`` there is no pillar but the override; ``tops`` is what a master's tops would be."""
        self._compile_pillar = compile_pillar
        self._tops = tops

    def refresh_pillar(self) -> bool:
        """True: the runtime compiles it anew for the next call."""
        return True

    def refresh_modules(self) -> bool:
        """True: the runtime looks for modules anew."""
        return True

    def refresh_grains(self) -> bool:
        """True: the runtime gathers them anew for the next call."""
        return True

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

"""The ports of a minion without a master: what salt-call --local and embedders get where nothing else is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


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
        self, compile_pillar: Callable[[str, str | None, Mapping[str, Any] | None], dict[str, Any]] | None = None
    ) -> None:
        """``compile_pillar(saltenv, pillarenv, override)``; without it there is no pillar but the override."""
        self._compile_pillar = compile_pillar

    def refresh_pillar(self) -> bool:
        """True: the runtime compiles it anew for the next call."""
        return True

    def refresh_modules(self) -> bool:
        """True: the runtime looks for modules anew."""
        return True

    def refresh_grains(self) -> bool:
        """True: the runtime gathers them anew for the next call."""
        return True

    def compile_pillar(self, saltenv: str, pillarenv: str | None, override: Mapping[str, Any] | None) -> dict[str, Any]:
        """Pillar from the local roots; errors under ``_errors``."""
        if self._compile_pillar is None:
            return dict(override or {})
        return self._compile_pillar(saltenv, pillarenv, override)

    def master_tops(self) -> dict[str, list[str]]:
        """There is no master."""
        return {}

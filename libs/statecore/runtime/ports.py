"""Services of a Context that read the minion's current data: pillar in memory, refreshes of pillar, modules and
grains, catalog of modules.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.lazy import lazy_module
from statecore.model.ports import Function, MinionControl
from statecore.runtime.masterless_ports import LocalMinion
from statecore.runtime.secret_pillar import PillarSecrets

if TYPE_CHECKING:
    from statecore import render
    from statecore.model import log_text
else:
    render = lazy_module("statecore.render")
    log_text = lazy_module("statecore.model.log_text")

log = logging.getLogger(__name__)


class ContextSource(Protocol):
    """The part of ``Contexts`` (pillar, loader, base context of one minion) that ``LoaderCatalog`` and
    ``RefreshingMinionControl`` use.
    """

    @property
    def pillar(self) -> Mapping[str, object]:
        """The minion's pillar in memory, compiled when it is first read."""
        ...

    @property
    def secrets(self) -> PillarSecrets:
        """The secret values of the minion's pillar, with the functions that hide them in returns and events."""
        ...

    @property
    def context(self) -> Context:
        """The Context for functions that are called outside of a state run."""
        ...

    @property
    def loader(self) -> Loader:
        """The loader that finds modules and their functions."""
        ...

    def forget(self, *, pillar: bool = False, grains: bool = False, modules: bool = False) -> None:
        """Drop the minion's pillar, grains or modules from memory; the next call reads them again."""
        ...


class RefreshingMinionControl:
    """Services of the minion's main process. A refresh of pillar, grains or modules also drops this process's own copy
    of them.
    """

    def __init__(self, source: ContextSource, minion: MinionControl) -> None:
        self._source = source
        self._minion = minion

    def refresh_pillar(self) -> bool:
        self._source.forget(pillar=isinstance(self._minion, LocalMinion))
        return self._minion.refresh_pillar()

    def refresh_modules(self) -> bool:
        self._source.forget(modules=True)
        return self._minion.refresh_modules()

    def refresh_grains(self) -> bool:
        self._source.forget(grains=isinstance(self._minion, LocalMinion))
        return self._minion.refresh_grains()

    def compile_pillar(
        self,
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, object] | None,
        on_demand: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        pillar = self._minion.compile_pillar(saltenv, pillarenv, override, on_demand)
        self._source.secrets.learn(pillar)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("Pillar (saltenv %s, pillarenv %s):\n%s", saltenv, pillarenv, log_text.pillar_text(pillar))
        return pillar

    def master_tops(self) -> dict[str, list[str]]:
        return self._minion.master_tops()

    def ask_master(
        self, cmd: str, fields: Mapping[str, object], *, once: bool = False, master: str | None = None
    ) -> object:
        return self._minion.ask_master(cmd, fields, once=once, master=master)

    def manage(self, area: str, request: Mapping[str, object]) -> dict[str, object]:
        return self._minion.manage(area, request)


class LoaderCatalog:
    """Names, docstrings and signatures of the loader's modules, for ``sys.*``. Implements the interface
    ``ports.Catalog``.
    """

    def __init__(self, source: ContextSource) -> None:
        self._source = source

    def names(self, kind: str = "modules", module: str = "") -> list[str]:
        if kind == "renderers":
            users = {name.partition(".")[0] for name in self._source.loader.names(kind, self._source.context)}
            return sorted(users.union(render.RENDERERS))
        return self._source.loader.names(kind, self._source.context, module)

    def doc(self, name: str, kind: str = "modules") -> str | None:
        if kind == "renderers":
            return self._renderer_doc(name)
        return self._source.loader.doc(kind, name, self._source.context)

    def argspec(self, name: str, kind: str = "modules") -> dict[str, object] | None:
        return self._source.loader.argspec(kind, name, self._source.context)

    def function(self, name: str, kind: str) -> Function:
        ctx = self._source.context
        served, function = self._source.loader.function(kind, name, ctx)
        return served.bound(function, ctx)

    def _renderer_doc(self, name: str) -> str | None:

        try:
            return self._source.loader.doc("renderers", f"{name}.render", self._source.context)
        except NotAvailable:
            own = render.RENDERERS.get(name)
        return None if own is None else inspect.getdoc(own) or inspect.getdoc(inspect.getmodule(own))


class LoaderStates:
    """Lists the state modules that a loader finds, and their functions. Implements the interface
    ``render.StateNames``.
    """

    def __init__(self, loader: Loader, ctx: Callable[[], Context]) -> None:
        self._loader = loader
        self._ctx = ctx

    def files(self) -> list[str]:
        return [source.stem for source in self._loader.sources("states")]

    def functions(self, module: str) -> list[str]:
        try:
            found = self._loader.modules("states", module, self._ctx())
        except NotAvailable:
            return []
        return [name for loaded in found for name in loaded.functions]


class NoTemplates:
    """Template engines while grains are gathered: each call raises CommandError."""

    def render(self, text: str, engine: str, context: Mapping[str, object], *, saltenv: str, source: str = "") -> str:
        raise CommandError(f"{source or 'A template'} cannot be rendered while grains are being gathered")

    def data(self, text: str, pipe: str, names: Mapping[str, object], *, saltenv: str, source: str = "") -> object:
        raise CommandError(f"{source or 'A template'} cannot be rendered while grains are being gathered")


class RunScratch(dict[str, object]):
    """Map in which modules keep data during one state run (Salt's ``__context__``). A run starts with a nearly empty map.

    The run takes over from the calling function's own map only the grains that it set, its exit code, and how it was
    called. The exit code of the run is written to that map too.
    """

    _OF_THE_CALL = ("cmd.shell", "pillar.mask", "grains.set", "retcode")

    def __init__(self, call: dict[str, object]) -> None:
        call.setdefault("grains.set", {})
        super().__init__({name: call[name] for name in self._OF_THE_CALL if name in call})
        self._call = call

    def __setitem__(self, name: str, value: object) -> None:
        super().__setitem__(name, value)
        if name == "retcode":
            self._call[name] = value

    def pop(self, name: str, *default: object) -> object:
        if name == "retcode":
            self._call.pop(name, None)
        return super().pop(name, *default)

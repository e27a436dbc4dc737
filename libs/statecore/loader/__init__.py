"""From a name to a callable: ``"pkg.install"`` -> the function, bound to a context, loaded when first asked for.

``find`` lists files, ``served`` reads a native module, ``user_module`` takes in users' modules with the names of ``dunders``
and the imports of ``salt_imports``, ``tables`` are the lazy mappings that a context carries. Only this package imports
modules, states and grains.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from statecore.loader import providers
from statecore.loader.arguments import Parameters
from statecore.loader.find import NATIVE, PLAIN, RARE, Index, ModuleFile, scan
from statecore.loader.providers import Choice, choice, provider
from statecore.loader.salt_imports import LOADED
from statecore.loader.served import Served, Unusable, argspec, serve_native, serve_plain
from statecore.loader.user_module import UserModule
from statecore.model.context import Context
from statecore.model.errors import NotAvailable
from statecore.model.nearest import close_matches

log = logging.getLogger(__name__)

#: End of a user's file -> the option that lets it be loaded.
_ALLOWED_BY: Mapping[str, str] = {".zip": "enable_zip_modules", ".pyx": "cython_enable"}

__all__ = ["Loader", "ModuleFile", "Served", "Unusable"]


class Loader:
    """Finds and loads modules of every kind for one minion; remembers what is usable and why the rest is not."""

    def __init__(
        self,
        extension_dir: Path | None = None,
        more: Mapping[str, Sequence[Path]] | None = None,
        restricted_by: Mapping[str, Any] | None = None,
    ) -> None:
        """``more``: kind -> directories of users' modules besides that of the kind in ``extension_dir``. ``restricted_by``: options
        that take modules out (``restrictions``)."""
        self.extension_dir = extension_dir
        self._more = more or {}
        self._disabled = providers.disabled(restricted_by or {})
        self._only = providers.only(restricted_by or {})
        #: Grows with each ``refresh``; tables drop what they bound under an earlier one.
        self.generation = 0
        self._indexes: dict[str, Index] = {}
        #: (kind, name, providers that are chosen) -> the modules that serve the name, the first before the next.
        self._serving: dict[tuple[str, str, Choice], list[Served]] = {}
        #: A built-in module may be usable because it is chosen, or what it stands on is.
        self._by_file: dict[tuple[Path, Choice], Served | Unusable] = {}
        self._missing: dict[tuple[str, str, Choice], NotAvailable] = {}

    def refresh(self) -> None:
        """Forgets everything found so far: the next look-up sees the files that are on disk now."""
        self._forget({})

    def retry(self) -> None:
        """Forgets what was not usable, and users' modules: a package may have brought what they lacked, or looked for."""
        kept: dict[tuple[Path, Choice], Served | Unusable] = {
            key: loaded for key, loaded in self._by_file.items() if isinstance(loaded, Served) and loaded.native
        }
        self._forget(kept)

    def _forget(self, kept: dict[tuple[Path, Choice], Served | Unusable]) -> None:
        places = {path.parent for path, _ in self._by_file}.union(*map(self._places, self._indexes))
        for name, module in list(sys.modules.items()):
            if name.startswith(f"{LOADED}.") and places.intersection(Path(str(module.__file__)).parents):
                del sys.modules[name]
        importlib.invalidate_caches()
        self.generation += 1
        self._indexes.clear()
        self._serving.clear()
        self._missing.clear()
        self._by_file = kept

    def sources(self, kind: str) -> list[ModuleFile]:
        """Every file of the kind, users' first; nothing is imported."""
        return list(self._index(kind))

    def preload(self) -> None:
        """Imports every built-in module and lists all files: what is forked from this process finds them loaded.

        Whether they are usable is still asked when they are first used; users' modules are not run.
        """
        for kind in sorted(NATIVE.keys() - RARE):
            for source in self.sources(kind):
                if source.native:
                    _import_native(source)

    def serve(self, kind: str, name: str, ctx: Context) -> Served:
        """The module that serves ``name`` first. Raises NotAvailable with the reasons of all files that could have."""
        return self.serving(kind, name, ctx)[0]

    def serving(self, kind: str, name: str, ctx: Context) -> list[Served]:
        """The modules that serve ``name``: of each function the first that has it counts. Raises NotAvailable.

        A user's file stands for the built-in file of the same name; where the name is a virtual one, it adds to it.
        """
        chosen = provider(ctx.opts, name) if kind == "modules" else ""
        key = (kind, name, choice(ctx.opts))
        if (known := self._serving.get(key)) is not None:
            return known
        if (missing := self._missing.get(key)) is not None:
            raise NotAvailable(name, missing.reason)
        if name in self._disabled.get(kind, ()) or (kind in self._only and name not in self._only[kind]):
            raise NotAvailable(name)
        reasons: list[str] = []
        found: list[Served] = []
        for source in self._index(kind).candidates(name):
            if chosen not in ("", source.stem):
                continue
            if source.native and any(served.source.stem == source.stem for served in found):
                continue
            loaded = self.load(source, ctx)
            if isinstance(loaded, Unusable):
                reasons.append(str(loaded))
            elif loaded.answers_to(name):
                found.append(loaded)
                if source.native:
                    break
        if chosen and not found and not reasons:
            reasons.append(f"'{chosen}' was chosen as its provider, and no such file serves it")
        if not found:
            self._missing[key] = NotAvailable(name, "; ".join(reasons))
            raise self._missing[key]
        self._serving[key] = found
        return found

    def load(self, source: ModuleFile, ctx: Context) -> Served | Unusable:
        """The file's module, or why it cannot be used; asked once until ``refresh``."""
        key = (source.path, choice(ctx.opts) if source.native else ())
        known = self._by_file.get(key)
        if known is None:
            known = self._by_file[key] = self._load(source, ctx)
        return known

    def _load(self, source: ModuleFile, ctx: Context) -> Served | Unusable:
        try:
            if source.native:
                module = _import_native(source)
                return serve_plain(source, module) if source.kind in PLAIN else serve_native(source, module, ctx)
            if (option := _ALLOWED_BY.get(source.path.suffix)) and not (ctx and ctx.opts.get(option)):
                raise Unusable(f"{source.path} is loaded where the option {option} is set")
            return UserModule(source, self._places("utils")).serve(ctx)
        except Unusable as reason:
            log.debug("%s %s is not used: %s", source.kind, source.path, reason)
            return reason

    def function(self, kind: str, name: str, ctx: Context) -> tuple[Served, str]:
        """The module and function name behind ``"module.function"``. Raises NotAvailable, naming near misses."""
        module, _, function = name.partition(".")
        try:
            serving = self.serving(kind, module, ctx)
        except NotAvailable as missing:
            raise NotAvailable(name, missing.reason) from None
        for served in serving:
            if function in served.functions:
                return served, function
        raise NotAvailable(name)

    def has(self, kind: str, name: str, ctx: Context) -> bool:
        """Whether the function exists and is usable here."""
        try:
            self.function(kind, name, ctx)
        except NotAvailable:
            return False
        return True

    def blueprints(self, kind: str, module: str) -> dict[str, Parameters]:
        """Function -> what it takes, of a built-in module, be it usable on this host or not; {} where there is none built in."""
        for source in self._index(kind).candidates(module):
            if source.native:
                served = serve_native(source, _import_native(source), None)
                if served.name == module:
                    return {name: served.parameters(name) for name in served.functions}
        return {}

    def built_in(self, kind: str) -> dict[str, list[Served]]:
        """Name -> the built-in modules that could serve it, usable on this host or not: to be looked at, not called."""
        found: dict[str, list[Served]] = {}
        for source in self._index(kind):
            if source.native:
                served = serve_native(source, _import_native(source), None)
                found.setdefault(served.name, []).append(served)
        return dict(sorted(found.items()))

    def known(self, kind: str, module: str) -> bool:
        """Whether any file would serve the module, usable here or not."""
        return next(self._index(kind).candidates(module), None) is not None

    def nearest(self, kind: str, name: str, ctx: Context) -> str:
        """The existing ``"module.function"`` most like ``name``, "" when nothing comes near. Imports all of the kind."""
        near = close_matches(name, self.names(kind, ctx), n=1, cutoff=0.7)
        return near[0] if near else ""

    def all(self, kind: str, ctx: Context) -> dict[str, list[Served]]:
        """Served name -> its modules, as ``serving``, for everything usable of the kind, sorted by name. Imports all of it."""
        names: set[str] = set()
        for source in self._index(kind):
            loaded = self.load(source, ctx)
            if isinstance(loaded, Served):
                names.update((loaded.name, *loaded.aliases))
        found: dict[str, list[Served]] = {}
        for name in sorted(names):
            # Of a name whose provider was chosen, and is not usable, nothing is served.
            with contextlib.suppress(NotAvailable):
                found[name] = self.serving(kind, name, ctx)
        return found

    def names(self, kind: str, ctx: Context) -> list[str]:
        """All ``"module.function"`` names of the kind, sorted."""
        return sorted(
            {
                f"{name}.{function}"
                for name, serving in self.all(kind, ctx).items()
                for served in serving
                for function in served.functions
            }
        )

    def doc(self, kind: str, name: str, ctx: Context) -> str | None:
        """The docstring of a function, or of a module when ``name`` has no dot; None when there is none."""
        if "." in name:
            served, function = self.function(kind, name, ctx)
            own = served.functions[function]
            return inspect.getdoc(own) if served.native else own.__doc__
        return self.serve(kind, name, ctx).module_doc

    def argspec(self, kind: str, name: str, ctx: Context) -> dict[str, Any]:
        """Salt's argspec of a function, ctx left out. Raises NotAvailable."""
        served, function = self.function(kind, name, ctx)
        return argspec(served.signature(function))

    def _places(self, kind: str) -> list[Path]:
        """The directories of users' modules of a kind."""
        return [*self._more.get(kind, ()), *([self.extension_dir / kind] if self.extension_dir is not None else [])]

    def _index(self, kind: str) -> Index:
        index = self._indexes.get(kind)
        if index is None:
            index = scan(kind, self.extension_dir, self._more.get(kind, ()))
            index = self._indexes[kind] = index.without(self._disabled.get(kind, frozenset()))
        return index


def _import_native(source: ModuleFile) -> ModuleType:
    try:
        return importlib.import_module(f"{NATIVE[source.kind]}.{source.stem}")
    except ImportError as error:
        # A library that only this module needs may be absent on a managed host.
        raise Unusable(f"{source.path.name} failed to import: {error}") from error

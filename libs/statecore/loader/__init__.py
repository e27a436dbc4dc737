"""The loader of Salt modules: finds the function of a name such as ``pkg.install``, loads its module and binds it to a
Context.

A module is loaded on first use. ``find`` lists module files, ``loaded_module`` reads a built-in module, ``user_module`` loads
users' modules with the dunder names of ``dunders`` and the imports of ``salt_imports``, ``tables`` holds the lazy maps
of functions. Only this package imports execution modules, state modules and grains modules.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from statecore.loader import extensions, find, providers
from statecore.loader.arguments import Parameters
from statecore.loader.find import NATIVE, PLAIN, RARE, Index, ModuleFile, scan
from statecore.loader.loaded_module import LoadedModule, Unusable, argspec, native_module, plain_module
from statecore.loader.providers import Choice, choice, provider
from statecore.loader.salt_imports import LOADED
from statecore.loader.user_module import UserModule
from statecore.model.context import Context
from statecore.model.errors import NotAvailable
from statecore.model.lazy import lazy_module
from statecore.model.nearest import close_matches

if TYPE_CHECKING:
    from statecore.loader import moved_modules
else:
    moved_modules = lazy_module("statecore.loader.moved_modules")

log = logging.getLogger(__name__)

#: File suffix -> the option that must be set to load users' files with this suffix.
_ALLOWED_BY: Mapping[str, str] = {".zip": "enable_zip_modules", ".pyx": "cython_enable"}

#: Library of Python -> the extra of saltern-statecore that installs it.
_EXTRAS: Mapping[str, str] = {
    "redis": "redis",
    "psycopg": "postgres",
    "pymysql": "mysql",
    "cryptography": "certificates",
    "nacl": "nacl",
    "ldap3": "ldap",
    "reclass": "reclass",
}

__all__ = ["LoadedModule", "Loader", "ModuleFile", "Unusable"]


class Loader:
    """Finds and loads the modules of one minion: execution modules, state modules, grains and other kinds.

    Loaded modules are cached. For a module that cannot be used on this host, the reason is cached.
    """

    def __init__(
        self,
        extension_dir: Path | None = None,
        more: Mapping[str, Sequence[Path]] | None = None,
        restricted_by: Mapping[str, object] | None = None,
    ) -> None:
        """Create a loader that reads users' modules from the directories below ``extension_dir`` (``modules``,
        ``states`` ...).

        ``more`` maps a kind of modules to further directories of users' modules. ``restricted_by`` are the minion's
        options; of these, options such as ``disable_modules`` and ``whitelist_state_modules`` disable modules.
        """
        self.extension_dir = extension_dir
        self._more = more or {}
        self._disabled = providers.disabled(restricted_by or {})
        self._only = providers.only(restricted_by or {})
        #: Increased by each ``refresh`` and ``retry``; a table then drops its bound functions.
        self.generation = 0
        self._indexes: dict[str, Index] = {}
        #: (kind, name, chosen providers) -> the modules with this name, in order of precedence.
        self._by_name: dict[tuple[str, str, Choice], list[LoadedModule]] = {}
        #: (file, chosen providers) -> module or reason. ``providers`` can decide whether a built-in module is usable.
        self._by_file: dict[tuple[Path, Choice], LoadedModule | Unusable] = {}
        self._missing: dict[tuple[str, str, Choice], NotAvailable] = {}

    def refresh(self) -> None:
        """Forget all loaded modules: the next look-up of a function lists the module directories again."""
        self._forget({})

    def retry(self) -> None:
        """Forget unusable modules and all users' modules, so that they are loaded again: a newly installed package may
        make them usable.
        """
        kept: dict[tuple[Path, Choice], LoadedModule | Unusable] = {
            key: loaded for key, loaded in self._by_file.items() if isinstance(loaded, LoadedModule) and loaded.native
        }
        self._forget(kept)

    def _forget(self, kept: dict[tuple[Path, Choice], LoadedModule | Unusable]) -> None:
        directories = {path.parent for path, _ in self._by_file}.union(*map(self._directories, self._indexes))
        for name, module in list(sys.modules.items()):
            if name.startswith(f"{LOADED}.") and directories.intersection(Path(str(module.__file__)).parents):
                del sys.modules[name]
        importlib.invalidate_caches()
        self.generation += 1
        self._indexes.clear()
        self._by_name.clear()
        self._missing.clear()
        self._by_file = kept

    def sources(self, kind: str) -> list[ModuleFile]:
        """Return the module files of one kind ("modules", "states" ...), users' files first. No file is imported."""
        return list(self._index(kind))

    def preload(self) -> None:
        """Import the built-in modules of all common kinds, so that processes forked later share their memory.

        Modules of rare kinds (beacons, returners ...) and users' modules are not imported. Whether a module is usable
        on this host is checked on its first use.
        """
        for kind in sorted(NATIVE.keys() - RARE):
            for source in self.sources(kind):
                if source.native:
                    _import_native(source)

    def index(self, kinds: Iterable[str]) -> None:
        """List the built-in module files of these kinds ("modules", "states" ...) and the installed extensions, so
        that processes forked later need not list them.

        Directories of users' modules are still listed by each process, because their files change.
        """
        extensions.installed()
        for kind in kinds:
            for source in find.built_in(kind).values():
                find.virtual_names(source.path)

    def module(self, kind: str, name: str, ctx: Context) -> LoadedModule:
        """Return the first loaded module of one kind with the name ``name``, such as ``pkg``.

        Raise NotAvailable with the reasons why the module files of this name are unusable.
        """
        return self.modules(kind, name, ctx)[0]

    def modules(self, kind: str, name: str, ctx: Context) -> list[LoadedModule]:
        """Return all loaded modules of one kind with the name ``name``. A function is taken from the first of them that
        has it.

        A user's file replaces the built-in file of the same file name. A user's file with another file name that sets
        ``name`` as its virtual name adds its functions to the built-in ones. Raise NotAvailable if no file of this name
        is usable.
        """
        chosen = provider(ctx.opts, name) if kind == "modules" else ""
        key = (kind, name, choice(ctx.opts))
        if (known := self._by_name.get(key)) is not None:
            return known
        if (missing := self._missing.get(key)) is not None:
            raise NotAvailable(name, missing.reason)
        if name in self._disabled.get(kind, ()) or (kind in self._only and name not in self._only[kind]):
            raise NotAvailable(name)
        reasons: list[str] = []
        found: list[LoadedModule] = []
        for source in self._index(kind).candidates(name):
            if chosen not in ("", source.stem):
                continue
            if source.native and any(each.source.stem == source.stem for each in found):
                continue
            loaded = self.load(source, ctx)
            if isinstance(loaded, Unusable):
                reasons.append(str(loaded))
            elif loaded.has_name(name):
                found.append(loaded)
                if source.native:
                    break
        if chosen and not found and not reasons:
            reasons.append(f"'{chosen}' was chosen as its provider, and no such file serves it")
        if not found:
            reason = "; ".join(reasons) or moved_modules.advice(kind, name)
            self._missing[key] = NotAvailable(name, reason)
            raise self._missing[key]
        self._by_name[key] = found
        return found

    def load(self, source: ModuleFile, ctx: Context) -> LoadedModule | Unusable:
        """Return the loaded module of a module file, or the Unusable that says why the module cannot be used on this
        host.

        The result is cached until ``refresh``.
        """
        key = (source.path, choice(ctx.opts) if source.native else ())
        known = self._by_file.get(key)
        if known is None:
            known = self._by_file[key] = self._load(source, ctx)
            if isinstance(known, LoadedModule):
                log.debug("Loaded %s module %s from %s", source.kind, known.name, source.path)
        return known

    def _load(self, source: ModuleFile, ctx: Context) -> LoadedModule | Unusable:
        try:
            if source.native:
                module = _import_native(source)
                return plain_module(source, module) if source.kind in PLAIN else native_module(source, module, ctx)
            if (option := _ALLOWED_BY.get(source.path.suffix)) and not (ctx and ctx.opts.get(option)):
                raise Unusable(f"{source.path} is loaded where the option {option} is set")
            return UserModule(source, self._directories("utils")).usable(ctx)
        except Unusable as reason:
            log.debug("%s %s is not used: %s", source.kind, source.path, reason)
            return reason

    def function(self, kind: str, name: str, ctx: Context) -> tuple[LoadedModule, str]:
        """Return (loaded module, function name) for a name such as ``pkg.install``.

        Raise NotAvailable if there is no such function, with the reason if its module is unusable.
        """
        module, _, function = name.partition(".")
        try:
            modules = self.modules(kind, module, ctx)
        except NotAvailable as missing:
            raise NotAvailable(name, missing.reason) from None
        for loaded in modules:
            if function in loaded.functions:
                return loaded, function
        raise NotAvailable(name)

    def has(self, kind: str, name: str, ctx: Context) -> bool:
        """Return whether a function such as ``pkg.install`` exists and its module is usable on this host."""
        try:
            self.function(kind, name, ctx)
        except NotAvailable:
            return False
        return True

    def built_in_parameters(self, kind: str, module: str) -> dict[str, Parameters]:
        """Map of function name to parameters, for the functions of one built-in module. {} if there is no built-in
        module of this name.

        Built-in modules that cannot be used on this host are included.
        """
        for source in self._index(kind).candidates(module):
            if source.native:
                loaded = native_module(source, _import_native(source), None)
                if loaded.name == module:
                    return {name: loaded.parameters(name) for name in loaded.functions}
        return {}

    def built_in_modules(self, kind: str, module: str) -> list[LoadedModule]:
        """Return the built-in modules with this name, in the order in which they are tried: several serve ``pkg``.

        Modules that cannot be used on this host are included, so do not call their functions. Only files that may
        have this name are imported; one whose library is not installed is left out.
        """
        found = []
        for source in self._index(kind).candidates(module):
            if source.native:
                try:
                    loaded = native_module(source, _import_native(source), None)
                except Unusable as reason:
                    log.debug("%s is not listed: %s", source.path, reason)
                    continue
                if loaded.name == module:
                    found.append(loaded)
        return found

    def built_in(self, kind: str) -> dict[str, list[LoadedModule]]:
        """Map of module name to the list of built-in modules with this name, for one kind of modules.

        Modules that cannot be used on this host are included, so do not call their functions.
        """
        found: dict[str, list[LoadedModule]] = {}
        for source in self._index(kind):
            if source.native:
                loaded = native_module(source, _import_native(source), None)
                found.setdefault(loaded.name, []).append(loaded)
        return dict(sorted(found.items()))

    def known(self, kind: str, module: str) -> bool:
        """Return whether any module file may have this module name, usable on this host or not. No file is imported."""
        return next(self._index(kind).candidates(module), None) is not None

    def nearest(self, kind: str, name: str, ctx: Context) -> str:
        """Return the existing function name (``module.function``) most similar to ``name``; "" if none is similar. For
        hints in messages.

        All modules of the kind are imported.
        """
        near = close_matches(name, self.names(kind, ctx), n=1, cutoff=0.7)
        return near[0] if near else ""

    def near(self, name: str, ctx: Context) -> str:
        """Return the name of the execution function most similar to ``name``; "" if none is similar. For hints about a
        typo.

        Only modules with a similar name are imported, so that an unknown name is answered as fast as a known one.
        """
        module, _, function = name.partition(".")
        if not function:
            return ""
        # pkg_apt is one of the files of the module pkg.
        stems = {part for each in self._index("modules") for part in (each.stem, each.stem.partition("_")[0])}
        likely = [module] if self.known("modules", module) else close_matches(module, stems, n=2, cutoff=0.7)
        found: list[str] = []
        for one in likely:
            with contextlib.suppress(NotAvailable):
                loaded = self.modules("modules", one, ctx)
                # Functions with an underscore are no jobs, so nobody meant one.
                names = (each for served in loaded for each in served.functions if not each.startswith("_"))
                found += [f"{one}.{each}" for each in names if ctx.may(f"{one}.{each}")]
        near = close_matches(name, found, n=1, cutoff=0.75)
        return near[0] if near else ""

    def all(self, kind: str, ctx: Context) -> dict[str, list[LoadedModule]]:
        """Map of module name to its loaded modules, in the order of ``modules``, for all usable modules of one kind.
        Sorted by name.

        All modules of the kind are imported.
        """
        names: set[str] = set()
        for source in self._index(kind):
            loaded = self.load(source, ctx)
            if isinstance(loaded, LoadedModule):
                names.update((loaded.name, *loaded.aliases))
        found: dict[str, list[LoadedModule]] = {}
        for name in sorted(names):
            # No module has a name whose chosen provider is not usable.
            with contextlib.suppress(NotAvailable):
                found[name] = self.modules(kind, name, ctx)
        return found

    def names(self, kind: str, ctx: Context, module: str = "") -> list[str]:
        """Return the sorted names (``module.function``) of all usable functions of one kind, without internal ones
        (``_name``). ``module``: of this module only. All modules of the kind are imported if it is empty.
        """
        served: Mapping[str, Sequence[LoadedModule]]
        if module:
            try:
                served = {module: self.modules(kind, module, ctx)}
            except NotAvailable:
                return []
        else:
            served = self.all(kind, ctx)
        return sorted(
            {
                f"{name}.{function}"
                for name, modules in served.items()
                for loaded in modules
                for function in loaded.listed
            }
        )

    def doc(self, kind: str, name: str, ctx: Context) -> str | None:
        """Return the docstring of the function ``name``, or of the module ``name`` if ``name`` has no dot; None if
        there is no docstring.

        Raise NotAvailable if the function or module does not exist.
        """
        if "." in name:
            loaded, function = self.function(kind, name, ctx)
            own = loaded.functions[function]
            return inspect.getdoc(own) if loaded.native else own.__doc__
        return self.module(kind, name, ctx).module_doc

    def argspec(self, kind: str, name: str, ctx: Context) -> dict[str, object]:
        """Map that ``sys.argspec`` shows for a function: args, varargs, kwargs and defaults, without the parameter
        ``ctx``.

        Raise NotAvailable if the function does not exist.
        """
        loaded, function = self.function(kind, name, ctx)
        return argspec(loaded.signature(function))

    def _directories(self, kind: str) -> list[Path]:
        """Return the directories that may contain users' modules of one kind."""
        return [*self._more.get(kind, ()), *([self.extension_dir / kind] if self.extension_dir is not None else [])]

    def _index(self, kind: str) -> Index:
        index = self._indexes.get(kind)
        if index is None:
            index = scan(kind, self.extension_dir, self._more.get(kind, ()), extensions.directories(kind))
            index = self._indexes[kind] = index.without(self._disabled.get(kind, frozenset()))
        return index


def _import_native(source: ModuleFile) -> ModuleType:
    try:
        return importlib.import_module(f"{NATIVE[source.kind]}.{source.stem}")
    except ImportError as error:
        # The managed host may lack a library that only this module needs.
        extra = _EXTRAS.get(str(error.name).partition(".")[0])
        advice = f"; the extra saltern-statecore[{extra}] brings it" if extra else ""
        raise Unusable(f"{source.path.name} failed to import: {error}{advice}") from error

"""The renderer ``pyobjects``: an SLS in Python that declares states by calls such as ``File.managed("/etc/motd")``. It can
run any Python code in the minion.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, SimpleNamespace
from typing import Any

from statecore.model import salt_package, tree_url
from statecore.model.errors import Mark
from statecore.model.time_limit import computing_limit
from statecore.render.context import RenderContext, StateNames
from statecore.render.faults import TemplateFault
from statecore.render.limit import time_limit_of
from statecore.render.pyobjects import RENDERING, Map, Registry, Rendering, SaltObject, StateFactory
from statecore.render.renderers import python

_FROM = re.compile(r"(\s*)from\s+(salt://.*)\s+import (.*)")
_IMPORT = re.compile(r"(\s*)import\s+(salt://.*)")
_ALIAS = re.compile(r"(.*) as (.*)")

#: State modules that exist for every SLS -> functions used if this minion has no such module.
_ALWAYS: Mapping[str, tuple[str, ...]] = {
    "cmd": ("run", "script", "wait"),
    "file": ("managed", "absent", "directory", "symlink", "recurse"),
    "pkg": ("installed", "removed", "latest", "purged", "downloaded", "uptodate"),
    "service": ("running", "dead", "enabled", "disabled"),
}

#: Name of a function for the SLS -> the execution function behind it.
_SHORT: Mapping[str, str] = {
    "pillar": "pillar.get",
    "grains": "grains.get",
    "mine": "mine.get",
    "config": "config.get",
}


def render(data: object, context: RenderContext) -> object:
    """Renderer ``pyobjects``: return the high data of the states that an SLS in Python declares by calls.

    In the SLS each state module is an object, whose name is the module's in CamelCase (``PostgresUser``). Raise
    TemplateFault with the line.
    """
    names = context.names
    functions = names["salt"]
    registry = Registry()
    running = _Running(context, registry, _globals(context, registry))
    token = RENDERING.set(Rendering(registry, functions))  # type: ignore[arg-type]
    try:
        running.run(str(data))
    finally:
        RENDERING.reset(token)
    return registry.salt_data()


def _globals(context: RenderContext, registry: Registry) -> dict[str, Any]:
    """Return the global names (``include``, ``salt``, ``pillar`` ...) with their values for an SLS in Python and for
    the files that it imports, except those of state modules.
    """
    names = context.names
    functions: Any = names["salt"]
    return {
        "__name__": "sls",
        "include": registry.include,
        "extend": registry.make_extend,
        "Map": Map,
        "salt": SaltObject(functions),
        **{short: functions[name] for short, name in _SHORT.items() if name in functions},
        **{dunder: names[name] for dunder, name in python.DUNDERS.items() if name in names},
        "__sls__": context.source.sls,
    }


class _Running:
    """Runs an SLS in Python (renderer ``pyobjects``) and the files of the state tree that it imports (``from
    salt://map.sls import Samba``).
    """

    def __init__(self, context: RenderContext, registry: Registry, shared: Mapping[str, Any]) -> None:
        self._context = context
        self._registry = registry
        self._shared = shared
        self._factory = _factories(context.states)
        self._open: list[str] = []

    def run(self, text: str) -> None:
        """Run the text of an SLS in Python; its calls declare states in the Registry. Raise TemplateFault with the
        line, also for an error in an imported file.
        """
        salt_package.install()
        with python.faults(text, self._context.source.file), computing_limit(time_limit_of(self._context.opts)):
            self._executed(text, self._context.source.file, declares=True)

    def _executed(self, text: str, file: str, *, declares: bool) -> dict[str, Any]:
        """Run one Python file of the state tree and return its global names with their values. Its calls declare
        states only if ``declares`` is True.
        """
        scope = {**self._shared, "__file__": file}
        with python.faults(text, file):
            code = compile("\n".join(self._without_imports(text, file, scope)), file, "exec")
            for name in _names(code):
                if name not in scope and (factory := self._factory(name)) is not None:
                    scope[name] = factory
            self._registry.enabled = declares
            exec(code, scope)
        return scope

    def _without_imports(self, text: str, file: str, scope: dict[str, Any]) -> Iterator[str]:
        """Yield the lines of a Python text, with ``pass`` in place of each import of a ``salt://`` file. The imported
        names are put into ``scope``. Raise TemplateFault if such a file cannot be imported.
        """
        for number, line in enumerate(text.splitlines(), 1):
            try:
                yield self._line(line, scope)
            except ImportError as error:
                raise TemplateFault(f"{error} (ImportError)", Mark(file, number), text) from error

    def _line(self, line: str, scope: dict[str, Any]) -> str:
        """Return a line of Python unchanged. If it imports a ``salt://`` file, put the imported names into ``scope``
        and return ``pass`` with the line's indentation.
        """
        if found := _IMPORT.fullmatch(line):
            name, names = self._imported(found[2].strip())
            scope[name] = SimpleNamespace(**names)
        elif found := _FROM.fullmatch(line):
            _, names = self._imported(found[2].strip())
            for wanted in found[3].split(","):
                alias = _ALIAS.fullmatch(wanted.strip())
                own, other = (alias[1].strip(), alias[2].strip()) if alias else (wanted.strip(), wanted.strip())
                if own not in names:
                    raise ImportError(f"'{own}' was not found in '{found[2].strip()}'")
                scope[other] = names[own]
        else:
            return line
        return f"{found[1]}pass"

    def _imported(self, url: str) -> tuple[str, dict[str, Any]]:
        """Run the file of the state tree at a ``salt://`` URL and return (its name without suffix, its global names
        with their values). Raise ImportError if there is no such file, or if files import each other.
        """
        wanted = tree_url.split(url)
        path = self._context.files.fetch(wanted.path, wanted.saltenv or self._context.source.saltenv)
        if path is None:
            raise ImportError(f"Could not find the file '{url}'")
        if url in self._open:
            raise ImportError(f"the files import each other: {' imports '.join([*self._open, url])}")
        self._open.append(url)
        names = self._executed(path.read_text("utf-8"), str(path), declares=False)
        self._open.pop()
        return posixpath.splitext(posixpath.basename(wanted.path))[0], names


def _factories(known: StateNames | None) -> Callable[[str], StateFactory | None]:
    """Return a function that maps a Python name in CamelCase (``PostgresUser``) to the StateFactory of the state
    module ``postgres_user``; None if this minion has no such module.

    A state module is loaded only when its name is looked up.
    """
    modules = {_camel(module): module for module in known.files()} if known is not None else {}
    modules |= {_camel(module): module for module in _ALWAYS}

    def factory(name: str) -> StateFactory | None:
        module = modules.get(name)
        if module is None:
            # A user's module may have a virtual name that differs from its file's.
            module = re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower()
            if _camel(module) != name:
                return None
        functions = (known.functions(module) if known is not None else ()) or _ALWAYS.get(module, ())
        return StateFactory(module, functions) if functions else None

    def named(name: str) -> StateFactory | None:
        return factory(name) if name[:1].isupper() else None

    return named


def _camel(module: str) -> str:
    return "".join(part.capitalize() for part in module.split("_"))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that compiled Python code, its functions and classes included, may look up as global names."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)

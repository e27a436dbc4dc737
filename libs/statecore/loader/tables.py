"""Lazy maps of "module.function" to a function that is bound to one Context (the data of a run: grains, pillar, options, host).

``ctx.functions`` holds execution functions, ``ctx.states`` state functions, ``ctx.tables`` a map for each other kind of users'
module, such as utils.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from statecore.loader import Loader
from statecore.loader.find import DIRECTORIES
from statecore.loader.ignored_arguments import ignores_unknown, read_as
from statecore.model.context import Context
from statecore.model.errors import NotAvailable
from statecore.model.ports import Function

log = logging.getLogger(__name__)

#: Converts a state function's return for its caller: (ctx, "module.function", return, arguments).
Finish: TypeAlias = Callable[[Context, str, object, Mapping[str, object]], object]


class Table(Mapping[str, Function]):
    """Lazy map of "module.function" to the function bound to one Context. A missing name raises NotAvailable with the
    reason.
    """

    def __init__(
        self, loader: Loader, kind: str, finish: Finish | None = None, only: frozenset[str] = frozenset()
    ) -> None:
        """Create a table of the loader's functions of one kind, such as "modules".

        ``finish``, if given, converts the result of each call. ``only`` limits the table to these module names; empty
        means all modules.
        """
        self._loader = loader
        self._only = only
        self._kind = kind
        self._finish = finish
        self._ctx: Context | None = None
        self._generation = loader.generation
        self._bound: dict[str, Function] = {}

    def attach(self, ctx: Context) -> None:
        """Set the table's Context. The constructor cannot do that, because the Context itself holds the table."""
        self._ctx = ctx
        self._bound.clear()

    def bound_to(self, ctx: Context) -> Table:
        """Return a table of the same functions bound to another Context, such as the Context of one low chunk."""
        other = Table(self._loader, self._kind, self._finish, self._only)
        other.attach(ctx)
        return other

    def __getitem__(self, name: str) -> Function:
        if self._generation != self._loader.generation:
            self._bound.clear()
            self._generation = self._loader.generation
        bound = self._bound.get(name)
        if bound is None:
            bound = self._bound[name] = self._bind(name)
        return bound

    def get(self, name: str, default: Any = None) -> Any:
        """Return the function called ``name``, or ``default`` if there is none.

        ``Mapping.get`` would raise, because NotAvailable is not a KeyError.
        """
        try:
            return self[name]
        except NotAvailable:
            return default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._holds(name) and self._loader.has(self._kind, name, self._context())

    def __iter__(self) -> Iterator[str]:
        return filter(self._holds, self._loader.names(self._kind, self._context()))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _holds(self, name: str) -> bool:
        return not self._only or name.partition(".")[0] in self._only

    def _context(self) -> Context:
        if self._ctx is None:
            raise RuntimeError("this table was never attached to a context")
        return self._ctx

    def _bind(self, name: str) -> Function:
        ctx = self._context()
        if not self._holds(name):
            raise NotAvailable(name)
        loaded, function = self._loader.function(self._kind, name, ctx)
        bound = loaded.bound(function, ctx)
        finish = self._finish
        if finish is None:
            return bound

        takes = loaded.parameters(function).takes if loaded.native and ignores_unknown(name) else None

        def finished(*args: object, **kwargs: object) -> object:
            if takes is not None:
                for short, meant in read_as(name).items():
                    if short in kwargs and kwargs.get(meant) is None:
                        kwargs[meant] = kwargs.pop(short)
                if ignored := sorted(key for key in kwargs if not takes(key)):
                    log.warning("%s ignores the arguments %s, as in Salt", name, ", ".join(ignored))
                    kwargs = {key: value for key, value in kwargs.items() if takes(key)}
            named = {"name": args[0], **kwargs} if args else kwargs
            return finish(ctx, name, bound(*args, **kwargs), named)

        return finished


class Tables(Mapping[str, Mapping[str, Function]]):
    """Map of kind ("utils", "serializers", "matchers", "executors" ...) to the lazy Table of the kind's functions
    ("module.function" to the function). A Table is created on first use.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._ctx: Context | None = None
        self._tables: dict[str, Table] = {}

    def attach(self, ctx: Context) -> None:
        """Set the Context to which the functions of all tables are bound."""
        self._ctx = ctx
        self._tables.clear()

    def __getitem__(self, kind: str) -> Table:
        if kind not in DIRECTORIES:
            raise KeyError(kind)
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = Table(self._loader, kind)
            if self._ctx is not None:
                table.attach(self._ctx)
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(DIRECTORIES)

    def __len__(self) -> int:
        return len(DIRECTORIES)


def attached(ctx: Context, loader: Loader, finish: Finish, functions: Table | None = None) -> Context:
    """Return a copy of the Context whose ``functions``, ``states`` and ``tables`` are tables of this loader, bound to
    the copy.

    Pass ``functions`` if another object, such as a template engine, must hold that table before the Context exists.
    ``finish`` converts the result of each state function.
    """
    functions = Table(loader, "modules") if functions is None else functions
    states = Table(loader, "states", finish)
    tables = Tables(loader)
    whole = replace(ctx, functions=functions, states=states, tables=tables)
    functions.attach(whole)
    states.attach(whole)
    tables.attach(whole)
    return whole

"""The lazy mappings that a context carries: ``ctx.functions`` and ``ctx.states``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from statecore.context import Context
from statecore.errors import NotAvailable
from statecore.loader import Loader
from statecore.ports import Function


class Table(Mapping[str, Function]):
    """``"module.function"`` -> callable bound to one context; a missing name raises NotAvailable with its reason.

    ``finish`` turns what the function returned into what the caller gets (a Plan into Salt's state dict).
    """

    def __init__(
        self, loader: Loader, kind: str, finish: Callable[[Context, str, Any, Mapping[str, Any]], Any] | None = None
    ):
        self._loader = loader
        self._kind = kind
        self._finish = finish
        self._ctx: Context | None = None
        self._bound: dict[str, Function] = {}

    def attach(self, ctx: Context) -> None:
        """Gives the table its context; it cannot be there at construction since the context holds the table."""
        self._ctx = ctx
        self._bound.clear()

    def forget(self) -> None:
        """Drops bound functions, after the loader was refreshed."""
        self._bound.clear()

    def __getitem__(self, name: str) -> Function:
        bound = self._bound.get(name)
        if bound is None:
            bound = self._bound[name] = self._bind(name)
        return bound

    def get(self, name: str, default: Any = None) -> Any:
        """Like a dict's; NotAvailable is not a KeyError, so Mapping's own would raise."""
        try:
            return self[name]
        except NotAvailable:
            return default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._loader.has(self._kind, name, self._context())

    def __iter__(self) -> Iterator[str]:
        return iter(self._loader.names(self._kind, self._context()))

    def __len__(self) -> int:
        return len(self._loader.names(self._kind, self._context()))

    def _context(self) -> Context:
        if self._ctx is None:
            raise RuntimeError("this table was never attached to a context")
        return self._ctx

    def _bind(self, name: str) -> Function:
        ctx = self._context()
        served, function = self._loader.function(self._kind, name, ctx)
        bound = served.bound(function, ctx)
        finish = self._finish
        if finish is None:
            return bound

        def finished(*args: Any, **kwargs: Any) -> Any:
            named = {"name": args[0], **kwargs} if args else kwargs
            return finish(ctx, name, bound(*args, **kwargs), named)

        return finished


def attached(
    ctx: Context, loader: Loader, finish: Callable[[Context, str, Any, Mapping[str, Any]], Any] | None = None
) -> Context:
    """The context with fresh ``functions`` and ``states`` tables that are bound to it."""
    functions = Table(loader, "modules")
    states = Table(loader, "states", finish)
    whole = replace(ctx, functions=functions, states=states)
    functions.attach(whole)
    states.attach(whole)
    return whole

"""Looks at the tree more closely: these live in ``state_tree``, which is loaded when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context


def check(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
    """All that is wrong or odd in the state tree, with file, line and column (``state_tree.check``)."""
    return ctx.call("state_tree.check", mods, **kwargs)


def plan(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
    """What a run would change, with the diffs of whole files (``state_tree.plan``)."""
    return ctx.call("state_tree.plan", mods, **kwargs)


def graph(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
    """The states of a run in their order, and their requisites (``state_tree.graph``); ``format``: mermaid, dot, svg, json."""
    return ctx.call("state_tree.graph", mods, **kwargs)


def explain(ctx: Context, mods: str | Sequence[str], id_: str, **kwargs: Any) -> Any:
    """Why the states of an ID run when they do, and where everything that they have comes from (``state_tree.explain``)."""
    return ctx.call("state_tree.explain", mods, id_, **kwargs)


def graph_highstate(ctx: Context, queue: Any = None, **kwargs: Any) -> Any:
    """The states of a highstate in their order, and their requisites, in DOT as Salt's function of this name."""
    return graph(ctx, None, **{"format": "dot", **kwargs})

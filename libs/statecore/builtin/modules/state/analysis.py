"""Functions of ``state`` that analyse the state tree. The module ``state_tree`` implements them; it is loaded on the
first call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context


def check(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> Any:
    """Find errors and oddities in the state tree, with file, line and column (see ``state_tree.check``)."""
    return ctx.call("state_tree.check", mods, **kwargs)


def plan(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> Any:
    """Return the changes that a run would make, with the diffs of whole files (see ``state_tree.plan``)."""
    return ctx.call("state_tree.plan", mods, **kwargs)


def graph(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> object:
    """Return the states of a run in their order with their requisites (see ``state_tree.graph``), in the ``format``
    mermaid, dot, svg or json.
    """
    return ctx.call("state_tree.graph", mods, **kwargs)


def explain(ctx: Context, mods: str | Sequence[str], id_: str, **kwargs: object) -> object:
    """Explain why the states of an ID run when they do, and where their parts come from (see
    ``state_tree.explain``).
    """
    return ctx.call("state_tree.explain", mods, id_, **kwargs)


def graph_highstate(ctx: Context, queue: object = None, **kwargs: object) -> object:
    """Return the states of a highstate in their order with their requisites, in DOT, as Salt's function of this
    name.
    """
    return graph(ctx, None, **{"format": "dot", **kwargs})

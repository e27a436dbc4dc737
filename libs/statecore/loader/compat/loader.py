"""``salt.loader``: the function tables of the running module's context. The arguments are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.loader.dunders import ModuleOpts, SaltTable
from statecore.loader.entered import context_of
from statecore.model.context import Context


def _context(opts: Any, name: str) -> Context:
    return opts.ctx if isinstance(opts, ModuleOpts) else context_of(f"salt.loader.{name}")


def minion_mods(opts: Any, *_: Any, **__: Any) -> Mapping[str, Any]:
    """``__salt__``."""
    return SaltTable(_context(opts, "minion_mods").functions)


def states(opts: Any, *_: Any, **__: Any) -> Mapping[str, Any]:
    """``__states__``."""
    return SaltTable(_context(opts, "states").states)


def utils(opts: Any, *_: Any, **__: Any) -> Mapping[str, Any]:
    """``__utils__``."""
    return SaltTable(_context(opts, "utils").tables["utils"])


def serializers(opts: Any, *_: Any, **__: Any) -> Mapping[str, Any]:
    """``__serializers__``."""
    return SaltTable(_context(opts, "serializers").tables["serializers"])


def executors(opts: Any, *_: Any, **__: Any) -> Mapping[str, Any]:
    """``__executors__``."""
    return SaltTable(_context(opts, "executors").tables["executors"])


def render(opts: Any, *_: Any, **__: Any) -> Mapping[str, Any]:
    """Users' renderers, as ``name.render``; those that are built in are asked for by ``slsutil.renderer``."""
    return SaltTable(_context(opts, "render").tables["renderers"])


def grains(opts: Any, *_: Any, **__: Any) -> dict[str, Any]:
    """The grains."""
    return dict(_context(opts, "grains").grains)

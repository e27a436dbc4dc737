"""``salt.loader``: the function tables of the running module's context. The arguments are ignored."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts, SaltTable
from statecore.model.context import Context


def _context(opts: object, name: str) -> Context:
    return opts.ctx if isinstance(opts, ModuleOpts) else context_of(f"salt.loader.{name}")


def minion_mods(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """``__salt__``."""
    return SaltTable(_context(opts, "minion_mods").functions)


def states(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """``__states__``."""
    return SaltTable(_context(opts, "states").states)


def utils(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """``__utils__``."""
    return SaltTable(_context(opts, "utils").tables["utils"])


def serializers(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """``__serializers__``."""
    return SaltTable(_context(opts, "serializers").tables["serializers"])


def executors(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """``__executors__``."""
    return SaltTable(_context(opts, "executors").tables["executors"])


def render(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """Users' renderers, as ``name.render``; those that are built in are asked for by ``slsutil.renderer``."""
    return SaltTable(_context(opts, "render").tables["renderers"])


def grains(opts: object, *_: object, **__: object) -> dict[str, object]:
    """The grains."""
    return dict(_context(opts, "grains").grains)

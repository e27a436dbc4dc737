"""``salt.loader`` for users' modules: the function tables (``__salt__`` ...) of the running module. Most arguments are
ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts, SaltTable
from statecore.model.context import Context


def _context(opts: object, name: str) -> Context:
    return opts.ctx if isinstance(opts, ModuleOpts) else context_of(f"salt.loader.{name}")


def minion_mods(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """Return the execution functions that the running module has as ``__salt__``: a map of "module.function" to the
    function.
    """
    return SaltTable(_context(opts, "minion_mods").functions)


def states(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """Return the state functions that the running module has as ``__states__``: a map of "module.function" to the
    function.
    """
    return SaltTable(_context(opts, "states").states)


def utils(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """Return the utility functions that the running module has as ``__utils__``: a map of "module.function" to the
    function.
    """
    return SaltTable(_context(opts, "utils").tables["utils"])


def serializers(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """Return the serializer functions that the running module has as ``__serializers__``: a map of "module.function" to
    the function.
    """
    return SaltTable(_context(opts, "serializers").tables["serializers"])


def executors(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """Return the executor functions that the running module has as ``__executors__``: a map of "module.function" to the
    function.
    """
    return SaltTable(_context(opts, "executors").tables["executors"])


def render(opts: object, *_: object, **__: object) -> Mapping[str, object]:
    """Return the map of "name.render" to the user's own renderers (``_renderers``).

    The built-in renderers are not in the map; call the function ``slsutil.renderer`` for these.
    """
    return SaltTable(_context(opts, "render").tables["renderers"])


def grains(opts: object, *_: object, **__: object) -> dict[str, object]:
    """Return a copy of the running minion's grains as a map."""
    return dict(_context(opts, "grains").grains)

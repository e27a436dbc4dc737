"""Salt's ``pkg`` states: packages, with any supported package manager of the host.

The package lists are fetched once in a run, before the first installation (``mod_init``); ``refresh`` overrides this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statecore.builtin.states.pkg import downloads, groups, packages, selection
from statecore.model.context import Context
from statecore.model.errors import NotAvailable
from statecore.model.types import Low, Plan

#: Modules whose public functions are this package's state functions.
PARTS = (packages, groups, downloads)


def available(ctx: Context) -> str | None:
    """Return None if a ``pkg`` execution module supports the host's package manager, else the reason as text."""
    try:
        ctx.functions["pkg.install"]
    except NotAvailable as missing:
        return f"pkg module could not be loaded: {missing}"
    return None


def mod_init(ctx: Context, low: Low) -> bool:
    """Request a fetch of the package lists before the first installation of the state run.

    Returns True if ``low`` installs packages.
    """
    if low["fun"] not in ("installed", "latest"):
        return False
    ctx.scratch[selection.REFRESH_DUE] = True
    return True


def mod_watch(ctx: Context, name: str, sfun: str = "", **arguments: object) -> Plan:
    """Apply the ``pkg`` state again, because a watched state changed."""
    again = _ON_CHANGE.get(sfun)
    if again is None:
        return Plan.failed(f"pkg.{sfun} does not work with the watch requisite")
    return again(ctx, name, **arguments)


_ON_CHANGE: Mapping[str, Callable[..., Plan]] = {
    "installed": packages.installed,
    "latest": packages.latest,
    "removed": packages.removed,
    "purged": packages.purged,
}


def mod_aggregate(ctx: Context, low: Low, chunks: Sequence[Low], running: Mapping[str, object]) -> Low:
    """Merge the packages of similar low chunks that are ready to run into one call of the package manager.

    Merged chunks get ``__agg__: True``. Returns the chunk with all packages in ``pkgs`` or ``sources``.
    """
    if low.get("fun") not in _ON_CHANGE:
        return low
    key = "sources" if "sources" in low else "pkgs"
    gathered: list[object] = []
    for chunk in chunks:
        alike = all(chunk.get(part) == low.get(part) for part in ("state", "fun", "fromrepo"))
        if not alike or chunk.get("__agg__") or "hold" in chunk or ("sources" in chunk) != (key == "sources"):
            continue
        gathered += chunk.get(key) or [{chunk["name"]: chunk["version"]} if chunk.get("version") else chunk["name"]]
        chunk["__agg__"] = True
    own = low.get(key) or [{low["name"]: low["version"]} if low.get("version") else low["name"]]
    both = [*own, *gathered]
    distinct = [each for number, each in enumerate(both) if each not in both[:number]]
    return {**low, key: distinct} if gathered else low

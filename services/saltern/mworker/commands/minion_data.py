"""Wheel functions that import the data of minions (grains, pillar, mine) from another master, and export it for
another master.

``saltern import --data`` and ``saltern export --data`` call them. The data of a minion is bytes: the map ``{"grains":
{...}, "pillar": {...}, "mine": {function: value}}`` as msgpack, as on the wire. Each part may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from masterstore.errors import TooLarge
from saltern.kit.links.control import ControlError
from saltern.mworker.commands.pillar import compile_pillar
from saltern.mworker.worker_context import WorkerContext
from saltwire.errors import PeerFault
from saltwire.pack import octets, packb, unpackb

#: The parts of a minion's data.
PARTS = ("grains", "pillar", "mine")


def bring(context: WorkerContext, *, data: object = None, replace: bool = False) -> dict[str, object]:
    """Store grains, pillar and mine values that another master had of its minions. ``data`` is {minion id: packed
    bytes}.

    Parts that this master already has are newer, and are kept unless ``replace`` is true; for the mine, this is
    decided for each function. For a minion without pillar in ``data``, this master compiles the pillar with the
    minion's grains.

    Return a map with three maps: ``stored`` ({minion id: list of the stored parts}), ``refused`` ({minion id: reason},
    such as no accepted key, malformed or too large) and ``pillar_errors`` ({minion id: first error of the pillar's
    compilation}).
    """
    if not isinstance(data, Mapping):
        raise ControlError("InvocationError", "data must be a map of minion ids to packed bytes")
    stored: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    pillar_errors: dict[str, str] = {}
    accepted = set(context.store.minion_keys.accepted())
    for minion, packed in data.items():
        if minion not in accepted:
            refused[str(minion)] = "its key is not accepted here: import the keys first"
            continue
        try:
            parts = _parts(packed)
            stored[minion] = _store(context, minion, parts, replace=replace)
        except (PeerFault, TooLarge) as error:
            refused[minion] = str(error)
            continue
        if fault := _complete_pillar(context, minion, parts, stored[minion]):
            pillar_errors[minion] = fault
    return {"stored": stored, "refused": refused, "pillar_errors": pillar_errors}


def give(context: WorkerContext, *, match: object = None) -> dict[str, bytes]:
    """Return {minion id: packed bytes} with grains, pillar and mine values of the minions in the list ``match`` of
    ids. Minions of which the master has none of these are left out.
    """
    if not isinstance(match, list):
        raise ControlError("InvocationError", "match must be a list of minion ids")
    pillars = context.pillars()
    grains = context.store.cache.grains_of([str(minion) for minion in match])
    found: dict[str, bytes] = {}
    for minion in map(str, match):
        known = {
            "grains": grains.get(minion),
            "pillar": pillars.get(minion),
            "mine": context.store.cache.mine_of(minion),
        }
        if parts := {name: dict(value) for name, value in known.items() if value}:
            found[minion] = packb(parts)
    return found


def _parts(packed: object) -> dict[str, Mapping[str, object]]:
    """Return the parts in the packed data of one minion as {name (grains, pillar, mine): map}. Raise PeerFault if the
    data is malformed.
    """
    given = octets(packed)
    found = unpackb(given) if given is not None else None
    if not isinstance(found, Mapping):
        raise PeerFault("the data must be packed bytes of a map")
    wrong = [str(name) for name, value in found.items() if name not in PARTS or not isinstance(value, Mapping)]
    if wrong:
        raise PeerFault(f"{', '.join(wrong)}: only {', '.join(PARTS)} are stored, and each is a map")
    return dict(found)


def _store(
    context: WorkerContext, minion: str, parts: Mapping[str, Mapping[str, object]], *, replace: bool
) -> list[str]:
    """Store those parts of a minion's data that this master does not have yet, or with ``replace`` all parts. Return
    the names of the stored parts. Raise TooLarge.
    """
    cache, options = context.store.cache, context.options
    stored: list[str] = []
    grains, mine = parts.get("grains"), parts.get("mine")
    if options.minion_data_cache and grains and (replace or cache.grains(minion) is None):
        cache.set_grains(minion, {**grains, "id": minion}, most=options.grains_max_bytes)
        context.fire(f"minion/refresh/{minion}", {"Minion data cache refresh": minion})
        stored.append("grains")
    if options.minion_data_cache and (pillar := parts.get("pillar")) and (replace or minion not in context.pillars()):
        context.keep_pillar(minion, pillar)
        stored.append("pillar")
    known = {} if replace else cache.mine_of(minion)
    if mine and (new := {str(fun): value for fun, value in mine.items() if fun not in known}):
        cache.mine_set(minion, new, most=options.mine_max_bytes)
        stored.append("mine")
    return stored


def _complete_pillar(
    context: WorkerContext, minion: str, parts: Mapping[str, Mapping[str, object]], stored: list[str]
) -> str:
    """Compile and store the pillar of a minion whose data has grains but no pillar, unless this master has its pillar.
    Return the first error of the compilation, or "".

    On success "pillar" is appended to ``stored``.
    """
    grains = parts.get("grains")
    if not context.options.minion_data_cache or not grains or parts.get("pillar") or minion in context.pillars():
        return ""
    pillar = compile_pillar(context, minion, {}, {**grains, "id": minion}, keep=True)
    errors = pillar.get("_errors")
    if isinstance(errors, list) and errors:
        return str(errors[0])
    stored.append("pillar")
    return ""


#: Wheel functions of this module.
FUNCTIONS: Mapping[str, Callable[..., object]] = {"minions.import_data": bring, "minions.export_data": give}

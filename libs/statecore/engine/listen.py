"""Requisites ``listen`` and ``listen_in``: mod_watch calls after all states, for states whose targets changed. Pure.

``listen`` does not change the order of states; ``watch`` does.

Source: docs/state-system.md#listen
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from statecore.engine.arguments import INTERNAL
from statecore.engine.requisite import REQUISITES
from statecore.model.types import Low, Running, tag

_KEPT_OUT = frozenset(
    {*REQUISITES, *(key for key in INTERNAL if key.endswith("_in")), "listen", "retry", "onfail_stop"}
)


class Listening(NamedTuple):
    """Calls of ``mod_watch`` at the end of a state run (requisite ``listen``), and errors of references to unknown
    states.
    """

    #: Chunks of the mod_watch calls, in order, each once.
    chunks: tuple[Low, ...]
    #: Tag -> failed entry, without run number, for each reference to an unknown state.
    errors: Mapping[str, dict[str, object]]


def listening(chunks: Sequence[Low], running: Running) -> Listening:
    """Return the low chunks of the ``mod_watch`` calls that ``listen`` requisites demand after a state run, with the
    errors of references to unknown states.

    ``chunks`` are the low chunks in run order. ``running`` is the running dictionary.
    """
    if not any("listen" in low or "listen_in" in low for low in chunks):
        return Listening(chunks=(), errors={})
    names = _names(chunks)
    calls: dict[str, Low] = {}
    errors: dict[str, dict[str, object]] = {}
    for listener, target in _pairs(chunks, names):
        targets = names.get(target, [])
        if not targets:
            errors.update(_dangling(*target))
        elif any(running.get(tag(each), {}).get("changes") for each in targets):
            listeners = [listener] if isinstance(listener, dict) else names.get(listener, [])
            if not listeners:
                errors.update(_dangling(*listener))
            for low in listeners:
                call = _mod_watch(low)
                calls.setdefault(tag(call), call)
    return Listening(chunks=tuple(calls.values()), errors=errors)


def _pairs(
    chunks: Sequence[Low], names: Mapping[tuple[str, str], list[Low]]
) -> Iterator[tuple[Low | tuple[str, str], tuple[str, str]]]:
    """Yield (listening state, state that it listens to) for each reference in ``listen`` and ``listen_in``.

    A state is (state module, ID or name). The listening state of a ``listen`` is its low chunk instead.
    """
    for low in chunks:
        for reference in _references(low.get("listen"), names):
            yield low, reference
        for reference in _references(low.get("listen_in"), names):
            yield reference, (low["state"], str(low["__id__"]))


def _references(value: object, names: Mapping[tuple[str, str], list[Low]]) -> Iterator[tuple[str, str]]:
    for item in value if isinstance(value, list) else [value] if value else []:
        if isinstance(item, dict):
            yield from ((str(key).partition(".")[0], str(target)) for key, target in item.items())
        else:
            yield from ((low["state"], str(low["__id__"])) for low in names.get(("id", str(item)), []))


def _names(chunks: Sequence[Low]) -> dict[tuple[str, str], list[Low]]:
    named: dict[tuple[str, str], list[Low]] = {}
    for low in chunks:
        for name in dict.fromkeys((str(low["__id__"]), str(low["name"]))):
            named.setdefault((low["state"], name), []).append(low)
            named.setdefault(("id", name), []).append(low)
    return named


def _mod_watch(low: Low) -> Low:
    kept = {key: value for key, value in low.items() if key not in _KEPT_OUT}
    return {**kept, "sfun": low["fun"], "fun": "mod_watch", "__id__": f"listener_{low['__id__']}"}


def _dangling(key: str, value: str) -> dict[str, dict[str, object]]:
    low = {"state": "Listen_Error", "__id__": f"listen_{value}", "name": f"listen_{key}", "fun": "Listen_Error"}
    return {
        tag(low): {
            "comment": f"Referenced state {key}: {value} does not exist",
            "name": f"listen_{key}:{value}",
            "result": False,
            "changes": {},
        }
    }

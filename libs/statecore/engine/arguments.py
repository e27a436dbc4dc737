"""From a low chunk to the arguments of its state function: what is the engine's, what is the user's, what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NamedTuple

from statecore.engine.requisite import REQUISITES
from statecore.loader.arguments import Parameters

#: Keys that speak to the state system and not to the state function. A function may still name one of them as its own
#: parameter (``file.managed`` takes ``check_cmd``) and then gets it.
INTERNAL = frozenset(
    {
        *REQUISITES,
        "prerequired",
        "listen",
        "use",
        "onfail_stop",
        *(
            f"{kind}_in"
            for kind in (
                "onchanges",
                "onfail",
                "prereq",
                "watch",
                "require",
                "listen",
                "use",
                "onchanges_any",
                "onfail_any",
            )
        ),
        *("state", "fun", "sfun", "order", "name_order", "names", "aggregate", "beacon", "provider"),
        *("check_cmd", "cmd_opts_exclude", "onlyif", "unless", "creates"),
        *("failhard", "retry", "parallel", "no_log", "fire_event", "saltenv", "umask", "runas", "runas_password"),
        *("reload_modules", "reload_grains", "reload_pillar", "force_reload_modules"),
    }
)


class Arguments(NamedTuple):
    """What to call a state function with, or what is wrong with the chunk. Pure."""

    values: Mapping[str, Any]
    #: Parameters without a default that the chunk does not give.
    missing: tuple[str, ...] = ()
    #: Arguments the function does not take -> the nearest that it does ("" when none is near).
    unknown: Mapping[str, str] | None = None


def bind(low: Mapping[str, Any], parameters: Parameters) -> Arguments:
    """Sorts a chunk's keys into the parameters of the function."""
    named = parameters.named
    others = low.keys() - INTERNAL
    values = {key: low[key] for key in named if key in low}
    extra = [key for key in low if key in others and key not in named and not key.startswith("__")]
    if extra and parameters.takes_any:
        values |= {key: low[key] for key in extra}
        extra = []
    missing = tuple([key for key in parameters.required if key not in low])
    unknown = {key: _nearest(key, [*named, *INTERNAL]) for key in extra} if extra else None
    return Arguments(values, missing, unknown)


def _nearest(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    return near[0] if near else ""


def complaint(arguments: Arguments, function: str) -> str:
    """What is wrong, as a comment; "" when nothing is."""
    lines = [f"Missing parameter {name} for state {function}" for name in arguments.missing]
    unknown = arguments.unknown or {}
    if unknown:
        listed = [f"'{key}'" for key in unknown]
        are = "is an invalid keyword argument" if len(listed) == 1 else "are invalid keyword arguments"
        names = listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " and " + listed[-1]
        lines.append(f"{names} {are} for '{function}'")
        lines.extend(f"Did you mean '{near}' instead of '{key}'?" for key, near in unknown.items() if near)
    return "\n".join(lines)

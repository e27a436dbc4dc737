"""From a low chunk to the arguments of its state function: what is the engine's, what is the user's, what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from statecore.engine.requisite import REQUISITES
from statecore.loader.arguments import Parameters
from statecore.model.nearest import close_matches

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
    #: Arguments of a wrong type -> what they are, and what they are to be.
    wrong: Mapping[str, str] | None = None


def bind(low: Mapping[str, Any], parameters: Parameters) -> Arguments:
    """Sorts a chunk's keys into the parameters of the function."""
    named, plain = parameters.named, parameters.plain
    others = low.keys() - INTERNAL
    values = {key: low[key] for key in named if key in low}
    # A text where a text is meant, as nearly all are, need not be looked at further.
    doubtful = [
        key for key, value in values.items() if key in plain and not (type(value) is str and "str" in plain[key])
    ]
    for key in doubtful:
        values[key] = _text(values[key], plain[key])
    wrong = _wrong({key: values[key] for key in doubtful}, plain) if doubtful else None
    extra = [key for key in low if key in others and key not in named and not key.startswith("__")]
    if extra and parameters.takes_any:
        values |= {key: low[key] for key in extra}
        extra = []
    missing = tuple([key for key in parameters.required if key not in low])
    unknown = {key: _nearest(key, [*named, *INTERNAL]) for key in extra} if extra else None
    return Arguments(values, missing, unknown, wrong)


#: What an argument allows that is a text, or left out.
_TEXTS = (frozenset({"str"}), frozenset({"str", "None"}))


def _text(value: Any, kinds: frozenset[str]) -> Any:
    """Where nothing but a text is meant, a number is its digits: nobody quotes ``version: 7``."""
    return str(value) if kinds in _TEXTS and isinstance(value, int | float) and not isinstance(value, bool) else value


#: What an argument is to be, by what its annotation allows; the first that fits.
_WANTED = (
    ("Mapping", "a map"),
    ("dict", "a map"),
    ("list", "a list"),
    ("Sequence", "a list"),
    ("str", "a text"),
    ("float", "a number"),
    ("int", "a number"),
    ("bool", "true or false"),
)


def _wrong(values: Mapping[str, Any], plain: Mapping[str, frozenset[str]]) -> Mapping[str, str] | None:
    """What no conversion makes an argument of: a map or a list where one value is meant, one value where a list is, words where
    a number is."""
    found = {}
    for name, value in values.items():
        kinds = plain.get(name)
        if kinds is not None and value is not None and (is_ := _unfit(value, kinds)):
            found[name] = f"{next((word for kind, word in _WANTED if kind in kinds), 'left out')}, not {is_}"
    return found or None


def _unfit(value: Any, kinds: frozenset[str]) -> str:
    """What a value is that fits none of the kinds; "" where it fits."""
    lists, maps = kinds & {"list", "Sequence"}, kinds & {"Mapping", "dict"}
    if isinstance(value, Mapping):
        return "" if maps else "a map"
    if isinstance(value, list | tuple | set):
        # Salt's way to write a map, which functions that take one may know.
        return "" if lists or (maps and all(isinstance(each, Mapping) for each in value)) else "a list"
    if isinstance(value, str):
        # A text is a sequence, and where one is taken it is meant.
        fits = kinds & {"str", "bool", "Sequence"} or (kinds & {"int", "float"} and _is_number(value))
        return "" if fits or not value else f"'{value}'"
    # What is left are numbers, true and false. False means nothing to many.
    fits = kinds & {"int", "float", "bool"} or ("str" in kinds and not lists and value is not True)
    return "" if fits or not value else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _nearest(key: str, known: list[str]) -> str:
    near = close_matches(key, known, n=1, cutoff=0.6)
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
    lines.extend(f"'{name}' of '{function}' is to be {what}" for name, what in (arguments.wrong or {}).items())
    return "\n".join(lines)

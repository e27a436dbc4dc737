"""Arguments of a state function, taken from a low chunk: checks for missing, unknown and ill-typed arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from statecore.engine.requisite import REQUISITES
from statecore.loader.arguments import Parameters
from statecore.model.nearest import close_matches

#: Keys for the state system, which a state function gets only if it has a parameter of that name (``file.managed`` has
#: ``check_cmd``).
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
    """Arguments for a state function (``values``), and the names of arguments of the low chunk that are missing,
    unknown or of a wrong type.
    """

    values: Mapping[str, object]
    #: Parameters without a default that the chunk lacks.
    missing: tuple[str, ...] = ()
    #: Map of each unknown argument to the nearest known one ("" if none is near); None without unknown arguments.
    unknown: Mapping[str, str] | None = None
    #: Map of each ill-typed argument to its fault; None without such arguments.
    wrong: Mapping[str, str] | None = None


def bind(low: Mapping[str, object], parameters: Parameters) -> Arguments:
    """Return the Arguments of a low chunk for a state function with these parameters: the values, and all faults found
    in them.

    Never raises: missing, unknown and ill-typed arguments are fields of the result.
    """
    named, plain = parameters.named, parameters.plain
    others = low.keys() - INTERNAL
    values = {key: low[key] for key in named if key in low}
    # Nearly all arguments are texts for a text parameter: these need no further checks.
    doubtful = [
        key for key, value in values.items() if key in plain and not (type(value) is str and "str" in plain[key])
    ]
    for key in doubtful:
        values[key] = _text(values[key], plain[key])
    wrong = _wrong({key: values[key] for key in doubtful}, plain) if doubtful else None
    extra = [key for key in low if key in others and key not in named and not key.startswith("__")]
    if extra and parameters.takes_any:
        values |= {key: low[key] for key in extra if parameters.takes(key)}
        extra = [key for key in extra if not parameters.takes(key)]
    missing = tuple([key for key in parameters.required if key not in low])
    unknown = {key: nearest(key, [*named, *(parameters.options or ()), *INTERNAL]) for key in extra} if extra else None
    return Arguments(values, missing, unknown, wrong)


#: Kinds of a parameter that takes only text, or text or None.
_TEXTS = (frozenset({"str"}), frozenset({"str", "None"}))


def _text(value: object, kinds: frozenset[str]) -> object:
    """Return a number as text if the parameter takes only text, because users write ``version: 7`` without quotes;
    other values unchanged.
    """
    return str(value) if kinds in _TEXTS and isinstance(value, int | float) and not isinstance(value, bool) else value


#: Kind in a parameter's annotation -> words for it; the first kind that the annotation has counts.
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


def _wrong(values: Mapping[str, object], plain: Mapping[str, frozenset[str]]) -> Mapping[str, str] | None:
    """Map of argument name to its fault, such as "a list, not 'x'"; None if no argument has a fault.

    A fault is a value that no conversion makes fit: a map or list in place of a single value, a single value in place
    of a list, or words in place of a number.
    """
    found = {}
    for name, value in values.items():
        kinds = plain.get(name)
        if kinds is not None and value is not None and (is_ := _unfit(value, kinds)):
            found[name] = f"{next((word for kind, word in _WANTED if kind in kinds), 'left out')}, not {is_}"
    return found or None


def _unfit(value: object, kinds: frozenset[str]) -> str:

    lists, maps = kinds & {"list", "Sequence"}, kinds & {"Mapping", "dict"}
    if isinstance(value, Mapping):
        return "" if maps else "a map"
    if isinstance(value, list | tuple | set):
        # Salt's way to write a map is a list of maps. Functions that take a map may accept it.
        return "" if lists or (maps and all(isinstance(each, Mapping) for each in value)) else "a list"
    if isinstance(value, str):
        # A text is a Sequence: some functions take a text or a list.
        fits = kinds & {"str", "bool", "Sequence"} or (kinds & {"int", "float"} and _is_number(value))
        return "" if fits or not value else f"'{value}'"
    # Numbers and booleans are left. Many SLS files write False for "not set".
    fits = kinds & {"int", "float", "bool"} or ("str" in kinds and not lists and value is not True)
    return "" if fits or not value else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


#: Name that users write -> names that they mean; the first one that the function has counts.
_MEANT: Mapping[str, tuple[str, ...]] = {
    "user": ("runas",),
    "owner": ("user", "runas"),
    "runas": ("user",),
    "run_as": ("runas", "user"),
    "content": ("contents",),
    "text": ("contents",),
    "perms": ("mode", "file_mode"),
    "permissions": ("mode", "file_mode"),
    "mode": ("file_mode", "dir_mode"),
    "enabled": ("enable",),
    "environment": ("env",),
    "dir": ("cwd",),
    "directory": ("cwd",),
    "version": ("rev",),
    "branch": ("rev", "branch"),
    "requires": ("require",),
}


def nearest(key: str, known: Sequence[str]) -> str:
    """Return the name in ``known`` that the author of a state probably meant with the unknown argument name ``key``: a
    recorded synonym, else the most similar name; "" if there is none.
    """
    meant = next((name for name in _MEANT.get(key, ()) if name in known), "")
    return meant or next(iter(close_matches(key, known, n=1, cutoff=0.6)), "")


def complaint(arguments: Arguments, function: str, low: Mapping[str, object] | None = None) -> str:
    """Return the comment of a state whose arguments are missing, unknown or of a wrong type, one sentence a line; ""
    if all arguments are right.

    ``low``: the state's low chunk, for a function whose comment shows unknown arguments as ``name=value``; None: the
    comment shows only their names.
    """
    lines = [f"Missing parameter {name} for state {function}" for name in arguments.missing]
    unknown = arguments.unknown or {}
    if unknown and low is not None:
        given = ", ".join(f"{key}={low[key]}" for key in unknown)
        lines.append(f"The following keyword arguments are not valid: {given}")
        lines.extend(f"Did you mean '{near}' instead of '{key}'?" for key, near in unknown.items() if near)
    elif unknown:
        listed = [f"'{key}'" for key in unknown]
        are = "is an invalid keyword argument" if len(listed) == 1 else "are invalid keyword arguments"
        names = listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " and " + listed[-1]
        lines.append(f"{names} {are} for '{function}'")
        lines.extend(f"Did you mean '{near}' instead of '{key}'?" for key, near in unknown.items() if near)
    lines.extend(f"'{name}' of '{function}' is to be {what}" for name, what in (arguments.wrong or {}).items())
    return "\n".join(lines)

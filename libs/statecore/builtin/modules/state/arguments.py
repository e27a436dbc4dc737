"""Functions that read and check the arguments of ``state`` functions, and translate them into options of the state
engine.

Every function raises InvocationError for an invalid argument. The error names the argument, its allowed values and its
value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.nearest import one_letter_off

#: Boolean arguments: any true value counts.
_FLAGS = ("failhard", "force", "state_events", "cache", "mock")


def split(names: object, argument: str = "mods") -> list[str]:
    """Return an argument of SLS names or IDs as a list of names. The argument is a list, or text with commas."""
    if isinstance(names, str | int | float):
        return [name.strip() for name in str(names).split(",")]
    if isinstance(names, list | tuple) and all(isinstance(name, str | int | float) for name in names):
        return [str(name) for name in names]
    raise _wrong(argument, "a name, names separated by commas, or a list of names", names)


def options(ctx: Context, test: object, keywords: Mapping[str, object], *, own: bool = True) -> dict[str, object]:
    """Return the options of a state run as a map of name to checked value: test, pillar, saltenv, pillarenv, exclude,
    failhard and others. Unknown keywords, and those of the publication (``__pub_*``), are ignored, but with ``own`` a
    keyword that is one letter from an option is an error: ``tset=True`` must not change the host.

    ``own``: all keywords are meant for the run. Raise CommandError if the minion's configuration forbids an option.
    """
    if own:
        _refuse_near_misses(keywords)
    asked: dict[str, object] = {name: bool(keywords[name]) for name in _FLAGS if keywords.get(name) is not None}
    for name, reader in _READERS.items():
        if keywords.get(name) is not None:
            asked[name] = reader(keywords[name])
    if "pillarenv" in keywords:
        # None is a value, too: the pillar of all environments, whatever the minion's configuration is.
        asked["pillarenv"] = _environment("pillarenv", keywords["pillarenv"])
    elif ctx.opts.get("pillarenv_from_saltenv") and "saltenv" in asked:
        asked["pillarenv"] = asked["saltenv"]
    if ctx.opts.get("lock_saltenv") and asked.get("saltenv", ctx.opts.get("saltenv")) != ctx.opts.get("saltenv"):
        raise CommandError("lock_saltenv is enabled, saltenv cannot be changed")
    if keywords.get("pillar_enc") is not None:
        raise InvocationError(
            "pillar_enc is not available: encrypted values belong into a pillar file that the gpg renderer reads"
        )
    tested = test_mode(ctx, test, keywords)
    if tested or test is not None or "localconfig" not in asked:
        # Otherwise the file of localconfig may set test.
        asked["test"] = tested
    return asked


def _refuse_near_misses(keywords: Mapping[str, object]) -> None:
    for name in keywords:
        # As in Salt, test counts in any letters (Test=True).
        if name in _KNOWN or name.lower() == "test":
            continue
        near = next((known for known in sorted(_KNOWN) if one_letter_off(name, known)), None)
        if near is not None:
            raise InvocationError(
                f"'{name}' is no argument of a state run. Did you mean '{near}'? Nothing was applied."
            )


def test_mode(ctx: Context, test: object, keywords: Mapping[str, object]) -> bool:
    """Return whether a state run is a test that changes nothing. As in Salt, any ``test`` except False means True, even
    0 and "False".

    Without ``test``, the keyword in other letters (``Test``), the grain, the pillar and the configuration decide.
    """
    if test is not None:
        return test is not False
    if any(name.lower() == "test" and _is_true(value) for name, value in keywords.items()):
        return True
    if ctx.call("config.get", "test", omit_opts=True) is True:
        return True
    return bool(ctx.opts.get("test", False))


def terse(ctx: Context, keywords: Mapping[str, object]) -> bool:
    """Return whether a state run returns only failed and changed states, by the keyword ``terse`` or the minion's
    option ``state_data``.
    """
    return bool(keywords.get("terse")) or ctx.opts.get("state_data") == "terse"


def module_kinds(kinds: object) -> list[str]:
    """Return the list of kinds of users' modules that the argument ``sync_mods`` names; ["all"] for every kind, [] for
    None and False.
    """
    if kinds is None or kinds is False:
        return []
    named = ["all"] if kinds is True else split(kinds, "sync_mods")
    return ["all"] if "all" in named else named


def _is_true(value: object) -> bool:
    return value.strip().lower() in ("true", "1") if isinstance(value, str) else bool(value)


def _wrong(argument: str, wanted: str, value: object) -> InvocationError:
    return InvocationError(f"'{argument}' must be {wanted}, not {_described(value)}")


def _described(value: object) -> str:
    if value is None:
        return "None"
    return f"the {type(value).__name__} {str(value)[:60]!r}" if value != "" else "an empty text"


def _pillar(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise InvocationError(
            "Pillar data must be formatted as a dictionary, unless pillar_enc is specified."
            f' It was {_described(value)}; write pillar=\'{{"key": "value"}}\''
        )
    return dict(value)


def _environment(argument: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str | int | float) or value == "":
        raise _wrong(argument, "the name of an environment", value)
    return str(value)


def _exclude(value: Any) -> list[object]:
    listed: Sequence[object] = (
        [value] if isinstance(value, Mapping) else value.split(",") if isinstance(value, str) else value
    )
    wanted = "SLS names or a list of SLS names, {sls: name} and {id: name}"
    if not isinstance(listed, list | tuple):
        raise _wrong("exclude", wanted, value)
    for item in listed:
        named = isinstance(item, Mapping) and len(item) == 1 and set(item) <= {"sls", "id"}
        if not (named or isinstance(item, str | int | float)):
            raise _wrong("exclude", wanted, item)
    return [dict(item) if isinstance(item, Mapping) else str(item).strip() for item in listed]


def _text(argument: str, wanted: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or not value:
            raise _wrong(argument, wanted, value)
        return value

    return read


_READERS: Mapping[str, Callable[[object], object]] = {
    "saltenv": lambda value: _environment("saltenv", value),
    "pillar": _pillar,
    "exclude": _exclude,
    "whitelist": lambda value: split(value, "whitelist"),
    "localconfig": _text("localconfig", "the path of a YAML file with options"),
    "cache_name": _text("cache_name", "a plain name"),
}

#: All keywords of the functions that start a state run.
_KNOWN = frozenset(
    (
        *_FLAGS,
        *_READERS,
        *("concurrent", "env", "ids", "id_", "mods", "name", "orchestration_jid", "pillar_enc", "pillarenv", "queue"),
        *("snapshot", "sync_mods", "terse", "test", "topfn"),
    )
)

"""Translates the low chunks of reactor SLS into reactions. No I/O. Source: docs/execution.md#reactor"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from statecore.model.types import Low

#: Map of the first part of a reaction's function to the client. ``cmd`` is Salt's older name of ``local``.
CLIENTS: Mapping[str, str] = {
    "local": "local",
    "cmd": "local",
    "runner": "runner",
    "wheel": "wheel",
    "caller": "caller",
}

#: User of the reactor's jobs. As in Salt, events about these jobs cause no reactions.
USER = "Reactor"

#: Keys of a low chunk that the compiler adds.
_COMPILER = frozenset({"state", "fun", "name", "order", "__id__", "__sls__", "__env__", "__sls_included_from__"})

#: Keys of a ``local`` reaction that are not arguments of the function.
_TARGETING = frozenset({"tgt", "tgt_type", "expr_form", "ret", "timeout"})

#: Keys that contain arguments; ``arg`` and ``kwarg`` are Salt's older names.
_ARGUMENTS = frozenset({"args", "arg", "kwarg", "kwargs"})

_SPECIAL = re.compile(r"[*?\[]")


class ReactionError(Exception):
    """Raised when a reaction cannot be carried out as it is written. The message names the reaction and the reason."""


@dataclass(frozen=True)
class Reaction:
    """One call that the reactor makes: a job, a runner, a wheel function, or a local function."""

    #: The ID of the reaction, for logs.
    id: str
    #: local, runner, wheel or caller.
    client: str
    fun: str
    arg: tuple[object, ...] = ()
    kwarg: Mapping[str, object] = field(default_factory=dict)
    #: Target and target type; only for local.
    tgt: object = None
    tgt_type: str = "glob"
    ret: str = ""


def files_for(tag: str, table: Sequence[Mapping[str, Sequence[str]]]) -> list[str]:
    """Return the reactor SLS files of all globs that match the event tag, in the order of the option ``reactor``, each once."""
    found = [path for row in table for glob, paths in row.items() if fnmatchcase(tag, glob) for path in paths]
    return list(dict.fromkeys(found))


def prefixes(table: Sequence[Mapping[str, Sequence[str]]]) -> list[str]:
    """Return the tag prefixes to subscribe to for all globs of the table. No prefix begins with another one."""
    heads = sorted({_SPECIAL.split(glob, maxsplit=1)[0] for row in table for glob in row})
    kept: list[str] = []
    for head in heads:
        if not kept or not head.startswith(kept[-1]):
            kept.append(head)
    return kept


def is_own(data: Mapping[str, object]) -> bool:
    """Return whether an event is about a job that a reaction started. Reacting to such events could go on for ever."""
    return data.get("user") == USER


def reactions(chunks: Sequence[Low]) -> Iterator[Reaction]:
    """Yield the reactions that the low chunks of a reactor SLS describe. Raises ReactionError."""
    for low in chunks:
        client = CLIENTS.get(str(low["state"]))
        if client is None:
            known = ", ".join(CLIENTS)
            raise ReactionError(
                f"reaction '{low['__id__']}': '{low['state']}.{low['fun']}' begins with none of {known}"
            )
        arg, kwarg = _arguments(low)
        if client == "local":
            yield _local(low, arg, kwarg)
        else:
            more = {key: value for key, value in low.items() if key not in _COMPILER | _ARGUMENTS}
            # ``name`` is an argument only if the SLS sets it; otherwise the compiler copied it from the ID.
            named = {"name": low["name"]} if low["name"] != low["__id__"] else {}
            yield Reaction(str(low["__id__"]), client, str(low["fun"]), tuple(arg), {**named, **more, **kwarg})


def _local(low: Low, arg: list[object], kwarg: dict[str, object]) -> Reaction:
    if "tgt" not in low:
        raise ReactionError(f"reaction '{low['__id__']}': local.{low['fun']} needs tgt")
    unknown = sorted(set(low) - _COMPILER - _ARGUMENTS - _TARGETING)
    if unknown:
        raise ReactionError(
            f"reaction '{low['__id__']}': local.{low['fun']} does not take {', '.join(unknown)};"
            " what the function is to get goes under args"
        )
    tgt_type = str(low.get("tgt_type") or low.get("expr_form") or "glob")
    ret = str(low.get("ret") or "")
    return Reaction(str(low["__id__"]), "local", str(low["fun"]), tuple(arg), kwarg, low["tgt"], tgt_type, ret)


def _arguments(low: Low) -> tuple[list[object], dict[str, object]]:
    """Return the (positional, keyword) arguments of a reaction's low chunk; ``args`` is a map, or a list of values and maps."""
    arg: list[object] = []
    kwarg: dict[str, object] = {}
    for key in ("args", "arg"):
        given = low.get(key)
        for item in given if isinstance(given, list) else [] if given is None else [given]:
            if isinstance(item, Mapping):
                kwarg.update(item)
            else:
                arg.append(item)
    for key in ("kwarg", "kwargs"):
        given = low.get(key) or {}
        if not isinstance(given, Mapping):
            raise ReactionError(f"reaction '{low['__id__']}': {key} must be a map, not {given!r}")
        kwarg.update(given)
    return arg, kwarg

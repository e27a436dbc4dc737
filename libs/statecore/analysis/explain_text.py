"""Format the result of ``explain`` (why a state runs at its position) as text. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NotRequired, TypedDict

#: Largest number of states listed for one reference; the rest is only counted.
_MANY = 6

#: Largest number of characters shown of a value.
_LONG = 60


class IncludingSls(TypedDict):
    """An SLS that includes another SLS; ``at`` is the ``file:line`` of the include."""

    sls: str
    #: The included SLS.
    includes: str
    at: str


class ExtendingSls(TypedDict):
    """An SLS that extends the explained ID; ``at`` is the ``file:line`` of the extend."""

    sls: str
    at: str


class TopEntry(TypedDict):
    """The top file's entry that assigns the explained ID's SLS to the minion: its target, the SLS that it names, and
    its ``file:line``.
    """

    target: str
    sls: str
    at: str


class Exclusion(TypedDict):
    """The exclude entry (``what``) that removes the explained ID, and the SLS that holds it."""

    what: object
    sls: str
    at: str


class ExplainedChunk(TypedDict):
    """A state that is related to the explained state by a requisite, as ``explain`` shows it; ``position`` is its number
    in the run, from 1.
    """

    id: str
    function: str
    at: str
    position: int


class DependentChunk(ExplainedChunk):
    """Another state of the run that waits for the explained state, by a requisite of ``kind``."""

    kind: str


class ExplainedRequisite(TypedDict):
    """One requisite reference of the explained state: its kind, the declaration that added it, and the states that it names."""

    kind: str
    #: The reference as written: ``pkg: nginx``, ``sls: web`` or an ID.
    on: str
    #: The declaration that added the requisite (``require_in of ID``); "" for the state itself.
    by: str
    at: str
    #: A sentence on the effect of the requisite.
    means: str
    states: list[ExplainedChunk]


class OverriddenValue(TypedDict):
    """A value of a state's argument that a later declaration replaced, and the place that set it."""

    value: object
    by: str
    at: str


class ExplainedArgument(TypedDict):
    """One argument of the explained state: its value, the SLS and ``file:line`` that set the value, and the values that it
    replaced.
    """

    name: str
    value: object
    by: str
    at: str
    instead_of: NotRequired[list[OverriddenValue]]


class ExplainedState(TypedDict):
    """One state of the explained ID: its place in the run, the reasons for that place, and its arguments."""

    function: str
    name: str
    at: str
    #: Number of the state in the run, from 1, and the number of states in the run.
    position: int
    of: int
    #: The order that the compiler gave the state.
    order: object
    why: list[str]
    requisites: list[ExplainedRequisite]
    required_by: list[DependentChunk]
    arguments: list[ExplainedArgument]


class ExplanationHead(TypedDict):
    """The part of ``explain``'s result about the ID itself: its SLS, and the includes, extends, top file entry and exclude
    that concern it.
    """

    id: str
    sls: str
    at: str
    #: The includes that brought the SLS into the run, nearest first.
    included_through: list[IncludingSls]
    extended_by: list[ExtendingSls]
    named_by: NotRequired[TopEntry]
    excluded_by: NotRequired[Exclusion]


class Explanation(ExplanationHead):
    """The result of ``explain`` for one ID. Each ``at`` is a ``file:line``, or "" if it is not known."""

    states: list[ExplainedState]


def explain_text(explanation: Explanation, shorten: Callable[[str], str] = str) -> str:
    """Format the result of ``explain`` (a map) as indented text.

    ``shorten(text)`` returns the text with shorter file paths, for example relative to the current directory.
    """
    return shorten("\n".join(_lines(explanation)))


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation['id']} (SLS {explanation['sls']}, {explanation['at']})"
    for including in explanation["included_through"]:
        yield f"  came in through {including['at']}: {including['sls']} includes {including['includes']}"
    if "named_by" in explanation:
        named = explanation["named_by"]
        yield f"  the top file names {named['sls']} for '{named['target']}', {named['at']}"
    for one in explanation["extended_by"]:
        yield f"  extended by {one['sls']}, {one['at']}"
    if "excluded_by" in explanation:
        yield f"  does not run: excluded in {explanation['excluded_by']['sls']}, {explanation['excluded_by']['at']}"
    for state in explanation["states"]:
        yield ""
        yield f"{state['function']} {state['name']} ({state['at']})"
        yield f"  runs as {state['position']} of {state['of']}"
        yield from (f"    {why}" for why in state["why"])
        yield from _requisites(state["requisites"])
        if state["required_by"]:
            yield "  others wait for it"
            yield from _table([(f"{one['position']}.", one["kind"], _other(one)) for one in state["required_by"]])
        if state["arguments"]:
            yield "  arguments"
            yield from _table([_argument(one) for one in state["arguments"]])


def _requisites(requisites: list[ExplainedRequisite]) -> Iterator[str]:
    if requisites:
        yield "  waits for"
    for one in requisites:
        by = f", by {one['by']}" if one["by"] else ""
        yield f"    {one['kind']} {one['on']} ({one['at']}{by})"
        yield f"      {one['means']}"
        for other in one["states"][:_MANY]:
            yield f"      {other['position']}. {_other(other)}"
        if len(one["states"]) > _MANY:
            yield f"      and {len(one['states']) - _MANY} more"


def _argument(one: ExplainedArgument) -> tuple[str, ...]:
    by = f", by {one['by']}" if one["by"] else ""
    instead = "".join(
        f"; instead of {_short(old['value'])} ({old['at']})" for old in reversed(one.get("instead_of", []))
    )
    return one["name"], _short(one["value"]), f"({one['at']}{by}){instead}"


def _other(one: ExplainedChunk) -> str:
    return f"{one['function']} {one['id']} ({one['at']})"


def _short(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

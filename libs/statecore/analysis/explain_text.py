"""Format the result of ``explain`` (why a state runs at its position) as text. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: Largest number of states listed for one reference; the rest is only counted.
_MANY = 6

#: Largest number of characters shown of a value.
_LONG = 60


def explain_text(told: Mapping[str, Any], shorten: Callable[[str], str] = str) -> str:
    """Return the map that ``explain`` made as indented text.

    ``shorten(text)`` returns the text with shorter file paths, for example relative to the current directory.
    """
    return shorten("\n".join(_lines(told)))


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"{told['id']} (SLS {told['sls']}, {told['at']})"
    for one in told["included_through"]:
        yield f"  came in through {one['at']}: {one['sls']} includes {one['includes']}"
    if "named_by" in told:
        named = told["named_by"]
        yield f"  the top file names {named['sls']} for '{named['target']}', {named['at']}"
    for one in told["extended_by"]:
        yield f"  extended by {one['sls']}, {one['at']}"
    if "excluded_by" in told:
        yield f"  does not run: excluded in {told['excluded_by']['sls']}, {told['excluded_by']['at']}"
    for state in told["states"]:
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


def _requisites(requisites: list[Mapping[str, Any]]) -> Iterator[str]:
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


def _argument(one: Mapping[str, Any]) -> tuple[str, ...]:
    by = f", by {one['by']}" if one["by"] else ""
    instead = "".join(
        f"; instead of {_short(old['value'])} ({old['at']})" for old in reversed(one.get("instead_of", []))
    )
    return one["name"], _short(one["value"]), f"({one['at']}{by}){instead}"


def _other(one: Mapping[str, Any]) -> str:
    return f"{one['function']} {one['id']} ({one['at']})"


def _short(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

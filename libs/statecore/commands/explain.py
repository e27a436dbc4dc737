"""``statecore explain``: why a state runs when it does, and where everything it has comes from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from statecore.commands.ending import Exit
from statecore.commands.setting import add_options, runtime_of, setting_of
from statecore.inspection.explain import explain

#: States of one reference beyond which the rest is counted.
_MANY = 6

#: Letters of a value beyond which it is cut.
_LONG = 60


def configure(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("sls", metavar="SLS", help="the run that is meant: SLS, or 'highstate' for the top file's")
    parser.add_argument("wanted", metavar="ID", help="an ID of it, or a name")
    parser.add_argument("--grains", default="", metavar="FILE", help="YAML or JSON (default: those of this host)")
    add_options(parser)
    parser.add_argument("--out", choices=("text", "json"), default="text", help="how to tell it (default: text)")


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Exit code and what to print. Raises CommandFault, SlsError."""
    slses = None if given.sls == "highstate" else [each for each in given.sls.split(",") if each]
    with runtime_of(setting_of(given, grains=given.grains)) as runtime:
        told = explain(runtime.bench({"test": True}), slses, given.wanted)
    return Exit.OK, json.dumps(told, indent=2, default=str) if given.out == "json" else explain_text(told)


def explain_text(told: Mapping[str, Any]) -> str:
    """For people."""
    return "\n".join(_lines(told)).replace(f"{Path.cwd()}/", "")


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"{told['id']} (SLS {told['sls']}, {told['at']})"
    for one in told["included_through"]:
        yield f"  came in through {one['at']}: {one['sls']} includes {one['includes']}"
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

"""``highstate``: the report of a state run, host by host: each state, then the summary.

A host's value is the running dictionary (tag: result of a state), a list of compile errors, or a plain value where an orchestration
ran a function. Colours: green for success, cyan for changes, red for failure, light yellow for "would change".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pprint import pformat
from typing import Any

from saltern.kit.command.output import nested, run_summary, state_lines
from saltern.kit.command.output.color import without_escapes
from saltern.kit.command.output.compressed_ids import CHANGES, compressed, count_of
from saltern.kit.command.output.options import OutputOptions
from saltern.kit.command.output.plain_copy import plain_copy
from saltern.kit.command.output.run_summary import Tally
from saltern.kit.command.output.state_lines import VALUE_COLUMN, StateReturn

#: Names of runner states whose changes are the highstate of the states below them.
_ORCHESTRATIONS = frozenset({"state.orch", "state.orchestrate", "state.sls"})


def render(data: object, options: OutputOptions) -> str:
    """Return as text the report of a state run for every host in ``data``, a map of host to its running dictionary.

    Raises TypeError, KeyError, AttributeError or IndexError if the data has another shape.
    """
    return _report(data, options, depth=1)


def _report(whole: object, options: OutputOptions, *, depth: int) -> str:
    data: Any = _unwrapped(whole)
    if isinstance(data, str):
        return data
    if data is None:
        return "None"
    masters = [name for name in data.keys() if name.endswith("_master")]  # noqa: SIM118  # a list has none: no return
    hosts = {name: value for name, value in data.items() if not (name == "retcode" and len(masters) == 1)}
    if options.state_compress_ids:
        hosts = _compressed(hosts)
    return "\n".join(_host(name, value, options, depth)[0] for name, value in hosts.items())


def _compressed(hosts: dict[str, object]) -> dict[str, object]:
    try:
        return compressed(hosts)
    except (KeyError, IndexError, TypeError, AttributeError):
        # The data is no state run (perhaps a list of compile errors), so there is nothing to join.
        return hosts


def _unwrapped(data: object) -> object:
    """Return the map of host to result that ``data`` contains.

    Orchestrate wraps it in a map with ``data``, ``outputter`` and ``retcode``; ``jobs.lookup_jid`` wraps it
    in a map of one job.
    """
    for envelope in ("return", "data"):
        if isinstance(data, Mapping) and envelope in data:
            data = data[envelope]
    if isinstance(data, Mapping) and len(data) == 1:
        (only,) = data.values()
        if isinstance(only, Mapping) and "jid" in only and "fun" in only:
            return only.get("return", {}).get("data", data)
    return data


def _host(host: object, value: object, options: OutputOptions, depth: int = 1) -> tuple[str, bool]:
    """Return (text of one host's report, whether a state changed anything on that host)."""
    lines: list[str] = []
    color, changed = options.colors.green, False
    host = host.decode(errors="backslashreplace") if isinstance(host, bytes) else host
    for kind, part in _PARTS.items():
        if isinstance(value, kind):
            lines, color, changed = part(host, value, options, depth)
            break
    name = without_escapes(host) if options.strip_colors else host
    return "\n".join([f"{color}{name}:{options.colors.endc}", *lines]), changed


_Part = tuple[list[str], str, bool]


def _plain(_host: object, value: object, options: OutputOptions, _depth: int) -> _Part:
    """Return (lines of the report, colour, True) for a function's result in an orchestration: it always counts as a change."""
    colors = options.colors
    return [f"{colors.green}    {line}{colors.endc}" for line in str(value).splitlines()], colors.cyan, True


def _compile_errors(_host: object, errors: Any, options: OutputOptions, _depth: int) -> _Part:
    colors = options.colors
    lines = [f"    {colors.light_red}Data failed to compile:{colors.endc}"]
    for error in errors:
        shown = error.decode(errors="backslashreplace") if isinstance(error, bytes) else error
        shown = without_escapes(shown) if options.strip_colors else shown
        lines.append(f"{colors.light_red}----------\n    {shown}{colors.endc}")
    return lines, colors.light_red, False


def _running(host: object, running: Mapping[str, Any], options: OutputOptions, depth: int) -> _Part:
    colors = options.colors
    lines = [line for tag, value in reversed(list(running.items())) for line in _unordered(tag, value)]
    states: dict[str, StateReturn] = {}
    for tag, value in running.items():
        if isinstance(value, Mapping) and "result" in value:
            states[tag] = running[tag]
    tally = Tally()
    header = colors.green
    by_id = options.state_output.lower().endswith("_id")
    for tag in sorted(states, key=lambda tag: states[tag].get("__run_num__", 0)):
        state = states[tag]
        result = state["result"]
        count = count_of(tag) if options.state_compress_ids else 1
        tally.add(state, count)
        changed, changes = _changes(state, options, depth)
        if changed:
            tally.changed += _count_of_changes(state) if count > 1 else 1
        elif result and (options.state_output_diff or not options.state_verbose):
            continue
        color = colors.cyan if changed else colors.green
        if result is False or result is None:
            header = color = colors.light_yellow if result is None else colors.red
        names = tag.split("_|-")
        if by_id:
            names[2] = names[1]
        terse = state_lines.is_terse(result, changed, options)
        if terse:
            lines.append(state_lines.terse(names, state, color, options))
        elif terse is not None:
            lines += state_lines.full(names, state, color, changes, options)
            tally.warnings += "warnings" in state
    return [*lines, *run_summary.lines(host, tally, options)], header, tally.changed > 0


def _unordered(tag: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value and tag != "changes" and "__run_num__" not in value:
        yield "This state's result does not say when it ran, so its place in the order is not known:"
        yield pformat(plain_copy(value))


def _count_of_changes(state: StateReturn) -> int:
    named = state["changes"].get(CHANGES)
    return len(named) if isinstance(named, Mapping) and named else 1


def _changes(state: StateReturn, options: OutputOptions, depth: int) -> tuple[bool, str]:
    """Return (whether a state changed anything, the text that follows ``Changes:`` in the report)."""
    changes = state["changes"]
    if state.get("name") in _ORCHESTRATIONS:
        below = "\n" + _report(changes, options, depth=depth + 1)
        return True, re.sub("^", " " * (VALUE_COLUMN * depth), below, flags=re.MULTILINE)
    if not changes:
        return False, ""
    if not isinstance(changes, Mapping):
        return True, f"Invalid Changes data: {changes}"
    hosts = changes.get("ret")
    if hosts is not None and changes.get("out") == "highstate":
        if not isinstance(hosts, Mapping):
            raise TypeError(f"the hosts of a highstate are a {type(hosts).__name__}, not a map")
        reports = [_host(name, value, options) for name, value in hosts.items()]
        lines = [line for report, _ in reports for line in report.splitlines()]
        text = "".join(f"\n{' ' * VALUE_COLUMN}{line}" for line in lines)
        return any(changed for _, changed in reports), text
    return True, "\n" + nested.render(changes, options._replace(nested_indent=VALUE_COLUMN, retcode=0)).rstrip()


#: Type of a host's value -> function that makes its part of the report. For another type only the host's name is printed.
_PARTS: Mapping[type, Callable[[object, Any, OutputOptions, int], _Part]] = {
    int: _plain,
    str: _plain,
    list: _compile_errors,
    dict: _running,
}

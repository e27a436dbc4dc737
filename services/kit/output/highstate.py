"""``highstate``: the report of a state run, host by host: each state, then the summary.

A host's value is the running dict (tag -> result of a state), a list of compile errors, or a plain value where an
orchestration ran a function. Colours: green as it should be, cyan changed, red failed, light yellow would change.
"""

from __future__ import annotations

import pprint
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from services.kit.output import nested
from services.kit.output.color import palette, without_escapes
from services.kit.output.options import OutputOptions

#: Column at which a state's values start: further lines of comments and changes are indented so far.
_VALUE_COLUMN = 14

#: Names of runner states whose changes are the highstate of the states below them.
_ORCHESTRATIONS = frozenset({"state.orch", "state.orchestrate", "state.sls"})

_LABELS: Mapping[bool | str | None, str] = {True: "Succeeded", False: "Failed", "warnings": "Warnings"}
_LABEL_WIDTH = max(map(len, _LABELS.values()))


def render(data: Any, options: OutputOptions) -> str:
    """The report of every host in ``data`` (host -> result). Raises TypeError, KeyError... for what is no such return."""
    return _report(data, options, depth=1)


def _report(data: Any, options: OutputOptions, *, depth: int) -> str:
    data = _unwrapped(data)
    if isinstance(data, int | str):
        return str(data)
    if data is None:
        return "None"
    masters = [name for name in data if str(name).endswith("_master")]
    hosts = {name: value for name, value in data.items() if not (name == "retcode" and len(masters) == 1)}
    return "\n".join(_host(name, value, options, depth)[0] for name, value in hosts.items())


def _unwrapped(data: Any) -> Any:
    """Without the envelopes of orchestrate (data, outputter, retcode) and of jobs.lookup_jid."""
    for envelope in ("return", "data"):
        if isinstance(data, Mapping) and envelope in data:
            data = data[envelope]
    if isinstance(data, Mapping) and len(data) == 1:
        (only,) = data.values()
        if isinstance(only, Mapping) and "jid" in only and "fun" in only:
            return only.get("return", {}).get("data", data)
    return data


def _host(host: Any, value: Any, options: OutputOptions, depth: int = 1) -> tuple[str, bool]:
    """The report of one host, and whether anything changed there."""
    colors = palette(options.color)
    lines: list[str] = []
    color, changed = colors.green, False
    for kind, part in _PARTS.items():
        if isinstance(value, kind):
            lines, color, changed = part(str(host), value, options, depth)
            break
    name = without_escapes(host) if options.strip_colors else host
    return "\n".join([f"{color}{name}:{colors.end}", *lines]), changed


_Part = tuple[list[str], str, bool]


def _plain(_host: str, value: Any, options: OutputOptions, _depth: int) -> _Part:
    """A function's result: always a change."""
    colors = palette(options.color)
    return [f"{colors.green}    {line}{colors.end}" for line in str(value).splitlines()], colors.cyan, True


def _compile_errors(_host: str, errors: list[Any], options: OutputOptions, _depth: int) -> _Part:
    colors = palette(options.color)
    lines = [f"    {colors.light_red}Data failed to compile:{colors.end}"]
    for error in errors:
        shown = without_escapes(_text(error)) if options.strip_colors else error
        lines.append(f"{colors.light_red}----------\n    {shown}{colors.end}")
    return lines, colors.light_red, False


@dataclass
class _Tally:
    """What the summary counts."""

    results: Counter[bool | str | None] = field(default_factory=Counter)
    changed: int = 0
    milliseconds: float = 0.0
    #: States that ran in parallel count with the longest of them.
    longest_parallel: float = 0.0

    def add(self, state: Mapping[str, Any]) -> None:
        self.results[state["result"]] += 1
        took = float(str(state.get("duration", 0)).removesuffix(" ms") or 0)
        if "__parallel__" in state:
            self.longest_parallel = max(self.longest_parallel, took)
        else:
            self.milliseconds += took


def _running(host: str, running: Mapping[str, Any], options: OutputOptions, depth: int) -> _Part:
    colors = palette(options.color)
    lines = [line for tag, value in running.items() for line in _unordered(tag, value)]
    states = {tag: value for tag, value in running.items() if isinstance(value, Mapping) and "result" in value}
    tally = _Tally()
    header = colors.green
    for tag in sorted(states, key=lambda tag: states[tag].get("__run_num__", 0)):
        state = states[tag]
        tally.add(state)
        changed, changes = _changes(state, options, depth)
        tally.changed += changed
        if state["result"] and not changed and (options.state_output_diff or not options.state_verbose):
            continue
        color = {False: colors.red, None: colors.light_yellow}.get(
            state["result"], colors.cyan if changed else colors.green
        )
        if not state["result"]:
            header = color
        names = tag.split("_|-")
        if options.state_output.endswith("_id"):
            names[2] = names[1]
        if _is_terse(options.state_output.lower(), state["result"], changed):
            lines.append(_terse(names, state, color, options))
        else:
            lines += _full(names, state, color, changes, options)
            tally.results["warnings"] += "warnings" in state
    return [*lines, *_summary(host, tally, options)], header, tally.changed > 0


def _unordered(tag: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value and tag != "changes" and "__run_num__" not in value:
        yield "This state's result does not say when it ran, so its place in the order is not known:"
        yield pprint.pformat(value)


def _is_terse(mode: str, result: bool | None, changed: bool) -> bool:
    for name, terse in _TERSE_WHEN.items():
        if mode.startswith(name):
            return terse(result, changed)
    return False


#: ``state_output`` -> which states get one line.
_TERSE_WHEN: Mapping[str, Callable[[bool | None, bool], bool]] = {
    "terse": lambda _result, _changed: True,
    "mixed": lambda result, _changed: result is not False,
    "changes": lambda result, changed: bool(result) and not changed,
}


def _terse(names: list[str], state: Mapping[str, Any], color: str, options: OutputOptions) -> str:
    colors = palette(options.color)
    word = {False: "Failed", None: "Differs"}.get(state["result"], "Changed" if state["changes"] else "Clean")
    warnings = "Warnings:\n" + "\n".join(state["warnings"]) if "warnings" in state else ""
    times = ""
    if options.state_output_profile and "start_time" in state:
        times = f" - Started: {state['start_time']} - Duration: {state['duration']} ms"
    return (
        f"{colors.light_red}{warnings}{colors.end}" if warnings else ""
    ) + f" {color} Name: {names[2]} - Function: {names[0]}.{names[-1]} - Result: {word}{times}{colors.end}"


def _full(names: list[str], state: Mapping[str, Any], color: str, changes: str, options: OutputOptions) -> list[str]:
    colors = palette(options.color)
    rows = [("ID", names[1]), ("Function", f"{names[0]}.{names[3]}")]
    if names[1] != names[2]:
        rows.append(("Name", names[2]))
    rows += [("Result", state["result"]), ("Comment", _comment(state))]
    if options.state_output_profile and "start_time" in state:
        duration = state.get("duration", "")
        rows += [("Started", state["start_time"]), ("Duration", duration if duration == "" else f"{duration} ms")]
    lines = [f"{color}----------{colors.end}"]
    lines += [f"    {color}{label:>8}: {value}{colors.end}" for label, value in rows]
    lines.append(f"{color}     Changes:   {changes}{colors.end}")
    if "warnings" in state:
        margin = " " * _VALUE_COLUMN
        text = textwrap.fill("\n".join(state["warnings"]), 80, initial_indent=margin, subsequent_indent=margin)
        lines.append(f"   {colors.light_red} Warnings: {text.lstrip()}{colors.end}")
    return lines


def _comment(state: Mapping[str, Any]) -> str:
    comment = _text(state["comment"]).strip().replace("\n", "\n" + " " * _VALUE_COLUMN)
    data = state.get("data", [])
    if isinstance(data, Mapping):
        return comment + "".join(f"\n\t\t{name}: {value}" for name, value in data.items())
    return " ".join([comment, *map(str, data if isinstance(data, list) else [data])])


def _changes(state: Mapping[str, Any], options: OutputOptions, depth: int) -> tuple[bool, str]:
    """Whether the state changed anything, and the text after ``Changes:``."""
    changes = state["changes"]
    if state.get("name") in _ORCHESTRATIONS:
        below = "\n" + _report(changes, options, depth=depth + 1)
        return True, re.sub("^", " " * (_VALUE_COLUMN * depth), below, flags=re.MULTILINE)
    if not changes:
        return False, ""
    if not isinstance(changes, Mapping):
        return True, f"Invalid Changes data: {changes}"
    hosts = changes.get("ret")
    if hosts is not None and changes.get("out") == "highstate":
        reports = [_host(name, value, options) for name, value in hosts.items()]
        text = "".join("\n" + textwrap.indent(report, " " * _VALUE_COLUMN, lambda _: True) for report, _ in reports)
        return any(changed for _, changed in reports), text
    plain = replace(options, nested_indent=_VALUE_COLUMN, retcode=0)
    return True, "\n" + nested.render(changes, plain).rstrip()


def _summary(host: str, tally: _Tally, options: OutputOptions) -> Iterator[str]:
    colors = palette(options.color)
    succeeded, failed, warnings = (
        tally.results[True] + tally.results[None],
        tally.results[False],
        tally.results["warnings"],
    )
    total = succeeded + failed
    # The rule is as wide as the longest label with the longest single count.
    width = _LABEL_WIDTH + 2 + max([len(str(count)) for count in tally.results.values()] or [0])
    rule = "-" * width

    def counted(label: str, count: int) -> str:
        return f"{label}: {count:>{width - len(label) - 2}}"

    yield f"{colors.cyan}\nSummary for {host}\n{rule}{colors.end}"
    notes = []
    if tally.results[None]:
        notes.append(f"{colors.light_yellow}unchanged={tally.results[None]}{colors.end}")
    if tally.changed:
        notes.append(f"{colors.green}changed={tally.changed}{colors.end}")
    yield f"{colors.green}{counted(_LABELS[True], succeeded)}{colors.end}" + (f" ({', '.join(notes)})" if notes else "")
    yield f"{colors.red if failed else colors.cyan}{counted(_LABELS[False], failed)}{colors.end}"
    if warnings:
        yield f"{colors.light_red}{counted(_LABELS['warnings'], warnings)}{colors.end}"
    yield f"{colors.cyan}{rule}\nTotal states run: {total:>{width - 7}}{colors.end}"
    if options.state_output_profile:
        took, unit = tally.milliseconds + tally.longest_parallel, "ms"
        if took > 999:
            took, unit = took / 1000, "s"
        yield f"{colors.cyan}Total run time: {f'{took:.3f}'.rjust(width - 5)} {unit}{colors.end}"


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


#: Kind of a host's value -> its part of the report; of anything else the host's name is all there is to say.
_PARTS: Mapping[type, Callable[[str, Any, OutputOptions, int], _Part]] = {
    int: _plain,
    str: _plain,
    list: _compile_errors,
    dict: _running,
}

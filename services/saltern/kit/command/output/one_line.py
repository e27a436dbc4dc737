"""``summary``: one line for each minion, so that many minions fit on a screen. Salt has no such outputter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from saltern.kit.command.output.color import without_escapes
from saltern.kit.command.output.options import OutputOptions
from saltern.kit.command.output.plain import to_json
from saltern.kit.command.output.run_summary import Tally
from saltern.kit.command.output.state_lines import StateReturn

_LINE = OutputOptions(indent=-1)


def render(data: object, options: OutputOptions) -> str:
    """Return one line ``minion: return`` for each minion.

    For a state run the line holds the counts and the first failure, for a text its first line.
    """
    if not isinstance(data, Mapping):
        return _plain(data)
    return "\n".join(_host(str(name), value, options) for name, value in data.items())


def _host(name: str, value: object, options: OutputOptions) -> str:
    colors = options.colors
    if _is_run(value):
        tally = _tally(value)
        color = colors.red if tally.results[False] else colors.cyan if tally.changed else colors.green
        text = _run(value, tally)
    else:
        color, text = colors.red if options.retcode else colors.green, _plain(_joined(value))
        # A state run, a failed one too, says what failed; the output of a command does not.
        text = f"failed (exit code {options.retcode}): {text}" if options.retcode else text
    line = f"{name}: {text}".rstrip()
    return f"{color}{without_escapes(line) if options.strip_colors else line}{colors.endc}"


def _is_run(value: object) -> TypeGuard[Mapping[str, StateReturn]]:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all("_|-" in str(tag) and isinstance(one, Mapping) and "result" in one for tag, one in value.items())
    )


def _tally(states: Mapping[str, StateReturn]) -> Tally:
    tally = Tally()
    for state in states.values():
        tally.add(state, 1)
        tally.warnings += bool(state.get("warnings"))
        tally.changed += bool(state.get("changes")) and state["result"] is not None
    return tally


def _run(states: Mapping[str, StateReturn], tally: Tally) -> str:
    results = tally.results
    parts = [f"{results[True]} succeeded" + (f" ({tally.changed} changed)" if tally.changed else "")]
    parts += [f"{results[None]} would change"] if results[None] else []
    parts += [f"{results[False]} failed"] if results[False] else []
    parts += [f"{tally.warnings} with warnings"] if tally.warnings else []
    seconds = (tally.milliseconds + tally.longest_parallel) / 1000
    return f"{', '.join(parts)}, {seconds:.1f} s{_first_failure(states)}"


def _first_failure(states: Mapping[str, StateReturn]) -> str:
    failed = [(state.get("__run_num__", 0), tag, state) for tag, state in states.items() if state["result"] is False]
    if not failed:
        return ""
    _, tag, state = min(failed, key=lambda one: one[0])
    module, name, *_, function = tag.split("_|-")
    return f"; {module}.{function} {state.get('__id__') or name}: {_plain(str(state.get('comment', '')))}"


def _joined(value: object) -> object:
    """Return the compile errors of a state run (a list of texts) as one text; another value unchanged."""
    if isinstance(value, list) and value and all(isinstance(one, str) and " " in one for one in value):
        return "\n".join(value)
    return value


def _plain(value: object) -> str:
    if not isinstance(value, str):
        return to_json(value, _LINE)
    lines = value.strip().splitlines()
    more = len(lines) - 1
    rest = f" (and {more} more line{'s' if more > 1 else ''})" if more > 0 else ""
    return f"{lines[0]}{rest}" if lines else ""

"""Formats one state of a run in ``highstate``: the block of ``full``, or the line of ``terse``."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import NotRequired, TypedDict

from saltern.kit.command.output.options import OutputOptions


class StateReturn(TypedDict):
    """One state's entry of a running dictionary, in the shape that outputters expect.

    It may come from a minion's module unchecked; an outputter that finds another shape raises KeyError, TypeError or the like.
    """

    result: bool | None
    comment: object
    changes: dict[str, object]
    name: str
    __id__: str
    __sls__: str
    __run_num__: int
    start_time: str
    #: Milliseconds; a text only from users' modules.
    duration: float
    warnings: NotRequired[list[str]]
    data: NotRequired[object]
    __parallel__: NotRequired[bool]


#: Column at which a state's values start: further lines of comments and changes are indented so far.
VALUE_COLUMN = 14

_MARGIN = " " * VALUE_COLUMN


def is_terse(result: bool | None, changed: bool, options: OutputOptions) -> bool | None:
    """Return True if the report shows a state with this result in one line, False if as a block, None if not at
    all.

    ``changed``: the state changed something. The options ``state_output``, ``state_output_exclude`` and
    ``state_output_terse`` decide.
    """
    mode = options.state_output.lower()
    if mode.startswith("filter"):
        if str(result) in options.state_output_terse:
            return True
        return None if str(result) in options.state_output_exclude else False
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


def terse(names: list[str], state: StateReturn, color: str, options: OutputOptions) -> str:
    """Return a state's one line in the report.

    The option ``state_tabular`` may be a format with the fields {0} colour, {1} name, {2} state, {3} function, {4} outcome,
    {5} end of colour, {6} the state's whole return. Raises the errors of ``str.format``.
    """
    colors = options.colors
    result = state["result"]
    outcome = "Changed" if state["changes"] else "Clean"
    if result is False or result is None:
        outcome = "Failed" if result is False else "Differs"
    tabular = options.state_tabular
    if isinstance(tabular, str):
        return tabular.format(color, names[2], names[0], names[-1], outcome, colors.endc, state)
    warnings = ""
    if "warnings" in state:
        warnings = f"{colors.light_red}Warnings:\n{chr(10).join(state['warnings'])}{colors.endc}"
    timed = options.state_output_profile and "start_time" in state
    if tabular:
        times = f"{state['start_time']} [{state['duration']!s:>7} ms] " if timed else ""
        line = f"{color}{times}{names[0]:>10}.{names[-1]:<10} {outcome:7}   Name: {names[2]}{colors.endc}"
        return f"{warnings}\n{line}" if warnings else line
    times = f" - Started: {state['start_time']} - Duration: {state['duration']} ms" if timed else ""
    function = f"{names[0]}.{names[-1]}"
    return f"{warnings} {color} Name: {names[2]} - Function: {function} - Result: {outcome}{times}{colors.endc}"


def full(names: list[str], state: StateReturn, color: str, changes: str, options: OutputOptions) -> list[str]:
    """Return the lines of a state's block in the report; ``changes`` is the text that follows ``Changes:``."""
    colors = options.colors
    end = colors.endc
    lines = [
        f"{color}----------{end}",
        f"    {color}      ID: {names[1]}{end}",
        f"    {color}Function: {names[0]}.{names[3]}{end}",
    ]
    if names[1] != names[2]:
        lines.append(f"    {color}    Name: {names[2]}{end}")
    lines.append(f"    {color}  Result: {state['result']}{end}")
    lines.append(f"    {color} Comment: {_comment(state)}{end}")
    if options.state_output_profile and "start_time" in state:
        duration: object = state.get("duration", "")
        lines.append(f"    {color} Started: {state['start_time']}{end}")
        lines.append(f"    {color}Duration: {duration if duration == '' else f'{duration} ms'}{end}")
    lines.append(f"{color}     Changes:   {changes}{end}")
    if "warnings" in state:
        text = textwrap.fill("\n".join(state["warnings"]), 80, initial_indent=_MARGIN, subsequent_indent=_MARGIN)
        lines.append(f"   {colors.light_red} Warnings: {text.lstrip()}{end}")
    return lines


def _comment(state: StateReturn) -> str:
    comment = str(state["comment"]).strip().replace("\n", f"\n{_MARGIN}")
    data = state.get("data", [])
    if isinstance(data, Mapping):
        return comment + "".join(f"\n\t\t{name}: {value}" for name, value in data.items())
    return " ".join([comment, *map(str, data if isinstance(data, list) else [data])])

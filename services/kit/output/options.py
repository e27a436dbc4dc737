"""How a return is to be shown: one frozen value that the commands build from their options and the outputters read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What an outputter may ask about. Names are Salt's options where there is one."""

    #: Name of the outputter; empty: what the return itself names, else nested.
    out: str = ""
    #: ``--out-indent``: spaces of json, yaml and pprint, negative: one line; None: the outputter's own.
    indent: int | None = None
    color: bool = False
    #: full, terse, mixed, changes; with ``_id`` appended the state's ID stands in for its name.
    state_output: str = "full"
    #: False leaves out states that are as they should be.
    state_verbose: bool = True
    #: True leaves out successful states without changes (``--output-diff``).
    state_output_diff: bool = False
    #: True shows when a state started and how long it ran.
    state_output_profile: bool = True
    #: ESC in values becomes ``?``, so that a minion cannot write to the operator's terminal.
    strip_colors: bool = True
    #: Spaces before every line of ``nested``.
    nested_indent: int = 0
    #: Return code of the job: ``nested`` shows the names of a failed one in red.
    retcode: int = 0


def color_wanted(*, force: bool, never: bool, is_terminal: bool, env: Mapping[str, str]) -> bool:
    """``--force-color`` wins; else colour is for terminals, unless ``--no-color`` or NO_COLOR (https://no-color.org) says no."""
    return force or (is_terminal and not never and not env.get("NO_COLOR"))

"""Output options: one frozen value that the commands build and the outputters read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from saltern.kit.command.output.color import Palette, palette


class OutputOptions(NamedTuple):
    """The options of an outputter (indentation, colours, mode of the state report). An option that Salt has keeps Salt's name."""

    #: Name of the outputter; empty: the outputter that the return names, else nested.
    out: str = ""
    #: ``--out-indent``: spaces of json, yaml and pprint, negative: one line; None: the outputter's own.
    indent: int | None = None
    #: True: json sorts names (``output_indent: pretty``).
    sort_names: bool = False
    colors: Palette = palette(False)
    #: full, terse, mixed, changes, filter; with ``_id`` appended the state's ID stands in for its name.
    state_output: str = "full"
    #: Results ("True", "False", "None") that ``filter`` leaves out.
    state_output_exclude: tuple[str, ...] = ()
    #: Results that ``filter`` gives one line.
    state_output_terse: tuple[str, ...] = ()
    #: False leaves out states that are as they should be.
    state_verbose: bool = True
    #: True leaves out successful states without changes (``--output-diff``).
    state_output_diff: bool = False
    #: True shows when a state started and how long it ran.
    state_output_profile: bool = True
    #: True adds percentages to the summary.
    state_output_pct: bool = False
    #: True aligns terse lines; text is the format of a terse line (fields: see ``state_lines.terse``).
    state_tabular: bool | str = False
    #: True shows the names of one ID with one result as one state.
    state_compress_ids: bool = False
    #: ESC in values becomes ``?``, so that a minion cannot write to the operator's terminal.
    strip_colors: bool = True
    #: Spaces before every line of ``nested``.
    nested_indent: int = 0
    #: Return code of the job: ``nested`` shows the names of a failed one in red.
    retcode: int = 0
    #: Options of the outputter ``table``: ``out.table.*`` without that prefix.
    table: Mapping[str, object] = {}
    #: Directories of users' outputters.
    outputter_dirs: tuple[str, ...] = ()
    #: ``__opts__`` of users' outputters.
    opts: Mapping[str, object] = {}


def color_wanted(
    *, force: bool, never: bool, configured: bool | str | None, is_terminal: bool, env: Mapping[str, str]
) -> bool | str:
    """Return whether a command's output has colours, or the name of the one colour to use.

    ``--force-color`` comes first, then ``--no-color``, then the option ``color``. Without them, output has colours on a
    terminal, unless the environment variable NO_COLOR (https://no-color.org) is set.
    """
    if force or never:
        return force
    if configured is not None:
        return configured
    return is_terminal and not env.get("NO_COLOR")

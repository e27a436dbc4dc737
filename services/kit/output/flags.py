"""The output options of every salt command, and the place that their output goes to."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.kit.commandline import CommandError, Exit
from services.kit.config import StateOptions
from services.kit.output import OutputOptions, auto, color_wanted, render

_TRUTH: Mapping[str, bool] = {"true": True, "false": False}


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Adds ``--out`` and its kind, under Salt's names."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--out", "--output", dest="out", default="", metavar="NAME", help="outputter: nested, json, yaml, ..."
    )
    group.add_argument(
        "--out-indent", "--output-indent", dest="out_indent", type=int, metavar="N", help="spaces; negative: one line"
    )
    group.add_argument("--out-file", "--output-file", dest="out_file", metavar="FILE", help="write to FILE")
    group.add_argument(
        "--out-file-append", "--output-file-append", dest="out_append", action="store_true", help="append to that file"
    )
    group.add_argument("--no-color", "--no-colour", dest="no_color", action="store_true", help="never colour")
    group.add_argument("--force-color", "--force-colour", dest="force_color", action="store_true", help="always colour")
    group.add_argument(
        "--state-output", "--state_output", dest="state_output", metavar="MODE", help="full, terse, mixed, changes"
    )
    group.add_argument(
        "--state-verbose",
        "--state_verbose",
        dest="state_verbose",
        type=_truth,
        metavar="BOOL",
        help="show unchanged states",
    )


def _truth(text: str) -> bool:
    try:
        return _TRUTH[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither True nor False") from None


class Printer:
    """Where a command's output goes: the terminal, or ``--out-file``."""

    def __init__(self, flags: argparse.Namespace, config: StateOptions, env: Mapping[str, str] | None = None) -> None:
        """Reads the flags of ``add_output_flags``. Raises CommandError when ``--out-file`` cannot be written."""
        self._file = Path(flags.out_file) if flags.out_file else None
        if self._file is not None:
            try:
                self._file.open("a" if flags.out_append else "w").close()
            except OSError as error:
                raise CommandError(f"--out-file {self._file}: {error.strerror}", Exit.USAGE) from error
        self.options = OutputOptions(
            out=flags.out,
            indent=flags.out_indent,
            color=color_wanted(
                force=flags.force_color,
                never=flags.no_color,
                is_terminal=self._file is None and sys.stdout.isatty(),
                env=os.environ if env is None else env,
            ),
            state_output=flags.state_output or config.state_output,
            state_verbose=config.state_verbose if flags.state_verbose is None else flags.state_verbose,
            state_output_diff=getattr(flags, "state_output_diff", False) or config.state_output_diff,
        )

    def show(self, data: Any, out: str | None = None, *, retcode: int = 0, fun: str = "", static: bool = False) -> None:
        """Prints ``data`` with the outputter that ``--out`` or the return's own ``out`` names."""
        chosen = auto(out, self.options, fun=fun, static=static)
        text = render(data, replace(chosen, retcode=retcode))
        if text:
            self.say(text)

    def say(self, text: str) -> None:
        """Prints text as it is, at once: what is printed late looks like a slow minion."""
        if self._file is None:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        else:
            with self._file.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{text}\n")

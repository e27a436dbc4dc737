"""The output options of all salt commands, and the printer that writes their output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output import OutputOptions, auto, color_wanted, render
from saltern.kit.command.output.color import fit_for_terminal, palette
from saltern.kit.config.master import ConfigError, StateOptions, as_opts
from saltern.kit.config.minion_options import MinionOptions, extension_directory
from statecore.model import yaml

_TRUTH: Mapping[str, bool] = {"true": True, "false": False}


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--out`` and the other output options to a command's parser, under Salt's names."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--out", "--output", dest="out", default="", metavar="NAME", help="outputter: nested, json, yaml, table, ..."
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
        "--state-output",
        "--state_output",
        dest="state_output",
        metavar="MODE",
        help="full, terse, mixed, changes or filter; with _id appended, IDs in place of names",
    )
    group.add_argument(
        "--state-verbose",
        "--state_verbose",
        dest="state_verbose",
        type=_truth,
        metavar="BOOL",
        help="show unchanged states",
    )
    group.add_argument(
        "--output-diff",
        "--state-output-diff",
        "--state_output_diff",
        dest="state_output_diff",
        action="store_true",
        help="show only states that changed or failed",
    )


def _truth(text: str) -> bool:
    try:
        return _TRUTH[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither True nor False") from None


def _synced(config: StateOptions) -> list[str]:
    """Return the directories into which ``saltutil.sync_output`` copied outputters on this machine."""
    if isinstance(config, MinionOptions):
        directory = extension_directory(config) / "output"
    else:
        directory = Path(str(getattr(config, "extension_modules", ""))) / "output"
    return [str(directory)] if directory.is_absolute() and directory.is_dir() else []


class Printer:
    """Writes a command's output to the terminal or to ``--out-file``."""

    def __init__(self, flags: argparse.Namespace, config: StateOptions, env: Mapping[str, str] | None = None) -> None:
        """Read the flags of ``add_output_flags`` and the output options of the configuration.

        Raises CommandError if the file of ``--out-file`` cannot be written, and ConfigError for an output option with a wrong
        value.
        """
        self._file = Path(flags.out_file or config.output_file) if flags.out_file or config.output_file else None
        self._file_option = "--out-file" if flags.out_file else "output_file"
        if self._file is not None:
            try:
                # Several commands may write to the file that the configuration names, so text is only appended.
                self._file.open("w" if flags.out_file and not flags.out_append else "a").close()
            except OSError as error:
                raise self._unwritable(error, Exit.USAGE) from error
        is_terminal = self._file is None and sys.stdout.isatty()
        color = color_wanted(
            force=flags.force_color,
            never=flags.no_color,
            configured=config.color,
            is_terminal=is_terminal,
            env=os.environ if env is None else env,
        )
        outputter_dirs = (*config.outputter_dirs, *_synced(config))
        indent, sort_names = _indent(config.output_indent) if flags.out_indent is None else (flags.out_indent, False)
        self.options = OutputOptions(
            out=flags.out or config.output,
            indent=indent,
            sort_names=sort_names,
            colors=palette(color, read_theme(config.color_theme) if color and config.color_theme else None),
            state_output=flags.state_output or config.state_output,
            state_output_exclude=_results(config.state_output_exclude),
            state_output_terse=_results(config.state_output_terse),
            state_verbose=config.state_verbose if flags.state_verbose is None else flags.state_verbose,
            state_output_diff=flags.state_output_diff or config.state_output_diff,
            state_output_profile=config.state_output_profile,
            state_output_pct=config.state_output_pct,
            state_tabular=config.state_tabular,
            state_compress_ids=config.state_compress_ids,
            strip_colors=config.strip_colors,
            table=config.out_table,
            outputter_dirs=outputter_dirs,
            opts=as_opts(config, color=color) if outputter_dirs else {},
        )
        self._guarded = is_terminal and config.strip_colors

    def heed(self, arguments: Iterable[object]) -> None:
        """Apply a state run's arguments ``exclude=`` and ``terse=``: the results that ``state_output: filter`` hides or shortens.

        ``arguments`` is the ``arg`` of a publication; keyword arguments are a mapping with ``__kwarg__``.
        """
        for argument in arguments:
            if isinstance(argument, Mapping) and "__kwarg__" in argument:
                if "exclude" in argument:
                    self.options = self.options._replace(state_output_exclude=_results(argument["exclude"]))
                if "terse" in argument:
                    self.options = self.options._replace(state_output_terse=_results(argument["terse"]))

    def show(
        self, data: object, out: str | None = None, *, retcode: int = 0, fun: str = "", static: bool = False
    ) -> None:
        """Print ``data`` with the outputter of ``--out``, else with the outputter ``out`` that the return names,
        else by Salt's rules.

        ``fun``: the job's function; state functions are shown by ``highstate`` if ``static`` is True. ``static``:
        ``data`` has the returns of all minions together. ``retcode``: return code of the job; ``nested`` shows a
        failure in red.
        """
        chosen = auto(out, self.options, fun=fun, static=static)
        text = render(data, chosen._replace(retcode=retcode))
        if text:
            self.say(text)

    def say(self, text: str) -> None:
        """Print a text unchanged and flush it. Raises CommandError if the file of ``--out-file`` cannot be written."""
        if self._file is None:
            shown = fit_for_terminal(text, self.options.colors) if self._guarded else text
            sys.stdout.write(f"{shown}\n")
            sys.stdout.flush()
        else:
            try:
                with self._file.open("a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(f"{text}\n")
            except OSError as error:
                raise self._unwritable(error, Exit.GENERIC) from error

    def _unwritable(self, error: OSError, code: int) -> CommandError:
        return CommandError(f"{self._file_option} {self._file}: {error.strerror}", code)


def _indent(configured: int | str | None) -> tuple[int | None, bool]:
    """Return the option ``output_indent`` as (spaces, sort names); None for the spaces means the outputter's own default."""
    if isinstance(configured, str) and configured not in _INDENTS:
        raise ConfigError(
            f"option 'output_indent' must be a number, {', '.join(filter(None, _INDENTS))} or null, not {configured!r}"
        )
    # For json, None means: everything in one line.
    return _INDENTS[configured] if isinstance(configured, str) else (-1 if configured is None else configured, False)


_INDENTS: Mapping[str, tuple[int | None, bool]] = {"": (None, False), "pretty": (4, True)}


def _results(given: object) -> tuple[str, ...]:
    """Return the state results ("True", "False", "None") that the output mode ``filter`` compares.

    ``given`` is a list, one result, or a text with commas.
    """
    if isinstance(given, str):
        return tuple(part for word in given.split(",") if (part := word.strip()))
    return tuple(map(str, given)) if isinstance(given, list | tuple) else (str(given),)


def read_theme(path: str) -> Mapping[str, object]:
    """Return the map of colour name to code from the YAML file of the option ``color_theme``.

    Raises ConfigError if the file cannot be read or is no mapping.
    """
    try:
        with open(path, "rb") as file:
            theme = yaml.load(file.read())
    except OSError as error:
        raise ConfigError(f"color_theme {path}: cannot be read: {error.strerror}") from error
    except yaml.YamlFault as error:
        raise ConfigError(f"color_theme {path}: not valid YAML: {error.placed}") from error
    if not isinstance(theme, dict):
        raise ConfigError(f"color_theme {path}: must hold `COLOR: code` lines")
    return theme

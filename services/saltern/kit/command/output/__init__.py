"""Outputters: a return and its output options in, text out. The text equals Salt 3008's byte for byte.

Add an outputter as a row in OUTPUTTERS: a function of the data and OutputOptions that returns text.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

from saltern.kit.command.output.color import OFF, fit_for_terminal
from saltern.kit.command.output.options import OutputOptions, color_wanted

__all__ = ["OUTPUTTERS", "OutputOptions", "auto", "color_wanted", "render"]

Outputter = Callable[[object, OutputOptions], str]

#: ``--out`` -> module of this package and its outputter: a command imports only the one it prints with.
#: Salt 3008 dropped quiet and newline_values_only; scripts still use them. Its minions still ask for grains.
#: ndjson and summary are ours.
OUTPUTTERS: Mapping[str, tuple[str, str]] = {
    "nested": ("nested", "render"),
    "grains": ("nested", "render"),
    "highstate": ("highstate", "render"),
    "table": ("table", "render"),
    "json": ("plain", "to_json"),
    "yaml": ("plain", "to_yaml"),
    "txt": ("plain", "to_txt"),
    "text": ("plain", "to_txt"),
    "raw": ("plain", "to_raw"),
    "pprint": ("plain", "to_pprint"),
    "ndjson": ("plain", "to_ndjson"),
    "summary": ("one_line", "render"),
    "newline_values_only": ("plain", "to_newline_values_only"),
    "quiet": ("plain", "to_nothing"),
    "key": ("keys", "render_keys"),
    "no_return": ("keys", "render_no_return"),
}

#: Exceptions that an outputter raises for data of another shape.
_MISFITS = (KeyError, IndexError, AttributeError, TypeError, ValueError, ArithmeticError, RecursionError)


def auto(out_from_return: str | None, options: OutputOptions, *, fun: str = "", static: bool = False) -> OutputOptions:
    """Return the output options with the outputter chosen by Salt's rules.

    ``--out`` decides. Exception: ``--out=highstate`` shows state runs only, so a return that names another outputter keeps its own.
    A return without an outputter is shown by ``nested``. All returns of a ``state`` function together (``--static``) are shown by
    ``highstate``.
    """
    if options.out and options.out != "highstate":
        return options
    if not out_from_return and static:
        out_from_return = options.out or ("highstate" if fun.split(".")[0] == "state" else "")
    return options._replace(out=out_from_return or "nested")


def render(data: object, options: OutputOptions, *, warn: Callable[[str], None] | None = None) -> str:
    """Return ``data`` as text by the outputter that the options name, without trailing white space.

    The result is "" if there is nothing to print. An outputter that does not exist, or that cannot show the data, is replaced
    by ``nested``. ``warn`` then gets a line about it (default: stderr).
    """
    tell = warn or _to_stderr
    name = options.out or "nested"
    try:
        outputter = _outputter(name, options)
        if outputter is not None:
            return outputter(data, options).rstrip()
        tell(f"[ERROR   ] Invalid outputter {name} specified, fall back to nested")
    except _MISFITS as error:
        tell(
            f"[WARNING ] The {name} outputter cannot show this return ({type(error).__name__}: {error}); "
            "shown with nested instead"
        )
    try:
        nested = _imported(*OUTPUTTERS["nested"])
        return nested(data, options).rstrip()
    except _MISFITS as error:
        # For example a number with more digits than Python prints, or an object whose __str__ fails.
        tell(f"[ERROR   ] This return cannot be shown at all: {type(error).__name__}: {error}")
        return ""


def _outputter(name: str, options: OutputOptions) -> Outputter | None:
    found: Outputter | None = None
    if options.outputter_dirs:
        found = importlib.import_module(f"{__name__}.users").find(name, options)
    if found is None and name in OUTPUTTERS:
        found = _imported(*OUTPUTTERS[name])
    return found


def _imported(module: str, name: str) -> Outputter:
    found: Outputter = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return found


def _to_stderr(line: str) -> None:
    # The outputter's name and the exception's text may come from a minion.
    sys.stderr.write(f"{fit_for_terminal(line, OFF)}\n")

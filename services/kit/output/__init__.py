"""What the commands print: a return and its options in, text out. Looks are Salt 3008's, byte for byte.

Add an outputter by a row in OUTPUTTERS: a function of the data and OutputOptions that returns text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from services.kit.output import highstate, keys, nested, plain
from services.kit.output.options import OutputOptions, color_wanted

__all__ = ["OUTPUTTERS", "OutputOptions", "auto", "color_wanted", "render"]

Outputter = Callable[[Any, OutputOptions], str]

#: ``--out`` -> outputter. Salt 3008 dropped quiet and newline_values_only; scripts still use them.
OUTPUTTERS: Mapping[str, Outputter] = {
    "nested": nested.render,
    "highstate": highstate.render,
    "json": plain.to_json,
    "yaml": plain.to_yaml,
    "txt": plain.to_txt,
    "text": plain.to_txt,
    "raw": plain.to_raw,
    "pprint": plain.to_pprint,
    "newline_values_only": plain.to_newline_values_only,
    "quiet": plain.to_nothing,
    "key": keys.render_keys,
    "no_return": keys.render_no_return,
}

#: What an outputter raises for data that it is not made for.
_MISFITS = (KeyError, IndexError, AttributeError, TypeError, ValueError, RecursionError)


def auto(out_from_return: str | None, options: OutputOptions, *, fun: str = "", static: bool = False) -> OutputOptions:
    """Options with the outputter decided, by Salt's rules.

    ``--out`` wins, but for highstate: that fits state runs only, so it leaves returns that name another outputter to it.
    A return that names none is shown nested; all returns together (``--static``) of a ``state`` function as highstate.
    """
    if options.out and options.out != "highstate":
        return options
    if not out_from_return and static:
        out_from_return = options.out or ("highstate" if fun.split(".")[0] == "state" else "")
    return replace(options, out=out_from_return or "nested")


def render(data: Any, options: OutputOptions, *, warn: Callable[[str], None] | None = None) -> str:
    """The text of ``data`` without white space at its end; empty: there is nothing to print.

    An outputter that does not exist, or cannot show this data, gives way to ``nested``; ``warn`` gets a line that says so
    (default: standard error).
    """
    tell = warn or _to_stderr
    name = options.out or "nested"
    outputter = OUTPUTTERS.get(name)
    if outputter is None:
        tell(f"[ERROR   ] Invalid outputter {name} specified, fall back to nested")
        outputter = nested.render
    try:
        return outputter(data, options).rstrip()
    except _MISFITS as error:
        tell(
            f"[WARNING ] The {name} outputter cannot show this return ({type(error).__name__}: {error}); "
            "shown with nested instead"
        )
        return nested.render(data, options).rstrip()


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")

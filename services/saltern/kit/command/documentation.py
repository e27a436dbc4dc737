"""How the documentation of a function is shown. Pure."""

from __future__ import annotations

import inspect
import textwrap


def documentation(fun: str, text: str) -> str:
    """In Salt's look, however the text is indented where it was written."""
    return f"{fun}:\n\n{textwrap.indent(inspect.cleandoc(text), '    ')}\n"

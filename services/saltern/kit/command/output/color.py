"""ANSI colours under Salt's names, and protection against escape sequences in values from minions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, overload


class Palette(NamedTuple):
    """Terminal escape sequences for Salt's colour names. Each sequence starts with a reset. All are "" where colour is off."""

    black: str = "\033[0;30m"
    dark_gray: str = "\033[0;1;30m"
    red: str = "\033[0;31m"
    light_red: str = "\033[0;1;31m"
    green: str = "\033[0;32m"
    light_green: str = "\033[0;1;32m"
    yellow: str = "\033[0;33m"
    light_yellow: str = "\033[0;1;33m"
    blue: str = "\033[0;34m"
    light_blue: str = "\033[0;1;34m"
    magenta: str = "\033[0;35m"
    light_magenta: str = "\033[0;1;35m"
    cyan: str = "\033[0;36m"
    light_cyan: str = "\033[0;1;36m"
    light_gray: str = "\033[0;37m"
    white: str = "\033[0;1;37m"
    default_color: str = "\033[0;39m"
    endc: str = "\033[0;0m"


OFF = Palette(*[""] * len(Palette._fields))


def palette(color: bool | str, theme: Mapping[str, object] | None = None) -> Palette:
    """Return the Palette of colours for an outputter.

    ``color`` is True, False, or the name of the one colour to use for everything. ``theme`` maps a colour's name to its code, as in
    ``{"green": "0;32"}``.
    """
    if not color:
        return OFF
    colors = Palette()
    if theme:
        codes = {str(name).lower(): f"\033[{code}m" for name, code in theme.items()}
        colors = colors._replace(**{name: code for name, code in codes.items() if name in Palette._fields})
    name = color.lower() if isinstance(color, str) else ""
    if name in Palette._fields:
        colors = Palette(*[getattr(colors, name)] * len(Palette._fields))._replace(endc=colors.endc)
    return colors


#: Characters that change the direction of text, or end a line: a terminal shows another order than the bytes have.
_DIRECTIONS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"


@overload
def without_escapes(text: str) -> str: ...
@overload
def without_escapes(text: object) -> object: ...


def without_escapes(text: object) -> object:
    """Return a text with each ESC character replaced by ``?``; a value that is no text is returned unchanged."""
    return text.replace("\033", "?") if isinstance(text, str) else text


def fit_for_terminal(text: str, colors: Palette) -> str:
    """Return ``text`` with control characters, and characters that change its direction, replaced by ``?``. Line ends, tabs and the
    escape sequences of ``colors`` stay.

    Outputters replace ESC, as Salt does. A terminal also obeys backspace, carriage return and the C1 control characters; with
    these one minion could overwrite the output of another.
    """
    return _unfit(colors).sub("?", text)


@cache
def _unfit(colors: Palette) -> re.Pattern[str]:
    ours = "|".join(re.escape(code[1:]) for code in sorted(set(colors)) if code)
    escape = f"\033(?!{ours})" if ours else "\033"
    return re.compile(f"{escape}|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f{_DIRECTIONS}]")

"""ANSI colours by Salt's names, and the guard against escape sequences in values that come from minions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Palette:
    """Escape sequences as Salt writes them: each starts with a reset. All empty where colour is off."""

    red: str = "\033[0;31m"
    light_red: str = "\033[0;1;31m"
    green: str = "\033[0;32m"
    light_green: str = "\033[0;1;32m"
    light_yellow: str = "\033[0;1;33m"
    blue: str = "\033[0;34m"
    light_blue: str = "\033[0;1;34m"
    magenta: str = "\033[0;35m"
    light_magenta: str = "\033[0;1;35m"
    cyan: str = "\033[0;36m"
    end: str = "\033[0;0m"


_ON = Palette()
_OFF = Palette(*[""] * 11)


def palette(color: bool) -> Palette:
    """The colours, or as many empty strings."""
    return _ON if color else _OFF


def without_escapes(text: Any) -> Any:
    """``text`` with ESC as ``?``; what is no text comes back as it is."""
    return text.replace("\033", "?") if isinstance(text, str) else text

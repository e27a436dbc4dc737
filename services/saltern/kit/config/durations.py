"""Durations in the form that people write: ``90``, ``90s``, ``5m``, ``2h``, ``7d``, ``1h30m``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Letter -> seconds.
UNITS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)

#: Longest accepted duration, seconds. A longer one is a typing error, and would overflow counters of milliseconds.
_LONGEST = 100 * 365 * 86400


def seconds_of(text: object) -> float:
    """Return the seconds of a duration such as ``90s`` or ``1h30m``; a number without a unit is seconds.

    Raises ValueError whose message names the given value and the accepted forms.
    """
    word = str(text).strip().lower()
    if re.fullmatch(r"\d+(?:\.\d+)?", word, re.ASCII):
        seconds = float(word)
    elif _WHOLE.fullmatch(word):
        seconds = sum(float(number) * UNITS[unit] for number, unit in _PART.findall(word))
    else:
        raise ValueError(f"'{text}' is not a duration; write 90s, 5m, 2h, 7d or 1h30m")
    if seconds > _LONGEST:
        raise ValueError(f"'{text}' is longer than a hundred years")
    return seconds

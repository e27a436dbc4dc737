"""Durations: each form, and what is none."""

from __future__ import annotations

import pytest

from saltern.kit.config.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        (90, 90),
        (1.5, 1.5),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("7d", 604800),
        ("1w", 604800),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (" 2H ", 7200),
        ("0", 0),
    ],
)
def test_seconds(text: object, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "-5", "5 minutes", "1h-3m", "soon", "1e9", "٣s", None, True, [1], "99999999d"]
)
def test_what_is_none(text: object) -> None:
    with pytest.raises(ValueError, match=r"duration|hundred years"):
        seconds_of(text)

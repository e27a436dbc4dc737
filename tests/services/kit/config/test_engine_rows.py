"""The option ``engines``: its forms, and what is wrong with others."""

from __future__ import annotations

from typing import Any

import pytest

from saltern.kit.config.engine_rows import EngineRow, engine_rows
from saltern.kit.config.reading import ConfigError


@pytest.mark.parametrize(
    ("option", "rows"),
    [
        (None, []),
        ([], []),
        (["test"], [EngineRow("test", "test", {})]),
        ([{"test": None}], [EngineRow("test", "test", {})]),
        ({"script": {"cmd": "x"}}, [EngineRow("script", "script", {"cmd": "x"})]),
        ([{"door": {"engine_module": "script", "cmd": "x"}}], [EngineRow("door", "script", {"cmd": "x"})]),
        (
            [{"script": {"cmd": "a"}}, {"script": {"cmd": "b"}}, "script"],
            [
                EngineRow("script", "script", {"cmd": "a"}),
                EngineRow("script (2)", "script", {"cmd": "b"}),
                EngineRow("script (3)", "script", {}),
            ],
        ),
    ],
)
def test_forms(option: Any, rows: list[EngineRow]) -> None:
    assert engine_rows(option) == rows


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("test", "must be a list or a map, not a str"),
        ([{"a": {}, "b": {}}], "neither a name nor"),
        ([7], "7 is neither a name nor"),
        ([{"a": [1]}], "the arguments of a must be a map"),
    ],
)
def test_what_is_wrong(option: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        engine_rows(option)

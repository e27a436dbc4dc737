"""The pass ``declarations.expand``: short declarations are expanded."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Compile, told

WRITTEN: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "a text": ("x: test.nop\n", [("test", ["nop"])]),
    "a key with a dot": ("x:\n  test.nop:\n    - name: y\n", [("test", [{"name": "y"}, "nop"])]),
    "an empty list": ("x:\n  test.nop: []\n", [("test", ["nop"])]),
    "the function in the list": ("x:\n  test:\n    - name: y\n    - nop\n", [("test", [{"name": "y"}, "nop"])]),
    "the whole as a text below": ("x:\n  test.nop\n", [("test", ["nop"])]),
    "more modules, dotted ones last": (
        "x:\n  cmd.run: []\n  test:\n    - nop\n  file.touch: []\n",
        [("test", ["nop"]), ("cmd", ["run"]), ("file", ["touch"])],
    ),
}

FAULTS = {
    "a number": ("x: test.nop\ny: 3\n", ["a.sls:2 ID y in SLS a is not a dictionary"]),
    "a list": ("y:\n  - test.nop\n", ["a.sls:1 ID y in SLS a is not a dictionary"]),
    "a text without a dot": ("y: nonsense\n", ["a.sls:1 ID y in SLS a is not a dictionary"]),
    "one module twice": (
        "y:\n  test.nop: []\n  cmd.run: []\n  test.ping: []\n",
        ["a.sls:4 ID 'y' in SLS 'a' contains multiple state declarations of the same type"],
    ),
    "one module twice, once without a dot": (
        "y:\n  test:\n    - nop\n  test.ping: []\n",
        ["a.sls:4 ID 'y' in SLS 'a' contains multiple state declarations of the same type"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_written_out(compiled: Compile, text: str, expected: list[tuple[str, Any]]) -> None:
    body = compiled({"a.sls": text}, state_auto_order=False).high["x"]
    assert [(state, run) for state, run in body.items() if not state.startswith("__")] == expected


@pytest.mark.parametrize(("text", "faults"), FAULTS.values(), ids=FAULTS)
def test_faults(compiled: Compile, text: str, faults: list[str]) -> None:
    assert told(compiled({"a.sls": text}).faults) == faults

"""Real Salt's functions, asked one by one of one process; ours, called from a user's module."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_SCRIPT = Path(__file__).parent / "salt_asked.py"


def _normal() -> Any:
    """``normal`` of the program that asks Salt."""
    module = ModuleType("asked")
    exec(compile(_SCRIPT.read_text("utf-8"), str(_SCRIPT), "exec"), module.__dict__)
    return module.normal


class RealSalt:
    """The process."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(_SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, modules: str, expression: str, names: dict[str, Any] | None = None) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([modules, expression, names or {}]) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@pytest.fixture(scope="session")
def real_salt(oracle: Any) -> Iterator[RealSalt]:
    """What real Salt says of an expression."""
    made = RealSalt(oracle.program("python"))
    yield made
    made.close()


class Ours:
    """What the compatibility package says of an expression, in a user's module."""

    def __init__(self, shelf: Any) -> None:
        self._shelf = shelf
        self._normal = _normal()
        self._known: dict[tuple[str, str], Any] = {}

    def __call__(self, modules: str, expression: str, names: dict[str, Any] | None = None) -> str:
        key = (modules, expression)
        if key not in self._known:
            stem = f"asked{len(self._known)}"
            arguments = ", ".join(names or ())
            imports = "".join(f"import {module}\n" for module in modules.split())
            self._shelf.write(f"modules/{stem}.py", f"{imports}def f({arguments}):\n    return {expression}\n")
            self._shelf.loader.refresh()
            self._known[key] = self._shelf.context().functions[f"{stem}.f"]
        try:
            return str(self._normal(self._known[key](**(names or {}))))
        except Exception as error:  # noqa: BLE001 - what is raised is an answer
            return f"! {type(error).__name__}"


@pytest.fixture
def ours(shelf: Any) -> Ours:
    """What we say of it."""
    return Ours(shelf)

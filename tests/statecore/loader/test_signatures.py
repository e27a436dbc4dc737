"""Functions that are named like Salt's take what Salt's take. What is not here, or not taken, is in a table, with the reason.

A function, or the name of an argument, that is missing by mistake fails.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.loader import Loader
from tests import case_files
from tests.conftest import Oracle
from tests.statecore.loader.salt_signatures import of_module

#: ``functions``: those that are not here; ``arguments``: those that are not taken, by function, ``"*"`` for all. Each list has its
#: reason as its last entry. ``docs/differences.md`` tells them.
_TABLE = case_files.read(Path(__file__).parent / "refused_signatures.yaml")


def _named(function: Any) -> set[str] | None:
    """Names of a function's arguments, None where it takes any."""
    parameters = inspect.signature(function).parameters.values()
    return None if any(each.kind is each.VAR_KEYWORD for each in parameters) else {each.name for each in parameters}


def _ours(kind: str) -> dict[str, dict[str, list[set[str] | None]]]:
    """Module -> function -> what each of those that serve it takes."""
    found: dict[str, dict[str, list[set[str] | None]]] = {}
    for module, serving in Loader().built_in(kind).items():
        for served in serving:
            for name, function in served.functions.items():
                found.setdefault(module, {}).setdefault(name, []).append(_named(function))
    return found


def _lacking(salt: Path, kind: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Module -> functions that are not here; ``module.function`` -> arguments that are not taken."""
    functions: dict[str, list[str]] = {}
    arguments: dict[str, list[str]] = {}
    for module, own in _ours(kind).items():
        for name, signature in of_module(salt, kind, module).items():
            if name not in own:
                functions.setdefault(module, []).append(name)
            elif None not in own[name]:
                taken = set().union(*(each or () for each in own[name]))
                if missing := [each for each in signature.names if each not in taken]:
                    arguments[f"{module}.{name}"] = missing
    return functions, arguments


def _excused(table: Mapping[str, Any], module: str, function: str) -> set[str]:
    return {*table.get(f"{module}.*", ())[:-1], *table.get(f"{module}.{function}", ())[:-1]}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["modules", "states"])
def test_as_salt(kind: str, oracle: Oracle) -> None:
    (salt,) = (oracle.venv / "lib").glob("python3*/site-packages/salt")
    functions, arguments = _lacking(salt, kind)
    table = _TABLE[kind]
    unknown = {
        name: [each for each in there if each not in table["functions"].get(name, ())]
        for name, there in functions.items()
    }
    assert {name: there for name, there in unknown.items() if there} == {}
    unknown = {
        name: [each for each in there if each not in _excused(table["arguments"], *name.split("."))]
        for name, there in arguments.items()
    }
    assert {name: there for name, there in unknown.items() if there} == {}


def test_each_row_has_a_reason() -> None:
    rows = [row for kind in _TABLE.values() for part in kind.values() for row in part.values()]
    assert len(rows) > 20
    assert [row for row in rows if " " not in row[-1]] == []

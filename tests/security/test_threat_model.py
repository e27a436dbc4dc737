"""docs/security.md: each test that it names exists, each promise is held by attacks, and each public fault is played or said to
be of an absent part.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from masterstore.keys import KEYS
from tests.security.test_public_cves import ABSENT

pytestmark = pytest.mark.ordinary

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text("utf-8")
PLAYED = "".join(
    (ROOT / "tests/security" / name).read_text("utf-8") for name in ("test_public_cves.py", "test_restartcheck.py")
)

#: ``file::name``; a file without a folder is of this folder.
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda text: text)
def test_a_named_test_exists(file: str, name: str) -> None:
    path = ROOT / file if "/" in file else Path(__file__).parent / file
    assert re.search(rf"^def {name}\(", path.read_text("utf-8"), re.MULTILINE)


def test_each_threat_has_a_test() -> None:
    table = PAGE.partition("\n## Threats\n")[2].partition("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 30
    assert [row for row in rows if len(row) != 4 or "::" not in row[3]] == []


def test_each_promise_is_held_by_attacks() -> None:
    """The promises of SECURITY.md are those of the page, and the tests named beside each are attacks of this folder."""
    promised = re.findall(r"^- (.+?)\.$", (ROOT / "SECURITY.md").read_text("utf-8"), re.MULTILINE)
    table = PAGE.partition("\n## Promises\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| ([A-Z].+?) \| (`.+) \|$", table, re.MULTILINE))
    assert list(rows) == promised
    for promise, attacks in rows.items():
        named = re.findall(r"`([\w.]+)::(\w+)`", attacks)
        assert len(named) >= 3, promise
        for file, name in named:
            source = (Path(__file__).parent / file).read_text("utf-8")
            whole_file = "pytestmark = pytest.mark.ordinary" in source
            marks = re.search(rf"((?:^@.*\n(?:^[ )\]].*\n)*)*)^def {name}\(", source, re.MULTILINE)
            assert marks, f"{file} has no test {name}"
            assert "mark.ordinary" not in marks[1], f"{file}::{name} is no attack"
            assert not whole_file, f"{file} has no attacks"


def test_each_key_of_redis_says_what_its_writer_can_do() -> None:
    table = PAGE.partition("\n### What a writer of Redis can do\n")[2].partition("\n### ")[0]
    named = [
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    ]
    patterns = {
        each for spec in KEYS for each in ([spec.pattern.replace("<cache>", one) for one in ("grains", "pillar")])
    }
    assert sorted(named) == sorted(patterns)


def test_each_public_fault_is_played_or_of_an_absent_part() -> None:
    rows = re.findall(r"^\| (CVE-\d+-\d+) \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    absent = {cve for cve, here in rows if here == "there is no such part"}
    assert absent == set(ABSENT)
    for cve in {cve for cve, _ in rows} - absent:
        assert cve in PLAYED or f"test_{cve.lower().replace('-', '_')}_" in PLAYED, cve
    named = {f"CVE-{year}-{number}" for year, number in re.findall(r"(?i)cve[-_](\d{4})[-_](\d{4,})", PLAYED)}
    assert named <= {cve for cve, _ in rows}

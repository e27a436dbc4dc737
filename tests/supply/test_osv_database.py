"""The stored export of OSV: which versions a fault covers, and pip-audit's question answered on loopback."""

from __future__ import annotations

import json
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.supply.osv_database import DatabaseError, OsvDatabase, serve


def fault(
    name: str, events: Sequence[Mapping[str, str]] = (), versions: Sequence[str] = (), ecosystem: str = "PyPI"
) -> dict[str, Any]:
    row: dict[str, Any] = {"package": {"name": name, "ecosystem": ecosystem}, "versions": list(versions)}
    if events:
        row["ranges"] = [{"type": "ECOSYSTEM", "events": list(events)}]
    return {"id": f"TEST-{name}", "modified": "2026-11-01T00:00:00Z", "affected": [row]}


@pytest.mark.parametrize(
    ("events", "version", "affected"),
    [
        ([{"introduced": "0"}, {"fixed": "2.0"}], "1.9", True),
        ([{"introduced": "0"}, {"fixed": "2.0"}], "2.0", False),
        ([{"introduced": "0"}, {"fixed": "2.0"}], "2.0rc1", True),
        ([{"introduced": "0"}], "99", True),
        ([{"introduced": "1.0"}, {"last_affected": "1.5"}], "1.5", True),
        ([{"introduced": "1.0"}, {"last_affected": "1.5"}], "1.6", False),
        ([{"introduced": "1.0"}, {"fixed": "1.2"}, {"introduced": "2.0"}, {"fixed": "2.2"}], "1.5", False),
        ([{"introduced": "2.0"}, {"fixed": "2.2"}, {"introduced": "1.0"}, {"fixed": "1.2"}], "2.1", True),
        ([{"introduced": "1.10"}], "1.9", False),
    ],
)
def test_a_range_covers_its_versions(events: Sequence[Mapping[str, str]], version: str, affected: bool) -> None:
    found = OsvDatabase([fault("one", events)]).query("one", version)
    assert bool(found) is affected


def test_listed_versions_are_covered_however_they_are_written() -> None:
    database = OsvDatabase([fault("one", versions=["1.0", "not a version"])])
    assert database.query("one", "1.0.0")
    assert not database.query("one", "1.1")


def test_names_are_compared_in_their_normal_form() -> None:
    assert OsvDatabase([fault("PyYAML_Extra", versions=["1"])]).query("pyyaml-extra", "1")


def test_faults_of_other_ecosystems_do_not_count() -> None:
    assert not OsvDatabase([fault("one", versions=["1"], ecosystem="npm")]).query("one", "1")


def written(path: Path, *faults: Mapping[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number, one in enumerate(faults):
            archive.writestr(f"{number}.json", json.dumps(one))
    return path


def test_a_query_is_answered_as_osv_answers(tmp_path: Path) -> None:
    database = OsvDatabase.read(written(tmp_path / "all.zip", fault("one", versions=["1"])))
    assert database.newest() == "2026-11-01T00:00:00Z"
    answers = []
    with serve(database) as url:
        for version in ("1", "2"):
            asked = json.dumps({"package": {"name": "one", "ecosystem": "PyPI"}, "version": version}).encode()
            with urllib.request.urlopen(urllib.request.Request(url, data=asked), timeout=10) as answer:
                answers.append(json.loads(answer.read()))
    assert [[each["id"] for each in one.get("vulns", [])] for one in answers] == [["TEST-one"], []]


def test_a_file_that_is_no_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(DatabaseError, match=r"text\.zip: no zip file of OSV's JSON"):
        OsvDatabase.read(tmp_path / "text.zip")
    with pytest.raises(DatabaseError, match="no fault of a Python package"):
        OsvDatabase.read(written(tmp_path / "npm.zip", fault("one", versions=["1"], ecosystem="npm")))
    with pytest.raises(DatabaseError, match="nowhere"):
        OsvDatabase.read(tmp_path / "nowhere.zip")

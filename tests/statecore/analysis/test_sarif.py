"""SARIF 2.1.0: what its schema requires of a log with results, asked of ours."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from statecore.analysis.check_text import sarif
from statecore.analysis.finding import Finding
from statecore.analysis.rules import RULES
from statecore.model.errors import Mark

FINDINGS = [
    Finding("render", "it does not render", Mark("a b.sls", 3, 7), hint="the nearest is 'x'", runs=("web.yaml",)),
    Finding("old-form", "old", Mark("web/init.sls", 2)),
    Finding("watch-without-reaction", "no reaction", Mark("top.sls")),
    Finding("pillar", "nowhere"),
]

#: Path in the log -> the type that the schema has for it; ``*`` is every item, ``?`` says that it may be absent.
REQUIRED: dict[str, type] = {
    "version": str,
    "runs": list,
    "runs/*/tool/driver/name": str,
    "runs/*/tool/driver/version": str,
    "runs/*/tool/driver/rules/*/id": str,
    "runs/*/tool/driver/rules/*/shortDescription/text": str,
    "runs/*/results": list,
    "runs/*/results/*/message/text": str,
    "runs/*/results/*/ruleId": str,
    "runs/*/results/*/ruleIndex": int,
    "runs/*/results/*/locations?/*/physicalLocation/artifactLocation/uri": str,
    "runs/*/results/*/locations?/*/physicalLocation/region?/startLine": int,
    "runs/*/results/*/locations?/*/physicalLocation/region?/startColumn?": int,
}


def found(data: Any, path: list[str]) -> list[Any]:
    if not path:
        return [data]
    step, rest = path[0], path[1:]
    if step == "*":
        return [each for item in data for each in found(item, rest)]
    if step.endswith("?") and step[:-1] not in data:
        return []
    return found(data[step.removesuffix("?")], rest)


@pytest.fixture
def log() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(sarif(FINDINGS, lambda file: file.replace(" ", "%20"), "1.0")))
    return read


@pytest.mark.parametrize(("path", "kind"), REQUIRED.items(), ids=list(REQUIRED))
def test_required(log: dict[str, Any], path: str, kind: type) -> None:
    values = found(log, path.split("/"))
    assert values
    assert all(type(value) is kind for value in values)


def test_values(log: dict[str, Any]) -> None:
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert re.search(r"sarif.*2\.1\.0", log["$schema"])
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert {rule["defaultConfiguration"]["level"] for rule in rules} == {"error", "warning", "note"}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        for place in result.get("locations", []):
            region = place["physicalLocation"].get("region", {"startLine": 1})
            assert all(number >= 1 for number in region.values())
    first = run["results"][0]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.sls"},
        "region": {"startLine": 3, "startColumn": 7},
    }
    assert first["message"]["text"] == "it does not render (the nearest is 'x')"
    assert [len(result.get("locations", [])) for result in run["results"]] == [1, 1, 1, 0]

"""``check``: a table of trees, each with all that is to be found in it, by place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from statecore.analysis.finding import Finding, merged
from statecore.analysis.inspection.check import check
from statecore.analysis.rules import RULES
from statecore.model.errors import Mark
from tests import case_files

from .conftest import MakeMinion

CASES: dict[str, dict[str, Any]] = case_files.read(Path(__file__).parent / "cases" / "check.yaml")

assert len(CASES) > 35


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_findings(minion: MakeMinion, case: dict[str, Any]) -> None:
    made = minion(case["files"], pillar=case.get("pillar"), grains=case.get("grains"))
    found = merged({"": check(made.run_parts(), case.get("sls", ()))})
    told = [made.short(_told(finding)) for finding in found]
    assert len(told) == len(case["findings"]), told
    for text, expected in zip(told, case["findings"], strict=True):
        head, rest = re.fullmatch(r"(\S*:\d+(?::\d+)? \S+|\S+) (.*)", expected).groups()  # type: ignore[union-attr]
        assert text.split("\n")[0].removeprefix("lib/").startswith(head + " "), told
        at = 0
        for words in re.split(r" (?=nearest |include |write |did )", rest):
            assert words in text[at:], f"{words!r} not in {text!r}"


def test_every_rule_of_trees_has_a_case() -> None:
    named = {word for case in CASES.values() for line in case["findings"] for word in line.split() if word in RULES}
    # An include that is no list is the rule "include"; "compile" is what no other rule is; "not-rendered" is of untrusted trees.
    assert set(RULES) - named <= {"include", "compile", "not-rendered"}


def test_runs_of_several_minions_are_one_list() -> None:
    both, one = Finding("render", "x", Mark("a", 2, 1)), Finding("extend", "y", Mark("a", 1, 1))
    found = merged({"web": [both, both], "db": [one, both]})
    assert [(each.rule, each.runs) for each in found] == [("extend", ("db",)), ("render", ())]


def test_checking_twice_gives_the_same(minion: MakeMinion) -> None:
    made = minion(CASES["a ring, whole"]["files"])
    assert check(made.run_parts()) == check(made.run_parts())


def _told(finding: Finding) -> str:
    place = f"{finding.mark} " if finding.mark else ""
    return f"{place}{finding.rule} {finding.message}\n{finding.hint}"

"""Every requisite against every kind of target, and the decision that follows (docs/state-system.md#requisite-evaluation)."""

from __future__ import annotations

import pytest

from statecore.engine.requisite import NOT_RUN, REQUISITES, RULES, Decision, decide, look

CHANGED = {"result": True, "changes": {"a": 1}}
CLEAN = {"result": True, "changes": {}}
FAILED = {"result": False, "changes": {}}
FAILED_CHANGED = {"result": False, "changes": {"a": 1}}
WOULD = {"result": None, "changes": {"a": 1}}
LEFT_OUT = {"result": True, "changes": {}, "__state_ran__": False}
UNMET = {"result": False, "changes": {}, "__state_ran__": False}
SILENT = {"result": True, "changes": {"a": 1}, "skip_req": True}

CASES = [
    ("require", [CLEAN], Decision.RUN),
    ("require", [CHANGED], Decision.RUN),
    ("require", [WOULD], Decision.RUN),
    ("require", [FAILED], Decision.FAIL),
    ("require", [CLEAN, FAILED], Decision.FAIL),
    ("require", [LEFT_OUT], Decision.RUN),
    ("require", [UNMET], Decision.FAIL),
    ("require_any", [CLEAN, FAILED], Decision.RUN),
    ("require_any", [FAILED, FAILED], Decision.FAIL),
    ("require_any", [LEFT_OUT, FAILED], Decision.FAIL),
    ("watch", [CLEAN], Decision.RUN),
    ("watch", [CHANGED], Decision.WATCH),
    ("watch", [CLEAN, CHANGED], Decision.WATCH),
    ("watch", [CHANGED, FAILED], Decision.FAIL),
    ("watch", [FAILED_CHANGED], Decision.FAIL),
    ("watch", [WOULD], Decision.WATCH),
    ("watch", [SILENT], Decision.RUN_UNWATCHED),
    ("watch_any", [CHANGED, FAILED], Decision.WATCH),
    ("watch_any", [CLEAN, FAILED], Decision.RUN),
    ("watch_any", [FAILED], Decision.FAIL),
    ("prereq", [WOULD], Decision.RUN),
    ("prereq", [CLEAN], Decision.UNFORESEEN),
    ("prereq", [WOULD, CLEAN], Decision.RUN),
    ("prereq", [FAILED], Decision.FAIL),
    ("prereq", [{**WOULD, "skip_req": True}], Decision.SKIP),
    ("onfail", [FAILED], Decision.RUN),
    ("onfail", [CLEAN], Decision.NO_FAILURE),
    ("onfail", [WOULD], Decision.RUN),
    ("onfail", [CLEAN, FAILED], Decision.RUN),
    ("onfail", [UNMET], Decision.RUN),
    ("onfail_any", [CLEAN, FAILED], Decision.RUN),
    ("onfail_any", [CLEAN, CLEAN], Decision.NO_FAILURE),
    ("onfail_all", [FAILED, FAILED], Decision.RUN),
    ("onfail_all", [CLEAN, FAILED], Decision.NO_FAILURE),
    ("onchanges", [CHANGED], Decision.RUN),
    ("onchanges", [WOULD], Decision.RUN),
    ("onchanges", [CLEAN], Decision.NO_CHANGES),
    ("onchanges", [FAILED], Decision.NO_CHANGES),
    ("onchanges", [FAILED_CHANGED], Decision.NO_CHANGES),
    ("onchanges", [CLEAN, CHANGED], Decision.RUN),
    ("onchanges", [SILENT], Decision.SKIP),
    ("onchanges_any", [CLEAN, CHANGED], Decision.RUN),
    ("onchanges_any", [CLEAN, FAILED], Decision.NO_CHANGES),
]


@pytest.mark.parametrize(("kind", "entries", "decision"), CASES)
def test_one_requisite(kind, entries, decision):
    assert decide({kind: look(kind, entries)}) is decision


def test_every_row_of_the_table_has_cases_that_run_and_that_do_not():
    for kind in REQUISITES:
        decisions = {decision for name, _, decision in CASES if name == kind}
        assert decisions - set(NOT_RUN), kind
        assert decisions & set(NOT_RUN), kind


@pytest.mark.parametrize(
    ("seen", "decision"),
    [
        ({"require": [FAILED], "onchanges": [CHANGED]}, Decision.FAIL),
        ({"require": [CLEAN], "onchanges": [CLEAN]}, Decision.NO_CHANGES),
        ({"onfail": [CLEAN], "onchanges": [CHANGED]}, Decision.NO_FAILURE),
        ({"onfail": [CLEAN], "onchanges": [CLEAN]}, Decision.NO_FAILURE),
        ({"watch": [CHANGED], "onchanges": [CLEAN]}, Decision.NO_CHANGES),
        ({"watch": [CHANGED], "onchanges": [CHANGED]}, Decision.WATCH),
        ({"prereq": [CLEAN], "require": [FAILED]}, Decision.FAIL),
        ({}, Decision.RUN),
    ],
)
def test_kinds_together(seen, decision):
    assert decide({kind: look(kind, entries) for kind, entries in seen.items()}) is decision


def test_the_last_rule_fits_everything():
    assert RULES[-1][:2] == (frozenset(), frozenset())

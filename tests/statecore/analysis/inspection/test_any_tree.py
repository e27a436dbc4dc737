"""Whatever a tree holds, looking at it ends with findings or located errors: never with an exception of another kind."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.analysis.inspection import check as checking
from statecore.analysis.inspection.explain import explain
from statecore.analysis.inspection.graph import FORMATS, drawn
from statecore.analysis.inspection.plan import plan, report
from statecore.analysis.rules import RULES
from statecore.model.errors import SlsError

from .conftest import Minion

NAMES = st.sampled_from(["a", "b", "c", "x*", "sls", "id", "", "1"])

#: What stands where something else should.
ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False), NAMES),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=2)),
    max_leaves=4,
)

REFERENCES = st.lists(
    st.one_of(
        st.dictionaries(st.sampled_from(["test", "sls", "id", "file", "test.nop"]), NAMES, min_size=1, max_size=1),
        NAMES,
        ODD,
    ),
    max_size=2,
)

KINDS = ("require", "watch", "onchanges", "onfail", "prereq", "listen", "use", "require_any", "onfail_all")
ARGUMENTS = st.one_of(
    st.dictionaries(
        st.sampled_from([*KINDS, *(f"{kind}_in" for kind in KINDS[:7])]),
        st.one_of(REFERENCES, ODD),
        min_size=1,
        max_size=1,
    ),
    st.dictionaries(
        st.sampled_from(["name", "names", "order", "mode", "version", "onlyif", "unless", "nmae"]),
        ODD,
        min_size=1,
        max_size=1,
    ),
    ODD,
)
STATES = st.dictionaries(
    st.sampled_from(["test.nop", "test", "test.succeed_with_changes", "file.managed", "no.such", "pkg.installed"]),
    st.one_of(st.lists(st.one_of(ARGUMENTS, st.just("nop")), max_size=3), ODD),
    max_size=2,
)
BODIES = st.one_of(STATES, st.just("test.nop"), ODD)
SLS = st.one_of(
    st.dictionaries(NAMES, BODIES, max_size=3),
    st.dictionaries(
        st.sampled_from(["include", "extend", "exclude", "a", "b"]), st.one_of(BODIES, REFERENCES), max_size=4
    ),
    ODD,
)
TEXTS = st.one_of(
    SLS.map(lambda data: yaml.safe_dump(data)),
    st.sampled_from(
        ["", "{{", "{% if %}", "{{ x }}: test.nop", "a: [", "a: b: c", "#!py\ndef run(): return {}", "\x00", "&a [*a]"]
    ),
)


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries(
        {"a.sls": TEXTS, "b.sls": TEXTS, "top.sls": st.one_of(st.just("base:\n  '*': [a, b]\n"), TEXTS)}
    )
)
def test_any_tree(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as made:
        minion = Minion(Path(made))
        minion.write(files)
        findings = checking.check(minion.run_parts())
        assert {finding.rule for finding in findings} <= RULES.keys()
        json.dumps(checking.report(findings))
        looks: list[Callable[[], Any]] = [
            lambda: json.dumps(report(plan(minion.run_parts(), ["a"])), default=str),
            lambda: [make(drawn(minion.run_parts(), ["a", "b"])) for make in FORMATS.values()],
            lambda: json.dumps(explain(minion.run_parts(), ["a"], "a"), default=str),
        ]
        refused = [faults for look in looks if (faults := _faults(look))]
        assert all(message for faults in refused for message in faults)
        # What a run refuses, a check names.
        named = [finding for finding in findings if finding.level == "error" or finding.rule == "needs-other-sls"]
        assert named or not _faults(looks[0])


def _faults(look: Callable[[], Any]) -> list[str]:
    """What kept it from being looked at."""
    try:
        look()
    except SlsError as error:
        return [fault.message for fault in error.faults]
    return []

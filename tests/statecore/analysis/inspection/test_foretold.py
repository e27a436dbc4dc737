"""What a plan says comes true: states of generated trees do what was foretold of them, when the plan is applied."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.analysis.inspection.plan import apply, plan
from statecore.model.errors import SlsError

from .conftest import Minion

IDS = [f"s{number}" for number in range(6)]

KINDS = (
    "require",
    "watch",
    "onchanges",
    "onfail",
    "prereq",
    "listen",
    "require_any",
    "watch_any",
    "onchanges_any",
    "onfail_all",
)

#: State -> its function and arguments; files 0 to 2 are there before the run.
WORK: dict[str, list[Any]] = {
    "changing": ["succeed_with_changes"],
    "idle": ["succeed_without_changes"],
    "failing": ["fail_without_changes"],
}


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    high: dict[str, Any] = {}
    for number, name in enumerate(IDS):
        kind = draw(st.sampled_from([*WORK, "same file", "new file", "other file"]))
        if kind in WORK:
            state, run = "test", list(WORK[kind])
        else:
            contents = "old" if kind == "same file" else "new"
            path = f"/etc/new{number}" if kind == "new file" else f"/etc/f{number}"
            state, run = "file", ["managed", {"name": path}, {"contents": contents}, {"mode": "0644"}]
        high[name] = {state: run}
    for name, body in high.items():
        (run,) = body.values()
        # Requisites on states further up alone have no rings; a prereq points the other way.
        for kind in draw(st.lists(st.sampled_from(KINDS), max_size=2, unique=True)):
            at = IDS.index(name)
            others = IDS[at + 1 :] if kind == "prereq" else IDS[:at]
            if others:
                picked = draw(st.lists(st.sampled_from(others), min_size=1, max_size=2, unique=True))
                run.append({kind: [{next(iter(high[other])): other} for other in picked]})
    return high


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(trees())
def test_foretold(high: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as made:
        minion = Minion(Path(made))
        for number in range(len(IDS)):
            (minion.host / f"etc/f{number}").write_text("old\n")
            (minion.host / f"etc/f{number}").chmod(0o644)
        minion.write({"a.sls": yaml.safe_dump(high, sort_keys=False)})
        try:
            planned = plan(minion.run_parts(), ["a"])
        except SlsError:
            return
        running = apply(minion.runtime().run_parts({"test": False}), planned)
        told = {each.tag: each.verdict for each in planned.predictions}
        came = {
            name: "fail" if entry["result"] is False else "change" if entry["changes"] else "unchanged"
            for name, entry in running.items()
        }
        wrong = {name: (told.get(name), came[name]) for name in came if told.get(name) not in (came[name], "unknown")}
        assert not wrong
        assert set(told) == set(came)

"""The steps of a batch, beside those of a real Salt: who starts at which return."""

from __future__ import annotations

import json
from typing import Any

import pytest

from saltern.kit.jobs.batch import Window, batch_size

#: Batch, minions, order in which they return.
CASES: list[tuple[str, list[str], list[list[str]]]] = [
    ("2", ["a", "b", "c"], [["a"], ["b"], ["c"]]),
    ("2", ["a", "b", "c"], [["a", "b"], ["c"]]),
    ("2", ["a", "b", "c"], [["b"], ["a", "c"]]),
    ("66%", ["a", "b", "c"], [["a"], ["b"], ["c"]]),
    ("67%", ["a", "b", "c"], [["a", "b"], ["c"]]),
    ("10%", ["a", "b", "c"], [["a"], ["b"], ["c"]]),
    ("3", ["a", "b", "c"], [["c"], ["a", "b"]]),
    ("9", ["a", "b", "c"], [["a", "b", "c"]]),
    ("1", ["a", "b"], [["a"], ["b"]]),
]

_PROGRAM = """
import json, sys
from salt.utils import batch_state
found = []
for size, minions, returns in json.loads(sys.stdin.read()):
    state = batch_state.create_batch_state({"batch": size, "timeout": 99, "gather_job_timeout": 9}, minions, "1", now=0)
    steps = [batch_state.progress_batch(state, {}, now=0).publish]
    for names in returns:
        steps.append(batch_state.progress_batch(state, {n: {"ret": True, "retcode": 0} for n in names}, now=1).publish)
    found.append([sorted(step) for step in steps])
print(json.dumps(found))
"""


@pytest.mark.oracle
def test_the_same_minions_start_at_the_same_returns(oracle: Any) -> None:
    salts = json.loads(oracle.run("python", "-W", "ignore", "-c", _PROGRAM, stdin=json.dumps(CASES)))
    for (size, minions, returns), steps in zip(CASES, salts, strict=True):
        window = Window(minions, batch_size(size, len(minions)))
        ours = [window.admit()]
        for names in returns:
            started = []
            for name in names:
                window.leave(name)
                started += window.admit()
            ours.append(started)
        assert ours == steps, (size, returns)

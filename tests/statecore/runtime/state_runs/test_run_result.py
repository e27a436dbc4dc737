"""When a run counts as failed."""

from __future__ import annotations

import pytest

from statecore.runtime.state_runs.run_result import failed

_A, _B, _C = ("test_|-a_|-a_|-nop", "test_|-b_|-b_|-nop", "test_|-c_|-c_|-nop")


def _handler(*, stop: bool | None = False, on: str = "a", module: str = "test") -> dict:
    run = ["nop", {"onfail": [{module: on}]}]
    return {"test": run if stop is None else [*run, {"onfail_stop": stop}], "__sls__": "s"}


@pytest.mark.parametrize(
    ("results", "high", "verdict"),
    [
        ({}, {}, True),
        ({_A: True}, {}, False),
        ({_A: None}, {}, False),
        ({_A: False}, {}, True),
        ({_A: True, _B: False}, {}, True),
        ({_A: False, _B: True}, {"b": _handler()}, False),
        ({_A: False, _B: True}, {"b": _handler(stop=True)}, True),
        ({_A: False, _B: True}, {"b": _handler(stop=None)}, True),
        ({_A: False, _B: True}, {"b": _handler(on="c")}, True),
        ({_A: False, _B: True}, {"b": _handler(module="cmd")}, True),
        ({_A: False, _B: False}, {"b": _handler()}, True),
        ({_A: False, _B: None}, {"b": _handler()}, True),
        ({_A: False, _B: True, _C: False}, {"b": _handler()}, True),
        ({_A: False, _B: True, _C: False}, {"b": _handler(), "c": _handler()}, True),
        ({_A: False}, {"b": _handler()}, True),
        ({_A: False}, {"a": _handler()}, True),
        ({_A: False, "odd": True}, {"b": _handler(), "__extend__": [{}]}, True),
        ({_A: False, _B: True}, {"b": {"test": ["nop", {"onfail": "a"}, {"onfail_stop": False}]}}, True),
    ],
)
def test_failed(results, high, verdict):
    assert failed({tag: {"result": result, "changes": {}} for tag, result in results.items()}, high) is verdict

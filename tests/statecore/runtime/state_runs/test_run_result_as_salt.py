"""Made-up runs: ours calls the same ones failed as real Salt."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.state_runs.run_result import failed

_IDS = "abcd"
_MODULES = ("test", "cmd")


def _high(chance: random.Random) -> dict[str, Any]:
    high: dict[str, Any] = {}
    for name in _IDS:
        run: list[Any] = ["nop"]
        if chance.random() < 0.6:
            run.append(
                {"onfail": [{chance.choice(_MODULES): chance.choice(_IDS)} for _ in range(chance.randint(1, 2))]}
            )
        if chance.random() < 0.7:
            run.append({"onfail_stop": chance.random() < 0.3})
        high[name] = {module: run for module in _MODULES if chance.random() < 0.7} | {"__sls__": "s", "__env__": "base"}
    return high


def _running(chance: random.Random, high: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{module}_|-{name}_|-{name}_|-nop": {"result": chance.choice((True, True, False, None)), "changes": {}}
        for name, body in high.items()
        for module in body
        if not module.startswith("__") and chance.random() < 0.9
    }


@pytest.mark.oracle
def test_as_salt(oracle: Any) -> None:
    chance = random.Random(3008)
    cases = [(_running(chance, high), high) for high in (_high(chance) for _ in range(3000))]
    program = str(Path(__file__).with_name("salt_run_result.py"))
    salts = json.loads(oracle.run("python", program, stdin=json.dumps(cases)))
    assert {True, False} == set(salts)
    wrong = [(case, good) for case, good in zip(cases, salts, strict=True) if failed(*case) is good]
    assert wrong[:1] == []

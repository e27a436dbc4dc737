"""Pillar and the master's tops compared with real Salt: the same trees, plugins and options give the same data and
errors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Case, cases, ours

pytestmark = pytest.mark.oracle

_CASES = cases()


@pytest.mark.parametrize("case", _CASES, ids=[case.id for case in _CASES])
def test_as_salt(case: Case, salt_says: dict[str, Any], tmp_path: Path) -> None:
    directory = tmp_path / "case"
    own = json.loads(json.dumps(ours(case, directory)).replace(str(directory), "DIR"))
    salts = salt_says[case.id]
    if not case.differs:
        assert _short(own, salts) == _short(salts, salts)
        return
    assert _short(own, salts) != _short(salts, salts), "a difference that is none any more"
    assert own == case.ours


def _short(value: Any, salts: Any) -> Any:
    """Return the comparable part of the errors: Salt's sentence without Saltern's additions, each once."""
    if not isinstance(value, dict) or "_errors" not in value:
        return value
    theirs = [_first_line(error) for error in salts.get("_errors", [])] if isinstance(salts, dict) else []
    errors = [next((each for each in theirs if error.startswith(each)), error) for error in value["_errors"]]
    return value | {"_errors": list(dict.fromkeys(errors))}


def _first_line(error: str) -> str:
    return error.splitlines()[0].rstrip()

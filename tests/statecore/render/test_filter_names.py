"""All of Salt's Jinja filters, tests and globals exist."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.render.filters import FILTERS, GLOBALS, TESTS

#: Ours beside Salt's, for trees that have them from elsewhere.
_MORE = {"basename", "dirname"}


@pytest.mark.oracle
def test_names(ask_salt: Any) -> None:
    ((kind, names),) = ask_salt({}, [["names"]])
    assert kind == "value"
    assert set(names["filters"]) == set(FILTERS) - _MORE | {"indent"}
    assert set(names["tests"]) == set(TESTS) - {"list"}
    assert set(names["globals"]) == set(GLOBALS)

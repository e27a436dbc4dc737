"""All of Salt's Jinja filters, tests and globals exist, and take the arguments that Salt's take."""

from __future__ import annotations

import inspect
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


#: Parameters that only Salt has, and why ours does without.
_NOT_OURS = {
    "flatten": {"_ids"},  # for Salt's own recursion
    "http_query": None,  # hands all arguments on to http.query
    "ifelse": None,  # hands all arguments on to match.ifelse
    "path_join": {"kwargs"},  # holds use_posixpath, which ours names
}


@pytest.mark.oracle
def test_parameters(ask_salt: Any) -> None:
    ((kind, salts),) = ask_salt({}, [["parameters"]])
    assert kind == "value"
    lacking: dict[str, list[str]] = {}
    for name, function in {**FILTERS, **GLOBALS}.items():
        left_out = _NOT_OURS.get(name, set())
        if name not in salts or left_out is None:
            continue
        try:
            own = list(inspect.signature(function).parameters)
        except ValueError:  # min, max: no keywords in either
            continue
        own = [each for each in own if each != "context"]
        # A filter's first argument is the value in front of it.
        wanted = [each for each in salts[name][1:] if each not in left_out]
        if missing := [each for each in wanted if each not in own[1:]]:
            lacking[name] = missing
    assert lacking == {}
    assert len(salts) > 80

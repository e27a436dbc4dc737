"""A job as a table of minions and states."""

from __future__ import annotations

from typing import Any

import pytest

from saltern.mworker.job_queries.matrix import letter_of, matrix_of, running_of

MOTD, SITE = "file_|-motd_|-/etc/motd_|-managed", "file_|-site_|-/etc/site_|-managed"


def entry(number: int, result: bool | None = True, **more: Any) -> dict[str, Any]:
    return {"result": result, "changes": {}, "comment": "", "__run_num__": number, "duration": 1.5, **more}


@pytest.mark.parametrize(
    ("given", "letter"),
    [
        ({"result": True, "changes": {}}, "="),
        ({"result": True, "changes": {"a": 1}}, "~"),
        ({"result": None, "changes": {"a": 1}}, "?"),
        ({"result": False}, "!"),
        ({"result": False, "__state_ran__": False}, "x"),
        ({"result": True, "skip_watch": True}, "-"),
    ],
    ids=str,
)
def test_letters(given: dict[str, Any], letter: str) -> None:
    assert letter_of(given) == letter


def test_a_state_run_has_a_column_for_each_state_in_order_of_evaluation() -> None:
    web1 = {
        SITE: entry(1, False, __id__="site", name="/etc/site", __sls__="web"),
        MOTD: entry(0, changes={"diff": "x"}),
    }
    web2 = {MOTD: entry(0, duration="12.5 ms")}
    found = matrix_of({"web2": {"return": web2}, "web1": {"return": web1, "retcode": 2}})
    assert [(each["id"], each["function"], each["name"], each["sls"]) for each in found["columns"]] == [
        ("motd", "file.managed", "/etc/motd", ""),
        ("site", "file.managed", "/etc/site", "web"),
    ]
    assert [(row["id"], row["cells"], row["failed"], row["retcode"]) for row in found["rows"]] == [
        ("web1", "~!", True, 2),
        ("web2", "= ", False, 0),
    ]
    assert [row["seconds"] for row in found["rows"]] == [0.003, 0.013] or found["rows"][1]["seconds"] == 0.012


def test_equal_returns_have_one_digest() -> None:
    returns = {"a": {"return": {"x": 1, "y": 2}}, "b": {"return": {"y": 2, "x": 1}}, "c": {"return": "é" * 1000}}
    rows = {row["id"]: row for row in matrix_of(returns)["rows"]}
    assert rows["a"]["digest"] == rows["b"]["digest"] != rows["c"]["digest"]
    assert rows["a"]["preview"] == '{"x": 1, "y": 2}'
    assert len(rows["c"]["preview"]) == 300


@pytest.mark.parametrize(
    "value", [None, {}, [], ["an error"], True, {"a": {"result": True}}, {MOTD: entry(0), "b": 1}, {"a": []}], ids=str
)
def test_other_returns_are_no_state_run(value: object) -> None:
    assert running_of(value) == {}
    assert matrix_of({"web1": {"return": value}})["columns"] == []


def test_a_hostile_return_breaks_nothing() -> None:
    odd = "file_|-<img src=x>_|-a_|-b_|-managed"
    value = {odd: {"result": "yes", "changes": None, "duration": ["x"], "__run_num__": "first", "name": {"a": 1}}}
    found = matrix_of({"web1": {"return": value, "retcode": "x", "success": 7}})
    assert found["columns"][0]["function"] == "file.managed"
    assert found["rows"][0]["cells"] == "="

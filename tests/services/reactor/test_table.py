"""The reactor's table and the orders that change it; what it answers is Salt's."""

from __future__ import annotations

from typing import Any

import pytest

from saltern.kit.config.reactor_rows import rows_of
from saltern.reactor.table import ReactorTable

ORDERS = "salt/reactors/manage/"


def asked(table: ReactorTable, order: str, **data: Any) -> Any:
    answer = table.apply_order(ORDERS + order, data)
    assert answer is not None
    return answer[1].get("result", answer[1].get("reactors"))


def test_reactions_come_and_go() -> None:
    table = ReactorTable(rows_of([{"a/*": "/one.sls"}]), "master")
    assert asked(table, "list") == [{"a/*": "/one.sls"}]
    assert asked(table, "add", event="b/*", reactors=["/two.sls"]) == {"status": True, "comment": "Reactor added."}
    assert asked(table, "add", event="b/*", reactors=["/three.sls"])["status"] is False
    assert table.files() == [{"a/*": ["/one.sls"]}, {"b/*": ["/two.sls"]}]
    assert table.wanted() == ["a/*", "b/*", ORDERS + "*"]
    assert asked(table, "delete", event="a/*") == {"status": True, "comment": "Reactor deleted."}
    assert asked(table, "delete", event="a/*") == {"status": False, "comment": "Reactor does not exists."}
    assert asked(table, "list") == [{"b/*": ["/two.sls"]}]


@pytest.mark.parametrize("data", [{}, {"event": 5, "reactors": ["a"]}, {"event": "a", "reactors": 5}])
def test_nonsense_adds_nothing(data: dict[str, Any]) -> None:
    table = ReactorTable([], "master")
    assert asked(table, "add", **data)["status"] is False
    assert table.rows == []


def test_who_leads() -> None:
    table = ReactorTable([], "master")
    assert asked(table, "is_leader") is True
    assert asked(table, "set_leader", id="another", value=False) is True
    assert asked(table, "set_leader", id="master", value=False) is False
    assert asked(table, "is_leader") is False


@pytest.mark.parametrize("tag", ["salt/job/1/new", ORDERS + "list-results", ORDERS + "no-such"])
def test_what_is_no_order(tag: str) -> None:
    assert ReactorTable([], "master").apply_order(tag, {}) is None


def test_reactors_of_one_configuration_share_what_was_changed() -> None:
    one, two = (ReactorTable(rows_of([{"a/*": "/one.sls"}]), "master") for _ in range(2))
    asked(one, "add", event="b/*", reactors=["/two.sls"])
    asked(one, "set_leader", id="master", value=False)
    assert two.take(one.text())
    assert (two.rows, two.is_leader) == ([{"a/*": "/one.sls"}, {"b/*": ["/two.sls"]}], False)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"configured": "another", "rows": [], "is_leader": true}'])
def test_what_is_of_another_configuration_is_not_taken(text: str) -> None:
    table = ReactorTable(rows_of([{"a/*": "/one.sls"}]), "master")
    assert not table.take(text)
    assert table.rows == [{"a/*": "/one.sls"}]

"""The reactor's table and the orders that change it; what it answers is Salt's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.kit.config import ConfigError
from services.reactor.table import ReactorTable, rows_of

ORDERS = "salt/reactors/manage/"


def asked(table: ReactorTable, order: str, **data: Any) -> Any:
    answer = table.obey(ORDERS + order, data)
    assert answer is not None
    return answer[1].get("result", answer[1].get("reactors"))


def test_reactions_come_and_go() -> None:
    table = ReactorTable(rows_of([{"a/*": "/one.sls"}]), "master")
    assert asked(table, "list") == [{"a/*": "/one.sls"}]
    assert asked(table, "add", event="b/*", reactors=["/two.sls"]) == {"status": True, "comment": "Reactor added."}
    assert asked(table, "add", event="b/*", reactors=["/three.sls"])["status"] is False
    assert table.files() == [{"a/*": ["/one.sls"]}, {"b/*": ["/two.sls"]}]
    assert table.wanted() == ["a/", "b/", ORDERS]
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
    assert ReactorTable([], "master").obey(tag, {}) is None


def test_rows_may_lie_in_a_file(tmp_path: Path) -> None:
    place = tmp_path / "reactions"
    place.write_text("- a/*:\n  - /one.sls\n")
    assert rows_of(str(place)) == [{"a/*": ["/one.sls"]}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("- a: [", "not valid YAML"),
        ("a: b", "must be a list"),
        ("- 5", "5 is no `tag glob"),
        ("- a: {}", "is no `tag glob"),
    ],
)
def test_what_is_no_table_says_so(tmp_path: Path, text: str | None, said: str) -> None:
    place = tmp_path / "reactions"
    if text is not None:
        place.write_text(text)
    with pytest.raises(ConfigError, match=said):
        rows_of(str(place))

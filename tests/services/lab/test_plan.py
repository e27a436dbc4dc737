"""The lab's programs and ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from saltern.lab.plan import PORTS, LabError, Settings, describe, programs

SETTINGS = Settings(Path("/tree"), ("web1", "web2"), 2, {name: row.default for name, row in PORTS.items()})
WITH_API = replace(SETTINGS, api=True)


def with_ports(ports: Mapping[str, int]) -> Settings:
    return replace(SETTINGS, ports={**SETTINGS.ports, **ports})


def test_every_role_and_minion_is_there_and_redis_comes_first() -> None:
    names = [one.name for one in programs(SETTINGS)]
    assert names[0] == "redis"
    assert names[-2:] == ["minion-web1", "minion-web2"]
    assert set(names[1:-2]) == {*("eventpublisher", "reqserver", "publisher", "maintenance", "reactor", "mworker")}


def test_every_configured_port_has_exactly_one_program_that_binds_it() -> None:
    uses = [use.number for one in programs(WITH_API) for use in one.uses]
    assert len(uses) == len(set(uses))
    for name, row in PORTS.items():
        assert row.default in uses, name


def test_the_api_runs_where_it_is_asked_for_and_last() -> None:
    (api,) = programs(WITH_API)[len(programs(SETTINGS)) :]
    assert (api.name, api.words, api.group) == ("api", ("saltern", "api", "-c", "etc"), "master")
    # A role of the parent that forks all others has the libraries of all.
    assert api.role == ""


def test_health_ports_are_a_row_and_each_is_the_one_that_is_asked() -> None:
    rows = [one for one in programs(with_ports({"health_port": 9000})) if one.health_port]
    assert [one.health_port for one in rows] == list(range(9000, 9000 + len(rows)))
    assert all(one.health_port in {use.number for use in one.uses} for one in rows)


def test_no_program_names_an_absolute_path() -> None:
    # A lab that is moved keeps working.
    assert not [word for one in programs(SETTINGS) for word in one.words if word.startswith("/")]


@pytest.mark.parametrize(
    ("ports", "words"),
    [
        ({"ret_port": 4505}, ["4505", "--publish-port", "--ret-port"]),
        ({"redis_port": 4522}, ["4522", "--redis-port", "--health-port", "health of publisher"]),
        ({"ret_port": 0}, ["not a port", "0", "--ret-port"]),
        ({"workers_port": 65536}, ["not a port", "65536", "--workers-port"]),
        ({"health_port": 65530}, ["not a port", "65536", "--health-port"]),
    ],
)
def test_ports_that_cannot_be_are_named_with_their_options(ports: Mapping[str, int], words: list[str]) -> None:
    with pytest.raises(LabError) as caught:
        programs(with_ports(ports))
    for word in words:
        assert word in str(caught.value)


def test_a_described_port_is_one_line() -> None:
    (use,) = programs(SETTINGS)[0].uses
    assert describe([use]).split() == ["16379", "Redis", "--redis-port"]

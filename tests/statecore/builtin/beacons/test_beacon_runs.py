"""Looks of all beacons: when, with which options, as which events; and that none is in the way of another."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from statecore.runtime.beacon_runs import BeaconRuns, problem

#: As users write them for Salt.
USERS = '''
"""Tells what it is given."""

from __future__ import annotations

import salt.utils.beacons

__virtualname__ = "told"


def __virtual__():
    return __virtualname__


def validate(config):
    if not isinstance(config, list):
        return False, "no list"
    whole = salt.utils.beacons.list_to_dict(config)
    return ("bad" not in whole), "it is bad"


def beacon(config):
    whole = salt.utils.beacons.list_to_dict(config)
    if "fail" in whole:
        raise ValueError("it failed")
    __context__["looks"] = __context__.get("looks", 0) + 1
    return [{"tag": whole.get("tag", ""), "options": sorted(whole), "looks": __context__["looks"], "os": __grains__["os"]}]


def close(config):
    __context__["closed"] = __context__.get("closed", 0) + 1
'''

CLOSED = """
def __virtual__():
    return (False, "it has not what it needs")


def beacon(config):
    return []
"""


@pytest.fixture
def runs(plain):
    directory = plain.extension_dir / "beacons"
    directory.mkdir(parents=True)
    (directory / "teller.py").write_text(USERS)
    (directory / "closed.py").write_text(CLOSED)
    return BeaconRuns(plain.loader, plain.context())


def turn(runs: BeaconRuns, config: dict[str, Any], now: float = 0.0, states: bool = False) -> list[Any]:
    events, done = runs.call_due(config, now, lambda: states)
    assert done == []
    return events


def test_an_event_is_as_salts(runs):
    (event,) = turn(runs, {"told": [{"tag": "a/b"}, {"interval": 0}, {"beacon_module": "told"}]})
    options = ["_beacon_name", "beacon_module", "tag"]
    data = {"id": "web1", "options": options, "looks": 1, "os": "Debian"}
    assert event == {"tag": "salt/beacon/web1/told/a/b", "data": data, "beacon_name": "told"}


def test_intervals(runs):
    config = {"every": [{"beacon_module": "told"}], "third": [{"beacon_module": "told"}, {"interval": 3}]}
    looked = [[event["tag"] for event in turn(runs, config, now)] for now in range(8)]
    assert [len(events) for events in looked] == [1, 1, 1, 2, 1, 1, 2, 1]


def test_switched_off(runs):
    assert turn(runs, {"told": [{"enabled": False}]}) == []
    assert len(turn(runs, {"told": [{"enabled": True}]})) == 1
    assert turn(runs, {"told": [], "enabled": False}) == []


def test_not_during_state_runs(runs):
    config = {"told": [{"disable_during_state_run": True}], "other": [{"beacon_module": "told"}]}
    assert [event["tag"] for event in turn(runs, config, states=True)] == ["salt/beacon/web1/other/"]
    assert runs.ctx.scratch["closed"] == 1
    assert len(turn(runs, config, 1.0)) == 2


def test_once(runs):
    events, done = runs.call_due({"told": [{"run_once": True}, {"interval": 2}]}, 0.0, lambda: False)
    assert (events, done) == ([], [])
    events, done = runs.call_due({"told": [{"run_once": True}, {"interval": 2}]}, 2.0, lambda: False)
    assert (len(events), done) == (1, ["told"])


def test_one_that_fails_tells_so_and_the_others_go_on(runs, caplog):
    config = {"bad": [{"beacon_module": "told"}, {"fail": 1}], "told": []}
    with caplog.at_level(logging.ERROR):
        first, second = turn(runs, config)
    assert first == {
        "tag": "salt/beacon/web1/bad/",
        "error": "it failed",
        "data": {"id": "web1", "error": "it failed"},
        "beacon_name": "told",
    }
    assert second["tag"] == "salt/beacon/web1/told/"
    assert "the beacon bad failed: it failed" in caplog.text


def test_one_that_is_none_is_told_of_once(runs, caplog):
    config = {"told": [{"bad": 1}], "nothing": [], "closed": [], "load": {"averages": {}}, "ps": [{"processes": {}}]}
    with caplog.at_level(logging.ERROR):
        for now in range(3):
            turn(runs, config, now)
    assert caplog.messages == [
        "the beacon told is left out: it is bad",
        'the beacon nothing is left out: Beacon "nothing" is not available.',
        'the beacon closed is left out: Beacon "closed" is not available: '
        "'closed' __virtual__ returned False: it has not what it needs",
        "the beacon load is left out: Configuration for load beacon must be a list.",
    ]


def test_one_that_is_changed_or_gone_is_closed(runs):
    turn(runs, {"told": []})
    turn(runs, {"told": [{"interval": 1}]}, 1.0)
    assert runs.ctx.scratch["closed"] == 1
    turn(runs, {}, 2.0)
    assert runs.ctx.scratch["closed"] == 2


def test_a_module_that_is_no_beacon(plain, runs):
    (plain.extension_dir / "beacons" / "empty.py").write_text("def other():\n    return 1\n")
    assert problem(plain.loader, plain.context(), "empty", []) == 'Beacon "empty" has no function beacon.'
    assert problem(plain.loader, plain.context(), "told", []) == ""

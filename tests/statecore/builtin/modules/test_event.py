"""The module and the state ``event``: what is in an event, as Salt puts it together, and when one is fired."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statecore.model.errors import CommandError, InvocationError
from statecore.system.minion_bus import Subscription
from tests.conftest import Oracle

#: Arguments of event.send behind the tag.
CALLS: list[dict[str, Any]] = [
    {},
    {"data": {"a": 1}},
    {"data": {"a": 1}, "a": 2, "b": 3},
    {"data": "no map", "b": 3},
    {"with_env": ["EVENT_TEST", "EVENT_NONE"]},
    {"with_grains": ["os", "none"]},
    {"with_grains": True},
    {"with_pillar": ["key"]},
    {"with_env_opts": True},
    {"with_grains": ["os"], "grains": "mine", "data": {"grains": "data's"}},
    {"show_changed": False},
]


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    monkeypatch.setenv("EVENT_TEST", "x")


@pytest.mark.oracle
def test_salt_sends_the_same(plain, oracle: Oracle) -> None:
    program = (
        "import json, sys; import salt.modules.event as event\n"
        "class Named(dict):\n"
        "    def value(self): return dict(self)\n"
        "asked = json.load(sys.stdin)\n"
        "event.__opts__ = {'id': 'web1', 'saltenv': None, 'pillarenv': None}\n"
        "event.__grains__, event.__pillar__ = Named(asked['grains']), Named(asked['pillar'])\n"
        "told = []\n"
        "event.fire_master = lambda data, tag, preload=None: told.append([tag, data])\n"
        "for call in asked['calls']: event.send('my/tag', **call)\n"
        "print(json.dumps(told))"
    )
    plain.opts |= {"saltenv": None, "pillarenv": None}
    asked = {"calls": CALLS, "grains": plain.grains, "pillar": plain.pillar}
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(asked)))
    for call in CALLS:
        assert plain.call("event.send", "my/tag", __pub_jid="1", **call) is True
    assert [list(event) for event in plain.ports.asked] == told


def test_all_variables(plain):
    plain.call("event.send", "my/tag", with_env=True)
    ((_, data),) = plain.ports.asked
    assert data["environ"]["EVENT_TEST"] == "x"


def test_what_the_master_knows_is_not_for_the_caller_to_say(plain):
    with pytest.raises(InvocationError, match="not supported: preload"):
        plain.call("event.send", "my/tag", preload={"id": "other"})
    assert plain.state("event.send", name="my/tag", preload={"id": "other"})["result"] is False
    assert plain.ports.asked == []


def test_orders_to_the_own_minion(plain):
    for tag in ("pillar_refresh", "grains_refresh", "module_refresh"):
        assert plain.call("event.fire", {}, tag) is True
    assert plain.ports.asked == ["refresh_pillar", "refresh_grains", "refresh_modules"]
    plain.ports.asked.clear()
    assert plain.call("event.fire", {"a": 1}, "my/tag") is True
    assert plain.call("event.fire_master", "text", "my/tag") is True
    assert plain.ports.asked == [("my/tag", "text")]


def test_the_minions_own_bus(plain, tmp_path):
    plain.opts["cachedir"] = str(tmp_path / "cache")
    assert plain.call("event.fire", {"a": 0}, "nobody/listens") is True
    heard = Subscription(tmp_path / "cache" / "bus")
    assert plain.call("event.fire", {"a": 1}, "my/tag") is True
    tag, data = heard.next(5)
    assert (tag, data["a"], sorted(data)) == ("my/tag", 1, ["_stamp", "a"])
    with pytest.raises(CommandError, match="the event big has 300"):
        plain.call("event.fire", {"a": "x" * 300_000}, "big")
    heard.close()
    assert list((tmp_path / "cache" / "bus").iterdir()) == []
    plain.opts["__role"] = "master"
    assert plain.call("event.fire", {"a": 1}, "my/tag") is True
    assert plain.ports.asked == [("my/tag", {"a": 1})]


def test_the_state(plain):
    changes = {"tag": "my/tag", "data": {"a": 1}}
    would = plain.state("event.send", test=True, name="my/tag", data={"a": 1}, b=2)
    assert (would["result"], would["comment"], would["changes"]) == (None, "Event would have been fired", changes)
    assert plain.ports.asked == []
    done = plain.state("event.send", name="my/tag", data={"a": 1}, b=2, with_grains=["os"])
    assert (done["result"], done["comment"], done["changes"]) == (True, "Event fired", changes)
    assert plain.ports.asked == [("my/tag", {"a": 1, "b": 2, "grains": {"os": "Debian"}})]
    quiet = plain.state("event.fire_master", name="my/tag", show_changed=False)
    assert (quiet["result"], quiet["comment"], quiet["changes"]) == (True, "Event fired", {})
    plain.ports.asked.clear()
    assert plain.state("event.wait", name="my/tag", data={"a": 1})["changes"] == {}
    assert plain.ports.asked == []
    watched = plain.state("event.mod_watch", name="my/tag", data={"a": 1}, sfun="wait")
    assert (watched["result"], watched["changes"]) == (True, changes)


def test_the_state_without_a_master(plain, monkeypatch):
    monkeypatch.setattr(plain.ports, "fire", lambda tag, data: False)
    told = plain.state("event.send", name="my/tag")
    assert (told["result"], told["comment"]) == (False, "The event was not fired: this minion has no master")

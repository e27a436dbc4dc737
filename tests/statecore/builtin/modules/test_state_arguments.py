"""What state functions refuse: every argument with a wrong type, by name, before anything is asked or done."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.model.errors import InvocationError

_NAMES = ("state.apply", "state.sls", "state.show_sls", "state.show_low_sls", "state.sls_exists")

_BAD: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    *((name, ({"a": 1},), {}, "'mods' must be a name, names separated by commas") for name in _NAMES),
    *((name, ([None],), {}, "'mods' must be .* not the list") for name in _NAMES),
    ("state.apply", ("a",), {"tset": True}, "'tset' is no argument of a state run. Did you mean 'test'?"),
    ("state.highstate", (), {"pilar": {}}, "Did you mean 'pillar'?"),
    ("state.sls", ("a",), {"saltnev": "base"}, "Did you mean 'saltenv'?"),
    ("state.sls", (None,), {}, "'mods' must be .* not None"),
    ("state.sls", (b"a",), {}, "'mods' must be"),
    ("state.sls_id", (None, "a"), {}, "'id_' must be the ID of a state"),
    ("state.sls_id", ("a", None), {}, "'mods' must be"),
    ("state.id_exists", (None, "a"), {}, "'ids' must be"),
    ("state.id_exists", ("a", {}), {}, "'mods' must be"),
    *(("state.apply", ("a",), {"pillar": bad}, "Pillar data must be") for bad in ("x", 7, ["a"], [], "")),
    *(("state.apply", ("a",), {"exclude": bad}, "'exclude' must be") for bad in (7, [None], [["a"]], [{"x": "y"}])),
    ("state.apply", ("a",), {"exclude": {"sls": "a", "id": "b"}}, "'exclude' must be"),
    *(("state.apply", ("a",), {"saltenv": bad}, "'saltenv' must be") for bad in (["base"], {"a": 1}, "")),
    *(("state.apply", ("a",), {"pillarenv": bad}, "'pillarenv' must be") for bad in (["base"], {"a": 1}, "")),
    *(("state.apply", ("a",), {"queue": bad}, "'queue' must be") for bad in ("yes", -1, [], 1.5)),
    *(("state.apply", ("a",), {"localconfig": bad}, "'localconfig' must be") for bad in (7, [], "")),
    *(("state.apply", ("a",), {"cache_name": bad}, "'cache_name' must be") for bad in (7, "")),
    ("state.apply", ("a",), {"sync_mods": {"a": 1}}, "'sync_mods' must be"),
    ("state.apply", ("a",), {"pillar": {}, "pillar_enc": "gpg"}, "pillar_enc is not available"),
    *(("state.highstate", (), {"whitelist": bad}, "'whitelist' must be") for bad in ({}, {"a": 1}, [None])),
    *(("state.low", (bad,), {}, "'data' must be a map") for bad in ([], "x", None, 7)),
    *(("state.top", (bad,), {}, "'topfn' must be") for bad in (None, 7, [], "")),
    *(("state.template", (bad,), {}, "'tem' must be the path") for bad in (None, 7, [], "")),
    *(("state.template_str", (bad,), {}, "'tem' must be the text") for bad in (None, 7, [])),
    *(("state.disable", (bad,), {}, "'states' must be") for bad in (None, {}, [None])),
    *(("state.enable", (bad,), {}, "'states' must be") for bad in (None, {}, [None])),
    *(("state.pause", (bad,), {}, "'jid' must be") for bad in (None, [], True, "../x", "")),
    *(("state.soft_kill", (bad,), {}, "'jid' must be") for bad in (None, [], True, "../x", "a/b")),
    *(("state.resume", (bad,), {}, "'jid' must be") for bad in (None, [], True, "..", "a/b")),
    *(("state.pause", ("1",), {"duration": bad}, "'duration' must be") for bad in ("x", -1, True, [])),
    ("state.request", ("a",), {"pillar": "x"}, "Pillar data must be"),
    *((f"state.{verb}_request", ([1],), {}, "'name' must be") for verb in ("check", "run", "clear")),
    ("state.request", (), {"name": 7}, "'name' must be"),
    ("state.check_request", ("absent",), {}, "There is no request 'absent'"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "says"), _BAD, ids=lambda value: str(value)[:40])
def test_a_wrong_argument_is_named(plain, name, args, kwargs, says):
    with pytest.raises(InvocationError, match=says):
        plain.call(name, *args, **kwargs)
    assert plain.ports.asked == []


def test_a_wrong_queue_in_the_configuration(plain):
    plain.opts["state_queue"] = "often"
    with pytest.raises(InvocationError, match="'queue' must be"):
        plain.call("state.apply", "a")


@pytest.mark.parametrize("data", [[], "x", None, 7])
def test_high_data_of_another_type(plain, data):
    ctx = plain.context()
    assert ctx.call("state.high", data) == ["High data is not a dictionary and is invalid"]
    assert ctx.scratch["retcode"] == 1
    assert plain.ports.asked == []


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ({"test": True}, True),
        ({"test": False}, False),
        ({"test": 0}, True),
        ({"test": "False"}, True),
        ({"test": None}, False),
        ({"Test": True}, True),
        ({"TEST": "true"}, True),
        ({"TEST": "no"}, False),
        ({}, False),
    ],
)
def test_test_mode(plain, given, means):
    plain.call("state.apply", "a", **given)
    assert plain.ports.asked[0][2]["test"] is means

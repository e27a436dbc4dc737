"""The module ``mine``: what is offered, how it is told to the master, and how it is kept without one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statecore.builtin.modules.mine import MineFunction
from statecore.model.errors import InvocationError
from tests.conftest import Oracle

#: Entries of mine_functions, in Salt's forms.
DEFINITIONS: list[Any] = [
    [],
    {},
    ["eth0"],
    [{"interface": "eth0"}],
    ["a", {"b": 1}, {"c": 2}],
    [{"mine_function": "network.ip_addrs"}, "eth0"],
    [{"mine_function": "network.ip_addrs"}, {"cidr": "10.0.0.0/8"}, {"allow_tgt": "web*"}],
    {"mine_function": "network.ip_addrs", "interface": "eth0"},
    {"interface": "eth0", "allow_tgt": "G@a:b", "allow_tgt_type": "compound"},
    {"allow_tgt": "", "allow_tgt_type": "compound"},
]


@pytest.mark.oracle
def test_salt_reads_definitions_the_same(oracle: Oracle) -> None:
    program = (
        "import json, sys; from salt.utils.mine import parse_function_definition, wrap_acl_structure\n"
        "told = []\n"
        "for one in json.load(sys.stdin):\n"
        "    name, args, kwargs, acl = parse_function_definition(one)\n"
        "    value = wrap_acl_structure(7, **acl) if acl.get('allow_tgt') else 7\n"
        "    told.append([name or '', args, kwargs, value])\n"
        "print(json.dumps(told))"
    )
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(DEFINITIONS)))
    ours = [MineFunction.of(one) for one in DEFINITIONS]
    assert [[one.function, list(one.args), dict(one.kwargs), one.guarded(7)] for one in ours] == told


def test_what_is_no_definition_is_refused() -> None:
    with pytest.raises(InvocationError, match="an entry of mine_functions must be a list or a map of arguments, not 5"):
        MineFunction.of(5)


@pytest.fixture
def minion(plain):
    """With a master that says True."""
    plain.ports.answer = True
    return plain


def told(plain) -> Any:
    (cmd, fields), *rest = plain.ports.asked
    assert (cmd, rest) == ("_mine", [])
    plain.ports.asked.clear()
    return fields


def test_what_is_offered_is_told(minion, caplog):
    minion.opts["mine_functions"] = {"test.echo": ["hello"], "own": [{"mine_function": "test.echo"}, {"text": "again"}]}
    minion.pillar["mine_functions"] = {
        "test.echo": ["from pillar"],
        "guarded": {"mine_function": "test.ping", "allow_tgt": "a*"},
    }
    assert minion.call("mine.update") is True
    guarded = {"__saltmine_acl__": 1, "__data__": True, "allow_tgt": "a*"}
    assert told(minion) == {"data": {"test.echo": "hello", "own": "again", "guarded": guarded}, "clear": False}
    assert minion.call("mine.update", clear=True, mine_functions=["test.ping"]) is True
    assert told(minion) == {"data": {"test.ping": True}, "clear": True}
    assert minion.call("mine.valid") == {
        "test.echo": ["hello"],
        "own": {"test.echo": [{"text": "again"}]},
        "guarded": {"test.ping": []},
    }
    assert caplog.text == ""


def test_what_fails_is_left_out(minion, caplog):
    minion.opts["mine_functions"] = {"no.such": [], "test.ping": [], "test.echo": [{"nothing": 1}]}
    assert minion.call("mine.update") is True
    assert told(minion)["data"] == {"test.ping": True}
    assert "Function no.such in mine_functions not available" in caplog.text
    assert "Function test.echo in mine.update failed to execute" in caplog.text
    assert minion.call("mine.valid") == {"test.ping": [], "test.echo": [{"nothing": 1}]}
    assert minion.call("mine.send", "test.echo", nothing=1) is False
    assert minion.ports.asked == []


def test_where_nothing_is_offered(minion):
    assert minion.call("mine.update") is None
    assert minion.call("mine.valid") is None
    minion.opts["mine_functions"] = 5
    with pytest.raises(
        InvocationError, match="mine_functions must be a map of functions, or a list of their names, not 5"
    ):
        minion.call("mine.update")


def test_one_is_sent(minion):
    assert minion.call("mine.send", "test.echo", "hello") is True
    assert told(minion) == {"data": {"test.echo": "hello"}, "clear": False}
    assert minion.call("mine.send", "mine", mine_function="test.echo", text="x", allow_tgt="a", allow_tgt_type="list")
    guarded = {"__saltmine_acl__": 1, "__data__": "x", "allow_tgt": "a", "allow_tgt_type": "list"}
    assert told(minion)["data"] == {"mine": guarded}


def test_others_are_asked(plain):
    plain.ports.answer = {"web1": 1, "web2": 2}
    assert plain.call("mine.get", "*", "f") == {"web1": 1, "web2": 2}
    assert plain.call("mine.get", "*", "f", exclude_minion=True) == {"web2": 2}
    plain.ports.answer = {"f": {"web1": 1, "web2": 2}, "g": {"web1": 3}}
    assert plain.call("mine.get", "*", "f,g", exclude_minion=True) == {"f": {"web2": 2}, "g": {}}
    assert plain.ports.asked[0] == ("_mine_get", {"tgt": "*", "fun": "f", "tgt_type": "glob"})
    plain.ports.answer, plain.ports.asked[:] = True, []
    assert plain.call("mine.delete", "f") is True
    assert plain.call("mine.flush") is True
    assert plain.ports.asked == [("_mine_delete", {"fun": "f"}), ("_mine_flush", {})]


def test_without_a_master_it_is_kept_here(plain):
    plain.opts["file_client"] = "local"
    assert plain.call("mine.send", "test.echo", "hello") is True
    assert plain.call("mine.send", "g", mine_function="test.ping", allow_tgt="x") is True
    assert plain.call("mine.get", "*", "test.echo") == {"web1": "hello"}
    assert plain.call("mine.get", "web1", "test.echo,g,none") == {"test.echo": {"web1": "hello"}, "g": {"web1": True}}
    assert plain.call("mine.get", "other", "test.echo") == {}
    assert plain.call("mine.delete", "test.echo") is True
    assert plain.call("mine.get", "*", "test.echo") == {}
    assert plain.call("mine.flush") is True
    assert plain.call("mine.get", "*", ["g"]) == {}
    assert plain.ports.asked == []

"""data, jinja, log, system: what a minion keeps, renders, writes, and is told to do with its host."""

from __future__ import annotations

import json
import logging
from datetime import datetime

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.ports import CommandResult
from statecore.render import SlsTree
from statecore.sources.local_tree import LocalFiles

#: One after the other, on what the one before has left.
DATA = [
    ("load", []),
    ("update", ["a", 1]),
    ("update", ["b", {"c": [1, None, "x"]}]),
    ("get", ["a"]),
    ("get", ["none"]),
    ("get", ["none", "other"]),
    ("get", [["a", "none", "b"]]),
    ("get", [["a", "none"], 7]),
    ("cas", ["a", 2, 9]),
    ("cas", ["a", 2, 1]),
    ("cas", ["none", 2, None]),
    ("has_key", ["a"]),
    ("has_key", ["none"]),
    ("keys", []),
    ("values", []),
    ("items", []),
    ("pop", ["a"]),
    ("pop", ["a", "gone"]),
    ("dump", ["{'eggs': 'spam'}"]),
    ("load", []),
    ("dump", [{"x": 1}]),
    ("items", []),
    ("clear", []),
    ("load", []),
]

_ASK = """
import json, sys, salt.config, salt.loader
opts = salt.config.minion_config(None)
opts.update(id="web1", file_client="local", cachedir=sys.argv[1], grains={"id": "web1", "kernel": "Linux", "os": "Debian"})
opts["file_roots"] = {"base": [sys.argv[2]]}
functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
json.dump([functions[name](*args) for name, args in json.load(sys.stdin)], sys.stdout)
"""

MAP = "{% set found = {'b': [1, none], 'a': 'x'} %}\n{% set name = 'y' %}\n"


def ask(oracle, tmp_path, calls):
    """Real Salt's answers; its tree is ``tree`` below tmp_path."""
    (tmp_path / "salt").mkdir()
    (tmp_path / "salt/cache").mkdir()
    stdin = json.dumps(calls)
    return json.loads(
        oracle.run("python", "-c", _ASK, str(tmp_path / "salt/cache"), str(tmp_path / "tree"), stdin=stdin)
    )


@pytest.mark.oracle
def test_data_as_salt(plain, oracle, tmp_path):
    own = [plain.call(f"data.{name}", *args) for name, args in DATA]
    assert own == ask(oracle, tmp_path, [(f"data.{name}", args) for name, args in DATA])


def test_data(plain):
    assert plain.call("data.update", "a", 1) is True
    assert plain.call("data.get", "a") == 1
    assert plain.call("data.dump", "[1]") is False
    assert plain.call("data.dump", "nonsense(") is False
    assert plain.call("data.load") == {"a": 1}
    with pytest.raises(InvocationError, match="key must be a name or a list of names, not 5"):
        plain.call("data.get", 5)
    (plain.directory / "cache/datastore").write_bytes(b"\xc1")
    with pytest.raises(CommandError, match="datastore is damaged"):
        plain.call("data.load")
    assert plain.call("data.clear") is True
    assert plain.call("data.load") == {}


@pytest.mark.oracle
def test_jinja_as_salt(plain, oracle, tmp_path):
    write_formula(plain)
    calls = [
        ("jinja.load_map", ["f/map.jinja", "found"]),
        ("jinja.load_map", ["f/map.jinja", "name"]),
        ("jinja.import_yaml", ["f/a.yaml"]),
        ("jinja.import_json", ["f/a.json"]),
    ]
    ctx = rendering(plain)
    assert [ctx.call(name, *args) for name, args in calls] == ask(oracle, tmp_path, calls)


def write_formula(plain):
    for name, text in {"map.jinja": MAP, "a.yaml": "a: [1, {b: c}]\nd: null\n", "a.json": '{"a": [1.5, true]}'}.items():
        plain.write(f"f/{name}", text)


def rendering(plain):
    """A context that renders templates."""
    files = LocalFiles({"base": [plain.tree]})
    tree = SlsTree(files, opts=plain.opts, grains={}, pillar={}, functions={})
    return plain.context(templates=tree.templates)


def test_jinja(plain):
    write_formula(plain)
    ctx = rendering(plain)
    assert ctx.call("jinja.load_map", "f/map.jinja", "found") == {"b": [1, None], "a": "x"}
    assert ctx.call("jinja.import_yaml", "f/a.yaml") == {"a": [1, {"b": "c"}], "d": None}
    with pytest.raises(InvocationError, match="is not a valid name of a template variable"):
        ctx.call("jinja.load_map", "f/map.jinja", "found }} {{ 1")
    with pytest.raises(Exception, match=r"none\.jinja"):
        ctx.call("jinja.load_map", "f/none.jinja", "found")


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "critical"])
def test_log(plain, caplog, level):
    caplog.set_level(logging.DEBUG)
    assert plain.call(f"log.{level}", "100 %s %d") is True
    assert [(each.levelname.lower(), each.getMessage()) for each in caplog.records if "100" in each.getMessage()] == [
        (level, "100 %s %d")
    ]


def test_log_of_an_exception(plain, caplog):
    try:
        raise ValueError("told")
    except ValueError:
        assert plain.call("log.exception", "see") is True
    assert "ValueError: told" in caplog.text


# ------------------------------------------------------------------------------------------------------------------------ system


class Played(Host):
    """A mounted host whose programs only remember how they were called."""

    def __init__(self, root):
        super().__init__(root)
        self.calls = []
        self.failing = ()
        self.absent = ()

    def which(self, program):
        return None if program in self.absent else f"/sbin/{program}"

    def run(self, cmd, **options):
        self.calls.append(list(cmd))
        failed = next((word for word in cmd if word in self.failing), None)
        return CommandResult(1 if failed else 0, "said\n", "bad\n" if failed else "", 1)


@pytest.fixture
def system(plain, monkeypatch):
    host = Played(plain.root)
    (plain.root / "run/systemd/system").mkdir(parents=True)
    (plain.root / "etc").mkdir()
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": host, **changes}))
    plain.host = host
    return plain


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("halt", [], ["halt"]),
        ("poweroff", [], ["poweroff"]),
        ("init", [3], ["init", "3"]),
        ("reboot", [], ["shutdown", "-r", "now"]),
        ("reboot", [5], ["shutdown", "-r", "5"]),
        ("reboot", ["23:30"], ["shutdown", "-r", "23:30"]),
        ("shutdown", [], ["shutdown", "-h", "now"]),
        ("shutdown", ["+1"], ["shutdown", "-h", "+1"]),
    ],
)
def test_halting(system, name, args, words):
    assert system.call(f"system.{name}", *args) == "said"
    assert system.host.calls == [words]


@pytest.mark.parametrize(
    ("name", "args"), [("init", ["3; x"]), ("reboot", ["soon"]), ("shutdown", ["-c"]), ("set_system_date", ["then"])]
)
def test_nonsense(system, name, args):
    with pytest.raises(InvocationError):
        system.call(f"system.{name}", *args)
    assert system.host.calls == []


def test_what_does_not_run_is_not_halted(system):
    (system.root / "run/systemd/system").rmdir()
    with pytest.raises(HostError, match=r"no init runs on the host at .*: shutdown would not reach it"):
        system.call("system.reboot")
    system.host.absent = ("halt",)
    with pytest.raises(CommandError, match="the host has no halt"):
        system.call("system.halt")
    assert system.host.calls == []


def test_the_clock(system):
    assert system.call("system.set_system_date_time", 2015, 5, 12, 11, 37, 53) is True
    assert system.host.calls[0] == ["date", "051211372015.53"]
    assert system.host.calls[1:] == [["hwclock", "--test", "--systohc"], ["hwclock", "--systohc"]]
    system.host.calls.clear()
    system.host.absent = ("hwclock",)
    assert system.call("system.set_system_date_time", 2015, 5, 12, 11, 37, 53, "-0500") is True
    assert system.host.calls == [["date", "-u", "051216372015.53"]]
    system.call("system.set_system_time", "11:20:10 PM")
    assert system.host.calls[-1][1].endswith(".10")
    assert system.host.calls[-1][1][4:8] == "2320"
    system.call("system.set_system_date", "03-28-13")
    assert system.host.calls[-1][1][:4] == "0328"
    assert system.call("system.set_system_time", "noon") is False
    assert system.call("system.has_settable_hwclock") is False
    with pytest.raises(InvocationError, match="this date or time does not exist"):
        system.call("system.set_system_date_time", 2015, 2, 31)
    with pytest.raises(InvocationError, match="Invalid UTC offset"):
        system.call("system.get_system_time", "5")
    system.host.failing = ("date",)
    with pytest.raises(CommandError, match="date failed: bad"):
        system.call("system.set_system_date", "2013-03-28")
    datetime.strptime(system.call("system.get_system_date_time", "+0200"), "%Y-%m-%d %H:%M:%S")
    datetime.strptime(system.call("system.get_system_time"), "%I:%M:%S %p")
    datetime.strptime(system.call("system.get_system_date"), "%a %m/%d/%Y")


@pytest.mark.parametrize("text", ["plain", 'the "office"\'s', "a\tb\nc", "back\\slash \\n"])
def test_description(system, text):
    assert system.call("system.get_computer_desc") is False
    (system.root / "etc/machine-info").write_text("ICON_NAME=x\nPRETTY_HOSTNAME='old'\nCHASSIS=vm")
    assert system.call("system.get_computer_desc") == "old"
    assert system.call("system.set_computer_desc", text) is True
    assert system.call("system.get_computer_desc") == text
    lines = (system.root / "etc/machine-info").read_text().splitlines()
    assert (lines[0], lines[2:]) == ("ICON_NAME=x", ["CHASSIS=vm"])


def test_the_name(system):
    (system.root / "etc/hostname").write_text("old\n")
    assert system.call("system.get_computer_name") == "old"
    assert system.call("system.set_computer_name", "new") is True
    assert system.call("system.get_computer_name") == "new"

"""test, sys, config, match, event, slsutil: what needs nothing of the host."""

from __future__ import annotations

import pytest

from statecore.loader import Loader
from statecore.model.errors import CallFailed, CommandError, InvocationError

CALLS = [
    ("test.ping", (), {}, True),
    ("test.echo", ("x",), {}, "x"),
    ("test.true", (), {}, True),
    ("test.false", (), {}, False),
    ("test.arg", (1, "a"), {"k": 2}, {"args": (1, "a"), "kwargs": {"k": 2}}),
    ("test.arg_repr", (1, "a"), {}, {"args": "(1, 'a')", "kwargs": "{}"}),
    ("test.arg_type", (1,), {"k": "v"}, {"args": ["<class 'int'>"], "kwargs": {"k": "<class 'str'>"}}),
    ("test.arg_clean", (1,), {"k": 1, "__pub_jid": 2}, {"args": (1,), "kwargs": {"k": 1}}),
    ("test.kwarg", (), {"num": 1}, {"num": 1}),
    ("test.outputter", ({"a": 1},), {}, {"a": 1}),
    ("test.sleep", (0,), {}, True),
    ("test.cross_test", ("test.echo", ["x"]), {}, "x"),
    ("test.try", ("test.exception",), {}, None),
    ("test.try", ("test.echo",), {"text": "x"}, "x"),
    ("test.provider", ("grains",), {}, "grains"),
    ("test.provider", ("nosuch",), {}, ""),
    ("test.conf_test", (), {}, "unconfigured"),
    ("test.raise_exception", ("NoSuchThing",), {}, False),
    (
        "sys.list_functions",
        ("test.echo", "event.*"),
        {},
        ["event.fire", "event.fire_master", "event.send", "test.echo"],
    ),
    ("sys.list_modules", ("sl*", "sys"), {}, ["slsutil", "sys"]),
    ("sys.list_state_functions", ("test.no*",), {}, ["test.nop"]),
    ("sys.list_renderers", (), {}, ["jinja", "yaml"]),
    (
        "sys.argspec",
        ("test.fib",),
        {},
        {"test.fib": {"args": ["num"], "defaults": None, "varargs": None, "kwargs": None}},
    ),
    ("sys.reload_modules", (), {}, True),
    ("config.get", ("id",), {}, "web1"),
    ("config.get", ("os",), {}, "Debian"),
    ("config.get", ("a:b:c",), {}, [1, {"d": 2}]),
    ("config.get", ("nothing", 7), {}, 7),
    ("config.get", ("hosts.file",), {}, "/etc/hosts"),
    ("config.get", ("os",), {"omit_grains": True}, ""),
    ("config.option", ("key",), {}, "value"),
    ("config.option", ("key",), {"omit_pillar": True}, ""),
    ("config.option", ("*s.file",), {"wildcard": True}, {"hosts.file": "/etc/hosts", "aliases.file": "/etc/aliases"}),
    ("config.manage_mode", ("644",), {}, "0644"),
    ("config.manage_mode", (None,), {}, None),
    ("match.glob", ("web*",), {}, True),
    ("match.glob", ("db*",), {"minion_id": "db1"}, True),
    ("match.pcre", (r"web\d",), {}, True),
    ("match.list", ("a,web1",), {}, True),
    ("match.grain", ("os:Deb*",), {}, True),
    ("match.grain_pcre", ("os:^X",), {}, False),
    ("match.pillar", ("key:value",), {}, True),
    ("match.compound", ("web* and G@os:Debian",), {}, True),
    ("match.compound", ("not web*",), {}, False),
    ("match.filter_by", ({"db*": 1, "web*": 2},), {}, 2),
    ("match.filter_by", ({"db*": 1, "default": 3},), {}, 3),
    ("match.search_by", ({"web": ["web*"], "db": ["db*"], "all": ["*"]},), {}, ["web", "all"]),
    ("match.ifelse", ("db*", 1, "web*", 2, 3), {}, 2),
    ("match.ifelse", ("db*", 1, 3), {}, 3),
    ("slsutil.merge", ({"a": 1}, {"b": 2}), {}, {"a": 1, "b": 2}),
    ("slsutil.merge_all", ([{"a": 1}, {"a": 2}, {"b": 3}],), {}, {"a": 2, "b": 3}),
    ("slsutil.update", ({"a": {"x": 1}}, {"a": {"y": 2}}), {}, {"a": {"x": 1, "y": 2}}),
    ("slsutil.renderer", (), {"string": "a: {{ name }}", "name": "n"}, {"a": "n"}),
    ("slsutil.renderer", (), {"string": "#!json\n[1]"}, [1]),
    ("slsutil.serialize", ("json", {"a": 1}), {}, '{"a": 1}'),
    ("slsutil.serialize", ("yaml", {"a": 1}), {}, "{a: 1}"),
    ("slsutil.deserialize", ("yaml", "a: 1"), {}, {"a": 1}),
    ("slsutil.boolstr", ("yes",), {"true": "on", "false": "off"}, "on"),
    ("slsutil.file_exists", ("d/f.txt",), {}, True),
    ("slsutil.dir_exists", ("d",), {}, True),
    ("slsutil.path_exists", ("nothing",), {}, False),
    ("slsutil.findup", ("d/e", ["x", "f.txt"]), {}, "d/f.txt"),
    ("slsutil.renderer", ("salt://d/f.txt",), {}, "hello"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "value"), CALLS)
def test_calls(plain, name, args, kwargs, value):
    plain.write("d/f.txt", "hello")
    plain.write("d/e/g.txt", "")
    assert plain.call(name, *args, **kwargs) == value


@pytest.mark.parametrize(
    ("name", "args", "error", "words"),
    [
        ("test.fib", (-1,), InvocationError, "Negative number"),
        ("test.collatz", (0,), InvocationError, "above 0"),
        ("test.exception", ("Oh noes!",), Exception, "Oh noes!"),
        ("test.raise_exception", ("salt.exceptions.CommandExecutionError", "x"), CommandError, "x"),
        ("test.assertion", (False,), AssertionError, "not true"),
        ("test.random_hash", (10, "md99"), InvocationError, "md99"),
        ("match.compound", ("( web*",), CallFailed, "."),
        ("slsutil.serialize", ("xml", {}), CommandError, "Serializer 'xml' not found. There are configparser, json"),
        ("slsutil.renderer", (), InvocationError, "Must pass path or string"),
        ("slsutil.renderer", ("salt://nothing",), CommandError, "No file salt://nothing in environment 'base'"),
        ("slsutil.renderer", ("/nothing",), CommandError, "Cannot read /nothing"),
        ("slsutil.findup", ("", "x"), CommandError, "File pattern"),
        ("slsutil.findup", ("d", "x"), InvocationError, "Starting path not found in the state tree: d"),
    ],
)
def test_errors(plain, name, args, error, words):
    with pytest.raises(error, match=words):
        plain.call(name, *args)


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("match.compound", ("( web*",), False),
        ("match.grain", ("/no/such-thing",), False),
        ("match.ipcidr", ("x",), False),
        ("disk.percent", ("/no/mount",), {}),
        ("file.find", ("/", "delete"), 'error: invalid option "nmae"'),
    ],
)
def test_values_of_failed_calls_are_salts(plain, name, args, value):
    kwargs = {"nmae": 1} if name == "file.find" else {}
    with pytest.raises(CallFailed) as failed:
        plain.call(name, *args, **kwargs)
    assert str(failed.value.value)[:26] == str(value)[:26].replace('"', "'")


@pytest.mark.parametrize(("number", "value"), [(0, 0), (1, 1), (2, 1), (3, 2), (10, 55)])
def test_fibonacci(plain, number, value):
    assert plain.call("test.fib", number)[0] == value


def test_collatz(plain):
    assert plain.call("test.collatz", 6)[0] == [6, 3, 10, 5, 16, 8, 4, 2]


def test_retcode_is_left_for_the_job(plain):
    ctx = plain.context()
    assert ctx.call("test.retcode", 7) is True
    assert ctx.scratch["retcode"] == 7


def test_versions(plain):
    assert plain.call("test.version")
    assert "Dependency Versions:" in plain.call("test.versions")
    assert plain.call("test.versions_report") == plain.call("test.versions")


def test_providers_names_files(plain):
    assert plain.call("test.providers")["grains"] == "grains"


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        ("sys.doc", ("test.ping",)),
        ("sys.doc", ("nosuch",)),
        ("sys.argspec", ("test.arg*",)),
        ("sys.state_doc", ("file.managed", "test")),
        ("sys.list_functions", ("test", "grains.*")),
        ("test.provider", ("grains",)),
    ],
)
def test_a_question_about_one_module_loads_no_other(plain, monkeypatch, fun, args):
    expected = plain.call(fun, *args)

    def refuse(*_):
        raise AssertionError("all modules were loaded, which takes seconds")

    monkeypatch.setattr(Loader, "all", refuse)
    assert plain.call(fun, *args) == expected


def test_documentation(plain):
    assert plain.call("sys.doc", "test.ping")["test.ping"].startswith("Return True, which shows that the minion runs")
    assert set(plain.call("sys.doc", "event")) == {"event.fire", "event.fire_master", "event.send"}
    assert plain.call("sys.doc", "no.such") == {}
    assert set(plain.call("sys.state_doc", "test.nop")) == {"test", "test.nop"}
    assert set(plain.call("sys.state_argspec", "test.nop")) == {"test.nop"}
    everything = plain.call("sys.doc")
    assert all(everything.values()), [name for name, doc in everything.items() if not doc]


def test_configuration_merged(plain):
    plain.pillar["schedule"] = {"a": 1, "b": 2}
    plain.opts["schedule"] = {"b": 3}
    assert plain.call("config.merge", "schedule") == {"a": 1, "b": 3}
    assert plain.call("config.get", "schedule", merge="recurse") == {"a": 1, "b": 3}
    assert plain.call("config.get", "schedule", merge="overwrite") == {"b": 3}


def test_events(plain):
    assert plain.call("event.send", "my/tag", {"a": 1}, with_grains=["os"], b=2, __pub_jid="1") is True
    assert plain.call("event.fire_master", {"c": 3}, "other") is True
    assert plain.ports.asked == [("my/tag", {"a": 1, "grains": {"os": "Debian"}, "b": 2}), ("other", {"c": 3})]

"""The verbs of the state module: what they ask the state system, and what they make of its answers."""

from __future__ import annotations

import pytest

from statecore.model.errors import CommandError, InvocationError


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "asked"),
    [
        ("apply", (), {}, ("highstate", {"test": False})),
        ("apply", ("web",), {"test": True}, ("sls", ["web"], {"test": True})),
        ("apply", (["web", "db"],), {}, ("sls", ["web", "db"], {"test": False})),
        (
            "sls",
            ("core, edit.vim",),
            {"saltenv": "dev"},
            ("sls", ["core", "edit.vim"], {"saltenv": "dev", "test": False}),
        ),
        ("sls", (7,), {}, ("sls", ["7"], {"test": False})),
        ("sls", ("a",), {"pillar": {"k": 1}}, ("sls", ["a"], {"pillar": {"k": 1}, "test": False})),
        ("sls", ("a",), {"exclude": "b"}, ("sls", ["a"], {"exclude": ["b"], "test": False})),
        ("sls", ("a",), {"__pub_jid": "1"}, ("sls", ["a"], {"test": False})),
        ("highstate", (), {"whitelist": "a"}, ("highstate", {"whitelist": ["a"], "test": False})),
        ("test", ("a",), {}, ("sls", ["a"], {"test": True})),
        ("high", ({"vim": {"test": ["nop"]}},), {}, ("high", {"vim": {"test": ["nop"]}}, {"test": False})),
        ("low", ({"state": "test"},), {}, ("low", {"state": "test"}, {"test": False})),
        (
            "single",
            ("test.nop", "n"),
            {"x": 1, "test": True},
            (
                "low",
                {"x": 1, "state": "test", "fun": "nop", "name": "n", "__id__": "n"},
                {"test": True, "tagged": True},
            ),
        ),
        ("sls_id", ("vim", "a"), {}, ("sls", ["a"], {"test": False, "only_id": "vim"})),
        ("top", ("other.sls",), {}, ("highstate", {"test": False, "state_top": "other.sls"})),
        ("show_top", (), {}, ("show_top", {"test": False})),
        ("show_highstate", (), {}, ("show_high", None, {"test": False})),
        ("show_sls", ("a",), {}, ("show_high", ["a"], {"test": False, "verify": True})),
        ("template", ("/srv/a",), {"test": True}, ("template", "/srv/a", {"test": True})),
        ("template_str", ("a: test.nop",), {}, ("template_str", "a: test.nop", {"test": False})),
        ("show_state_usage", (), {}, ("show_usage", {"test": False})),
        ("clear_cache", (), {}, ("clear_cache",)),
        ("sls", ("a",), {"pillarenv": None}, ("sls", ["a"], {"pillarenv": None, "test": False})),
        ("sls", ("a",), {"state_events": True}, ("sls", ["a"], {"state_events": True, "test": False})),
        (
            "sls",
            ("a",),
            {"failhard": True, "force": True},
            ("sls", ["a"], {"failhard": True, "force": True, "test": False}),
        ),
        (
            "sls",
            ("a",),
            {"cache": True, "cache_name": "mine"},
            ("sls", ["a"], {"cache": True, "cache_name": "mine", "test": False}),
        ),
        ("sls", ("a",), {"localconfig": "/x.yml"}, ("sls", ["a"], {"localconfig": "/x.yml"})),
        ("highstate", (), {"exclude": {"id": "x"}}, ("highstate", {"exclude": [{"id": "x"}], "test": False})),
        ("highstate", (), {"orchestration_jid": "1", "__pub_fun": "x"}, ("highstate", {"test": False})),
        ("show_lowstate", (), {}, ("show_low", None, {"test": False})),
        ("show_low_sls", ("a,b",), {}, ("show_low", ["a", "b"], {"test": False})),
    ],
)
def test_verbs(plain, name, args, kwargs, asked):
    plain.call(f"state.{name}", *args, **kwargs)
    assert plain.ports.asked == [asked]


def test_test_mode_of_the_configuration(plain):
    plain.opts["test"] = True
    plain.call("state.apply", "a")
    plain.call("state.apply", "a", test=False)
    assert [asked[2]["test"] for asked in plain.ports.asked] == [True, False]


def test_pillar_must_be_a_map(plain):
    with pytest.raises(InvocationError, match="Pillar data must be formatted as a dictionary"):
        plain.call("state.apply", "a", pillar="x")


def test_terse_shows_what_failed_or_changed(plain):
    plain.ports.answer = {
        "a": {"result": True, "changes": {}},
        "b": {"result": False, "changes": {}},
        "c": {"result": True, "changes": {"x": 1}},
    }
    assert list(plain.call("state.apply", "a", terse=True)) == ["b", "c"]


def test_errors_of_showing_give_an_exit_code(plain):
    plain.ports.answer = ["broken"]
    ctx = plain.context()
    assert ctx.call("state.show_sls", "a") == ["broken"]
    assert ctx.scratch["retcode"] == 1
    assert plain.call("state.sls_exists", "a") is False
    assert plain.call("state.show_lowstate") == ["broken"]
    assert plain.call("state.show_states") == ["broken"]


def test_existence(plain):
    plain.ports.answer = {"vim": {}, "git": {}}
    assert plain.call("state.sls_exists", "a") is True
    plain.ports.answer = [{"__id__": "vim"}, {"__id__": "git"}]
    assert plain.call("state.id_exists", "vim,git", "a") is True
    assert plain.call("state.id_exists", ["vim", "x"], "a") is False
    plain.ports.answer = ["broken"]
    assert plain.call("state.id_exists", "vim", "a") is False


def test_states_in_order(plain):
    plain.ports.answer = [{"__sls__": "b"}, {"__sls__": "a"}, {"__sls__": "b"}]
    assert plain.call("state.show_states") == ["b", "a"]


def test_a_single_without_a_function(plain):
    ctx = plain.context()
    assert ctx.call("state.single", "test", "n") == "Invalid function passed"
    assert ctx.scratch["retcode"] == 1


@pytest.mark.parametrize(
    ("function", "own"),
    [("file.copy", {"force": True}), ("file.managed", {}), ("test.nop", {}), ("absent.absent", {})],
)
def test_options_of_the_run_that_the_state_takes_too(plain, function, own):
    plain.call("state.single", function, "/n", force=True, pillar={}, __pub_jid="1")
    (((_, chunk, options),)) = plain.ports.asked
    assert {key: value for key, value in chunk.items() if key not in ("state", "fun", "name", "__id__")} == own
    assert options["force"] is True


@pytest.mark.parametrize("name", ["pkg", "orchestrate", "event"])
def test_what_is_elsewhere_says_so(plain, name):
    with pytest.raises(CommandError, match=f"state.{name} is not available"):
        plain.call(f"state.{name}", "x")


@pytest.mark.parametrize(
    ("kinds", "fetched"),
    [
        (None, []),
        (False, []),
        (True, ["all"]),
        ("states, modules", ["states", "modules"]),
        (["states", "all"], ["all"]),
        ("nonsense", []),
    ],
)
def test_modules_are_fetched_first(plain, kinds, fetched):
    plain.write("_modules/a.py", "def f():\n    return 1\n")
    plain.write("_states/b.py", "def f():\n    return 1\n")
    plain.call("state.apply", "a", sync_mods=kinds)
    assert len([asked for asked in plain.ports.asked if asked[0] == "sls"]) == 1
    here = sorted(path.parent.name for path in plain.extension_dir.rglob("*.py"))
    assert here == {"all": ["modules", "states"]}.get("".join(fetched), sorted(fetched))


def test_the_saltenv_may_be_locked(plain):
    plain.opts |= {"lock_saltenv": True, "saltenv": "dev"}
    plain.call("state.apply", "a", saltenv="dev")
    with pytest.raises(CommandError, match="lock_saltenv is enabled, saltenv cannot be changed"):
        plain.call("state.apply", "a", saltenv="base")


def test_the_pillarenv_may_follow_the_saltenv(plain):
    plain.opts["pillarenv_from_saltenv"] = True
    plain.call("state.apply", "a", saltenv="dev")
    plain.call("state.apply", "a", saltenv="dev", pillarenv="qa")
    plain.call("state.apply", "a")
    assert [asked[2].get("pillarenv", "-") for asked in plain.ports.asked] == ["dev", "qa", "-"]


def test_test_mode_of_the_pillar(plain):
    plain.pillar["test"] = True
    plain.call("state.apply", "a")
    plain.call("state.apply", "a", test=False)
    assert [asked[2]["test"] for asked in plain.ports.asked] == [True, False]

"""Runs as one process makes them: what they keep, what they are configured with, what they tell of themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.calls import Returned
from statecore.runtime.runtime import Runtime, local_runtime
from statecore.runtime.state_runs import pauses

JID = "20260102030405678901"


class Jobs:
    """This process runs a job."""

    def running(self) -> list[dict[str, Any]]:
        return [{"jid": JID, "fun": "state.apply", "pid": os.getpid()}]

    def signal(self, jid: str, number: int) -> str:
        return ""


class Minion:
    """A tree, a pillar, and a runtime over them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache = directory / "cache"
        self.opts: dict[str, Any] = {
            "id": "web1",
            "grains": {"os": "Debian"},
            "cachedir": str(self.cache),
            "file_roots": {"base": [str(directory / "base")]},
            "pillar_roots": {"base": [str(directory / "pillar")]},
        }
        self.events: list[tuple[str, Any]] = []

    def write(self, path: str, text: str) -> Path:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def runtime(self) -> Runtime:
        runtime = local_runtime(self.opts, grains={"id": "web1", **self.opts["grains"]}, jobs=Jobs())
        runtime.contexts._events = self
        return runtime

    def fire(self, tag: str, data: Any) -> bool:
        self.events.append((tag, data))
        return True

    def call(self, fun: str, *args: Any, **kwargs: Any) -> Returned:
        return self.runtime().call(f"state.{fun}", args, kwargs)


@pytest.fixture
def minion(tmp_path: Path) -> Minion:
    minion = Minion(tmp_path)
    minion.write("base/top.sls", "base:\n  '*':\n    - web\n")
    minion.write("base/web.sls", "{{ pillar.get('name', 'one') }}:\n  test.succeed_with_changes: []\n")
    return minion


def ids(returned: Returned) -> dict[str, Any]:
    assert isinstance(returned.value, dict), returned.value
    return {entry["__id__"]: entry["result"] for entry in returned.value.values()}


# ------------------------------------------------------------------------------------------------------------- high data kept


def test_a_run_from_the_cache_renders_nothing(minion):
    assert ids(minion.call("highstate")) == {"one": True}
    minion.write("base/web.sls", "two:\n  test.nop: []\n")
    assert ids(minion.call("highstate", cache=True)) == {"one": True}
    assert ids(minion.call("apply", "web", cache=True)) == {"one": True}
    assert ids(minion.call("highstate")) == {"two": True}
    assert (minion.cache / "highstate.cache.p").stat().st_mode & 0o777 == 0o600


def test_caches_have_names(minion):
    minion.call("apply", "web", cache_name="mine")
    minion.write("base/web.sls", "two:\n  test.nop: []\n")
    assert ids(minion.call("apply", "web", cache=True)) == {"two": True}
    assert ids(minion.call("apply", "web", cache=True, cache_name="mine")) == {"one": True}
    assert minion.call("clear_cache").value == ["highstate.cache.p", "mine.cache.p"]
    assert minion.call("clear_cache").value == []
    assert "must be a plain name" in minion.call("apply", "web", cache_name="../x").value


def test_a_cached_run_keeps_extend_and_exclude(minion):
    minion.write(
        "base/web.sls",
        "include: [common]\nextend:\n  common:\n    test:\n      - result: False\nexclude:\n  - id: gone\nweb:\n  test.nop: []\n",
    )
    common = "configurable_test_state"
    minion.write(
        "base/common.sls",
        f"common:\n  test.{common}:\n    - result: True\n    - changes: False\ngone:\n  test.nop: []\n",
    )
    first = minion.call("apply", "web")
    assert ids(first) == {"common": False, "web": True}
    minion.write("base/web.sls", "")
    again = minion.call("apply", "web", cache=True)
    assert ids(again) == ids(first)
    assert again.retcode == first.retcode == 2


def test_a_damaged_cache_is_named(minion):
    minion.cache.mkdir()
    (minion.cache / "highstate.cache.p").write_bytes(b"\xc1")
    returned = minion.call("highstate", cache=True)
    assert "highstate.cache.p is damaged" in returned.value
    assert returned.retcode == 1
    assert ids(minion.call("highstate")) == {"one": True}


def test_a_run_needs_no_cache(minion):
    minion.opts["cachedir"] = str(minion.write("file", "") / "cache")
    assert ids(minion.call("highstate")) == {"one": True}


# ---------------------------------------------------------------------------------------------------------------- localconfig


def test_localconfig_goes_over_the_options(minion):
    minion.write(
        "other/web.sls", "other {{ opts.id }} {{ grains.os }} {{ pillar.key }}:\n  test.succeed_with_changes: []\n"
    )
    minion.write("secrets/top.sls", "base:\n  '*':\n    - p\n")
    minion.write("secrets/p.sls", "key: value\n")
    roots = f"file_roots: {{base: [{minion.directory}/other]}}\npillar_roots: {{base: [{minion.directory}/secrets]}}\n"
    config = minion.write("mine.yml", f"{roots}test: True\n")
    assert ids(minion.call("apply", "web", localconfig=str(config))) == {"other web1 Debian value": None}
    assert list(ids(minion.call("apply", "web", localconfig=str(config), test=False)).values()) == [True]
    assert ids(minion.call("apply", "web")) == {"one": True}
    assert list(minion.call("show_sls", "web", localconfig=str(config)).value) == ["other web1 Debian value"]
    failing = minion.call("apply", "absent", localconfig=str(config))
    assert failing.retcode == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        ("- a\n", "must hold values by name, not a list"),
        ("a: b: c\n", "mine.yml:1: mapping values are not allowed"),
        ("a: \udcff\n", "is not UTF-8 text"),
        ("jinja_sls_env: 5\n", "mine.yml: 'jinja_sls_env' must be a map, not the int 5"),
    ],
)
def test_a_localconfig_that_cannot_be_used(minion, text, says):
    place = minion.directory / "mine.yml"
    if text is not None:
        place.write_bytes(text.encode("utf-8", "surrogateescape"))
    returned = minion.call("apply", "web", localconfig=str(place))
    assert says in returned.value
    assert returned.retcode == 1


def test_an_empty_localconfig_changes_nothing(minion):
    assert ids(minion.call("apply", "web", localconfig=str(minion.write("mine.yml", "")))) == {"one": True}


# --------------------------------------------------------------------------------------------------- what a run is called with


def test_a_pillarenv_of_none_means_all(minion):
    minion.opts["pillar_roots"]["dev"] = [str(minion.directory / "pillar_dev")]
    minion.opts["pillarenv"] = "base"
    minion.write("pillar/top.sls", "base:\n  '*':\n    - p\n")
    minion.write("pillar/p.sls", "other: 1\n")
    minion.write("pillar_dev/top.sls", "dev:\n  '*':\n    - d\n")
    minion.write("pillar_dev/d.sls", "name: dev\n")
    assert ids(minion.call("apply", "web")) == {"one": True}
    assert ids(minion.call("apply", "web", pillarenv=None)) == {"dev": True}
    assert ids(minion.call("apply", "web", pillarenv="dev")) == {"dev": True}


def test_failhard_of_the_call(minion):
    minion.write("base/web.sls", "one:\n  test.fail_without_changes: []\ntwo:\n  test.nop: []\n")
    assert ids(minion.call("apply", "web", failhard=True)) == {"one": False}
    assert ids(minion.call("apply", "web")) == {"one": False, "two": True}


@pytest.mark.parametrize("configured", [True, False])
def test_events_of_a_run(minion, configured):
    minion.write("base/web.sls", "one:\n  test.nop: []\ntwo:\n  test.nop: []\n")
    minion.opts["state_events"] = configured
    minion.call("apply", "web")
    minion.call("apply", "web", state_events=not configured)
    tags = [f"salt/job/{JID}/prog/web1/{number}" for number in (0, 1)]
    assert [tag for tag, _ in minion.events] == tags
    assert minion.events[0][1]["len"] == 2
    assert minion.events[0][1]["ret"]["__id__"] == "one"


def test_a_switched_off_function_is_told_and_fails_the_run(minion):
    minion.opts["grains"]["state_runs_disabled"] = ["test.succeed*"]
    minion.write("base/web.sls", "one:\n  test.succeed_with_changes: []\ntwo:\n  test.nop: []\n")
    returned = minion.call("apply", "web")
    assert ids(returned) == {"two": True, "one": False}
    left_out = returned.value["test_|-one_|-one_|-succeed_with_changes"]
    assert left_out["comment"] == (
        'The state function "test.succeed_with_changes" is currently disabled by "test.succeed*", '
        "to re-enable, run state.enable test.succeed*."
    )
    assert sorted(entry["__run_num__"] for entry in returned.value.values()) == [0, 1]
    assert returned.retcode == 2


def test_a_template_that_was_read_already(minion):
    returned = minion.call("template_str", {"a": "test.nop", "{{ b }}": {"test": ["nop"]}})
    assert ids(returned) == {"a": True, "{{ b }}": True}


def test_a_template_may_include_what_is_in_the_tree(minion):
    local = minion.write("elsewhere/local.sls", "include:\n  - web\nlocal {{ saltenv }}:\n  test.nop: []\n")
    assert ids(minion.call("template", str(local))) == {"one": True, "local base": True}


def test_a_template_that_cannot_be_read(minion):
    (minion.directory / "dir.sls").mkdir()
    returned = minion.call("template", str(minion.directory / "dir"))
    assert returned.value[0].startswith(
        f"Specified SLS {minion.directory}/dir.sls on local filesystem cannot be found."
    )
    assert returned.retcode == 1


def test_an_id_that_is_near(minion):
    returned = minion.call("sls_id", "on", "web")
    assert returned.value.endswith(
        "No matches for ID 'on' found in SLS 'web' within saltenv 'base'. Did you mean 'one'?"
    )
    assert returned.retcode == 1


def test_one_id_and_low_data_are_those_of_the_whole_run(minion):
    minion.write(
        "base/web.sls",
        "include: [common]\nextend:\n  common:\n    test:\n      - changes: True\nexclude:\n  - id: gone\n"
        "web:\n  test.nop:\n    - require_in:\n      - test: common\n",
    )
    minion.write(
        "base/common.sls",
        "common:\n  test.configurable_test_state:\n    - result: True\n    - changes: False\ngone:\n  test.nop: []\n",
    )
    low = {chunk["__id__"]: chunk for chunk in minion.call("show_low_sls", "web").value}
    assert list(low) == ["web", "common"]
    assert (low["common"]["changes"], low["common"]["require"]) == (True, [{"test": "web"}])
    done = minion.call("sls_id", "common", "web")
    assert ids(done) == {"web": True, "common": True}
    assert done.value["test_|-common_|-common_|-configurable_test_state"]["changes"]
    assert "No matches for ID 'gone'" in minion.call("sls_id", "gone", "web").value


@pytest.mark.parametrize(
    "function", ["show_sls", "show_low_sls", "show_top", "show_highstate", "show_lowstate", "show_states"]
)
def test_pillar_errors_are_shown_as_a_run_shows_them(minion, function):
    minion.write("pillar/top.sls", "base:\n  '*':\n    - absent\n")
    returned = minion.call(function, *(["web"] if "sls" in function else []))
    assert returned.value[0] == "Pillar failed to render with the following messages:"
    assert returned.retcode == 5


def test_what_a_low_chunk_returns(minion):
    done = minion.call("low", {"state": "test", "fun": "nop", "name": "n"})
    assert (done.value["result"], done.value["__id__"], done.retcode) == (True, "n", 0)
    failing = minion.call("low", {"state": "test", "fun": "fail_without_changes", "name": "n"})
    assert (failing.value["result"], failing.retcode) == (False, 2)
    tested = minion.call("low", {"state": "test", "fun": "succeed_with_changes", "name": "n"}, test=True)
    assert tested.value["result"] is None


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("low", ({"state": "cmd", "fun": "run", "name": "touch {made}"},)),
        ("single", ("cmd.run", "touch {made}")),
        ("high", ({"a": {"cmd": ["run", {"name": "touch {made}"}, {"check_cmd": ["false"]}]}},)),
        ("template_str", ("a:\n  cmd.run:\n    - name: touch {made}\n",)),
        ("apply", ("web",)),
        ("sls_id", ("a", "web")),
    ],
)
def test_what_is_mocked_is_not_called(minion, function, args):
    made = minion.directory / "made"
    minion.write("base/web.sls", f"a:\n  cmd.run:\n    - name: touch {made}\n")
    placed = json.loads(json.dumps(args).replace("{made}", str(made)))
    returned = minion.call(function, *placed, mock=True)
    told = returned.value if function == "low" else next(iter(returned.value.values()))
    assert told["comment"] == "Not called, mocked"
    assert not made.exists()


# -------------------------------------------------------------------------------------------------------- a run that is told to


def _told(minion: Minion, orders: pauses.Orders) -> Callable[[], Path]:
    place = pauses.directory(minion.cache)
    pauses.give(place, JID, orders)
    return lambda: place / JID


@pytest.mark.parametrize(
    ("orders", "left"),
    [
        ({"two": {"kill": True}}, {"one": True}),
        ({"__all__": {"kill": True}}, {}),
        ({"other": {"kill": True}}, {"one": True, "two": True, "three": True}),
        ({"two": {"duration": 0.01}}, {"one": True, "two": True, "three": True}),
    ],
)
def test_a_run_is_ended_before_a_state(minion, orders, left):
    minion.write("base/web.sls", "one:\n  test.nop: []\ntwo:\n  test.nop: []\nthree:\n  test.nop: []\n")
    place = _told(minion, orders)
    returned = minion.call("apply", "web")
    assert ids(returned) == left
    assert returned.retcode == (0 if left else 2)
    assert not place().exists()


def test_states_that_run_beside_are_waited_for(minion):
    minion.write(
        "base/web.sls",
        "one:\n  test.succeed_with_changes:\n    - parallel: True\ntwo:\n  test.nop: []\nthree:\n  test.nop: []\n",
    )
    _told(minion, {"two": {"kill": True}})
    assert ids(minion.call("apply", "web")) == {"one": True}


def test_listeners_of_a_run_that_was_ended(minion):
    minion.write(
        "base/web.sls",
        "one:\n  test.succeed_with_changes: []\ntwo:\n  test.mod_watch:\n    - listen:\n      - test: one\n",
    )
    _told(minion, {"two": {"kill": True}})
    returned = minion.call("apply", "web")
    assert ids(returned)["one"] is True

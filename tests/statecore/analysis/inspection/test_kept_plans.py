"""``state.plan keep=True`` and ``state.apply_plan``: what was shown is applied, or nothing."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecore.analysis.inspection.kept_plans import MOST

from .conftest import MakeMinion, Minion

TREE = {
    "top.sls": "base:\n  '*': [web]\n",
    "web.sls": "motd: {file.managed: [{name: /etc/motd}, {contents: {{ pillar.get('text', 'hello') }}}]}\nsame: test.nop\n",
    "stop.sls": "stop: {test.fail_with_changes: []}\n",
}


def kept(minion: Minion, *args: Any, **kwargs: Any) -> str:
    returned = minion.runtime().call("state.plan", list(args), {"keep": True} | kwargs)
    assert isinstance(returned.value, dict), returned.value
    return str(returned.value["plan"])


@pytest.mark.parametrize("sls", [["web"], []], ids=["SLS", "highstate"])
def test_a_plan_is_applied_once(minion: MakeMinion, sls: list[str]) -> None:
    one = minion(TREE)
    plan = kept(one, *sls)
    (path,) = (one.directory / "cache" / "plans").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    returned = one.runtime().call("state.apply_plan", [plan])
    assert returned.retcode == 0, returned.value
    assert (one.host / "etc" / "motd").read_text() == "hello\n"
    assert [entry["result"] for entry in returned.value.values()] == [True, True]
    again = one.runtime().call("state.apply_plan", [plan])
    assert again.retcode == 1
    assert f"there is no plan {plan}" in str(again.value)


def test_the_id_may_be_chosen(minion: MakeMinion) -> None:
    one = minion(TREE)
    assert kept(one, "web", keep="c0ffee") == "c0ffee"
    assert one.runtime().call("state.apply_plan", ["c0ffee"]).retcode == 0
    wrong = one.runtime().call("state.plan", ["web"], {"keep": "../x"})
    assert wrong.retcode == 1
    assert "no id of a plan" in str(wrong.value)


def test_the_pillar_of_the_plan_is_used(minion: MakeMinion) -> None:
    one = minion(TREE)
    plan = kept(one, "web", pillar={"text": "you"})
    assert one.runtime().call("state.apply_plan", [plan]).retcode == 0
    assert (one.host / "etc" / "motd").read_text() == "you\n"


def _other_tree(one: Minion) -> None:
    one.write({"web.sls": TREE["web.sls"].replace("hello", "bye")})


def _other_host(one: Minion) -> None:
    (one.host / "etc" / "motd").write_text("somebody was here\n")


def _other_pillar(one: Minion) -> None:
    one.pillar = {"text": "other"}


@pytest.mark.parametrize("change", [_other_tree, _other_host, _other_pillar])
def test_a_plan_that_no_longer_holds_changes_nothing(minion: MakeMinion, change: Callable[[Minion], None]) -> None:
    one = minion(TREE)
    plan = kept(one, "web")
    change(one)
    before = {path: path.read_text() for path in (one.host / "etc").iterdir()}
    returned = one.runtime().call("state.apply_plan", [plan])
    assert returned.retcode == 1
    assert returned.value[0] == f"Nothing was done: this is no longer what the plan {plan} was made of"
    assert "/etc/motd" in returned.value[1]
    assert {path: path.read_text() for path in (one.host / "etc").iterdir()} == before


def test_a_failed_state_is_the_exit_code(minion: MakeMinion) -> None:
    one = minion(TREE)
    plan = kept(one, "stop")
    assert one.runtime().call("state.apply_plan", [plan]).retcode == 2


def test_the_newest_plans_are_kept(minion: MakeMinion) -> None:
    one = minion(TREE)
    plans = [kept(one, "web") for _ in range(MOST + 2)]
    directory = one.directory / "cache" / "plans"
    assert {path.stem for path in directory.iterdir()} == set(plans[2:])


@pytest.mark.parametrize("name", ["../../etc/passwd", "", ".x", "a/b", "nosuch"])
def test_other_names_are_refused(minion: MakeMinion, name: str) -> None:
    returned = minion(TREE).runtime().call("state.apply_plan", [name])
    assert returned.retcode == 1
    assert "plan" in str(returned.value)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"kind": "statecore plan", "version": 1, "salt": "zz", "run": {}, "states": []}'], ids=str
)
def test_a_damaged_plan_is_an_error(minion: MakeMinion, text: str) -> None:
    one = minion(TREE)
    path: Path = one.directory / "cache" / "plans" / f"{kept(one, 'web')}.json"
    path.write_text(text)
    returned = one.runtime().call("state.apply_plan", [path.stem])
    assert returned.retcode == 1
    assert str(path) in str(returned.value)

"""Whom a job is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltern.mworker.targets import resolve
from statecore.model.errors import TargetError

pytestmark = pytest.mark.redis

Worker = Any


@pytest.fixture
def fleet(new_worker: Callable[..., Worker]) -> Worker:
    worker = new_worker(nodegroups={"web": "web*", "debian": "G@os:Debian"})
    worker.accept("db1", "web1", "web2")
    worker.store.minion_keys.store("web9", worker.keys[0].public.pem, "pending")
    worker.store.cache.set_grains("web1", {"id": "web1", "os": "Debian", "roles": ["front"], "ip_interfaces": {}})
    worker.store.cache.set_grains("db1", {"id": "db1", "os": "RedHat", "a": {"b": "c"}})
    worker.context.keep_pillar("db1", {"tier": "gold"})
    return worker


@pytest.mark.parametrize(
    ("tgt", "tgt_type", "minions"),
    [
        ("*", "glob", ("db1", "web1", "web2")),
        ("web*", "glob", ("web1", "web2")),
        ("web9", "glob", ()),
        ("nobody", "glob", ()),
        ("web[12]", "pcre", ("web1", "web2")),
        ("os:Debian", "grain", ("web1",)),
        ("os:*", "grain", ("db1", "web1")),
        ("roles:front", "grain", ("web1",)),
        ("a:b:c", "grain", ("db1",)),
        ("os:Red.*", "grain_pcre", ("db1",)),
        ("tier:gold", "pillar", ("db1",)),
        ("web", "nodegroup", ("web1", "web2")),
        ("debian", "nodegroup", ("web1",)),
        ("web* and not G@os:Debian", "compound", ("web2",)),
        ("I@tier:gold or web2", "compound", ("db1", "web2")),
        ("not L@web1,db1", "compound", ("web2",)),
    ],
)
def test_who_matches(fleet: Worker, tgt: Any, tgt_type: str, minions: tuple[str, ...]) -> None:
    found = resolve(fleet.context, tgt, tgt_type)
    assert tuple(sorted(found.minions)) == minions
    assert found.missing == ()


@pytest.mark.parametrize(
    ("tgt", "minions", "missing"),
    [
        ("web1,db1", ("web1", "db1"), ()),
        (["web2", "web1", "web2"], ("web2", "web1"), ()),
        ("web1, ghost,", ("web1",), ("ghost",)),
        (["web9"], (), ("web9",)),
        ([], (), ()),
        ("", (), ()),
        ([1], (), ("1",)),
    ],
)
def test_lists_name_who_is_missing(fleet: Worker, tgt: Any, minions: tuple[str, ...], missing: tuple[str, ...]) -> None:
    found = resolve(fleet.context, tgt, "list")
    assert (found.minions, found.missing) == (minions, missing)


@pytest.mark.parametrize(
    ("tgt", "tgt_type"),
    [
        ("*", "nonsense"),
        (5, "list"),
        (None, "list"),
        ({"a": 1}, "list"),
        (None, "glob"),
        (["a"], "glob"),
        ("(", "pcre"),
        ("a and (", "compound"),
        ("missing", "nodegroup"),
    ],
)
def test_what_is_no_target(fleet: Worker, tgt: Any, tgt_type: str) -> None:
    with pytest.raises(TargetError):
        resolve(fleet.context, tgt, tgt_type)


@pytest.mark.parametrize(("tgt", "tgt_type"), [("tier:gold", "pillar"), ("I@tier:gold", "compound")])
def test_minions_learn_nothing_about_others_pillars(fleet: Worker, tgt: str, tgt_type: str) -> None:
    assert resolve(fleet.context, tgt, tgt_type, peer=True, pillar_of=()).minions == ()


def test_another_delimiter(fleet: Worker) -> None:
    assert resolve(fleet.context, "a|b|c", "grain", "|").minions == ("db1",)

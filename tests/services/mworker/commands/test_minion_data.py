"""``minions.import_data`` and ``export_data``: what another master knew of its minions, stored as if they had told it here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from masterstore.keys import AUDIT
from saltwire.pack import packb, unpackb

pytestmark = pytest.mark.redis

Worker = Any

PARTS = {
    "grains": {"os": "Debian"},
    "pillar": {"owner": "ann", "pin": "s3cret-pin"},
    "mine": {"test.ping": True, "x.y": 1},
}


@pytest.fixture
def worker(new_worker: Callable[..., Worker], tmp_path: Path) -> Worker:
    made = new_worker()
    for name in ("web1", "web2"):
        made.store.minion_keys.store(name, made.keys[0].public.pem, "accepted")
    return made


def bring(worker: Worker, data: dict[str, Any], **more: Any) -> Any:
    return worker.control(
        "wheel", fun="minions.import_data", kwarg={"data": {name: packb(one) for name, one in data.items()}, **more}
    )


def test_targets_and_the_mine_know_the_minion_at_once(worker: Worker, redis_url: str) -> None:
    answer = bring(worker, {"web1": PARTS})
    assert answer == {"stored": {"web1": ["grains", "pillar", "mine"]}, "refused": {}, "pillar_errors": {}}
    for tgt, kind in (("os:Debian", "grain"), ("owner:ann", "pillar")):
        assert worker.control("targets", tgt=tgt, tgt_type=kind)["minions"] == ["web1"]
    assert worker.store.cache.mine_get(["web1"], "test.ping") == {"web1": True}
    given = worker.control("wheel", fun="minions.export_data", kwarg={"match": ["web1", "web2"]})
    assert {name: unpackb(packed) for name, packed in given.items()} == {
        "web1": {**PARTS, "grains": {"os": "Debian", "id": "web1"}}
    }
    # Events are read by many, and the audit record is kept for long.
    assert "s3cret-pin" not in str(worker.events)
    recorded = redis.Redis.from_url(redis_url).xrange(AUDIT)
    assert b"minions.import_data" in str(recorded).encode()
    assert "s3cret-pin" not in str(recorded)
    assert [tag for tag, _ in worker.events if tag.startswith("minion/refresh")] == ["minion/refresh/web1"]


def test_what_the_minion_said_itself_is_newer(worker: Worker) -> None:
    worker.store.cache.set_grains("web1", {"os": "Alpine"})
    worker.store.cache.mine_set("web1", {"test.ping": "new"})
    worker.context.keep_pillar("web1", {"owner": "bob"})
    assert bring(worker, {"web1": PARTS})["stored"] == {"web1": ["mine"]}
    assert worker.store.cache.grains("web1") == {"os": "Alpine"}
    assert worker.store.cache.mine_of("web1") == {"test.ping": "new", "x.y": 1}
    assert worker.context.pillars()["web1"] == {"owner": "bob"}
    # A second time changes nothing; --replace does.
    assert bring(worker, {"web1": PARTS})["stored"] == {"web1": []}
    assert bring(worker, {"web1": PARTS}, replace=True)["stored"] == {"web1": ["grains", "pillar", "mine"]}
    assert worker.store.cache.mine_of("web1") == PARTS["mine"]


def test_a_minion_without_pillar_gets_the_one_of_this_master(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "pillar" / "top.sls").write_text("base: {'G@os:Debian': [a], 'G@os:Alpine': [bad]}\n")
    (tmp_path / "pillar" / "a.sls").write_text("owner: {{ grains['id'] }}\n")
    (tmp_path / "pillar" / "bad.sls").write_text("owner: {{ nothing.at.all }}\n")
    answer = bring(worker, {"web1": {"grains": {"os": "Debian"}}, "web2": {"grains": {"os": "Alpine"}}})
    assert answer["stored"] == {"web1": ["grains", "pillar"], "web2": ["grains"]}
    assert "bad" in answer["pillar_errors"]["web2"]
    assert worker.control("targets", tgt="owner:web1", tgt_type="pillar")["minions"] == ["web1"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"other": packb(PARTS)}, "its key is not accepted here: import the keys first"),
        ({"web1": b"\xc1"}, "not msgpack"),
        ({"web1": 5}, "the data must be packed bytes of a map"),
        ({"web1": packb([1])}, "the data must be packed bytes of a map"),
        ({"web1": packb({"grains": 1, "keys": {}})}, "grains, keys: only grains, pillar, mine are stored"),
        ({"web1": packb({"grains": {"x": "y" * 5_000_000}})}, "grains of 5000"),
        ({"web1": packb({"mine": {"x": "y" * 9_000_000}})}, "a mine of 9000"),
    ],
)
def test_what_is_refused(worker: Worker, data: Any, why: str) -> None:
    answer = worker.control("wheel", fun="minions.import_data", kwarg={"data": data})
    assert answer["stored"] == {}
    (said,) = answer["refused"].values()
    assert said.startswith(why)
    assert worker.store.cache.all_grains() == {}


def test_wrong_calls_are_refused(worker: Worker) -> None:
    assert worker.control("wheel", fun="minions.import_data", kwarg={"data": [1]})[0] == "InvocationError"
    assert worker.control("wheel", fun="minions.export_data")[0] == "InvocationError"
    # By position, an event would show them.
    assert worker.control("wheel", fun="minions.import_data", arg=[{}])[0] == "TypeError"

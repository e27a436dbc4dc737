"""What a worker derives and remembers: session keys by epoch, pillars under seal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltwire.crypticle import Crypticle

pytestmark = pytest.mark.redis

Worker = Any


def opens(key: Crypticle, other: str) -> bool:
    return bool(key.loads(Crypticle(other).dumps({"a": 1})) == {"a": 1})


def test_a_session_belongs_to_an_id_a_key_and_an_epoch(worker: Worker) -> None:
    worker.store.minion_keys.store("web1", worker.keys[0].public.pem, "accepted")
    public, other = worker.keys[0].public, worker.keys[1].public
    strings = {
        worker.context.session_key_string("web1", public, epoch=1),
        worker.context.session_key_string("web2", public, epoch=1),
        worker.context.session_key_string("web1", other, epoch=1),
        worker.context.session_key_string("web1", public, epoch=2),
        worker.context.aes_key_string(),
    }
    assert len(strings) == 5


def test_session_keys_are_this_epochs_and_the_last_ones(worker: Worker) -> None:
    worker.accept("web1")
    public = worker.context.public_key_of("web1")
    worker.store.epochs.rotate_session()
    epoch = worker.context.epochs().session
    keys = worker.context.session_keys("web1")
    assert len(keys) == 2
    for key, number in zip(keys, (epoch, epoch - 1), strict=True):
        assert opens(key, worker.context.session_key_string("web1", public, epoch=number))
    assert worker.context.session_keys("web1") is keys, "derived once an epoch"


@pytest.mark.parametrize("state", [None, "pending", "rejected", "denied"])
def test_without_an_accepted_key_there_is_no_session(worker: Worker, state: str | None) -> None:
    if state:
        worker.store.minion_keys.store("web1", worker.keys[0].public.pem, state)
    assert worker.context.session_keys("web1") == ()
    assert worker.context.public_key_of("web1") is None


def test_a_deleted_key_ends_the_session(worker: Worker) -> None:
    worker.accept("web1")
    assert worker.context.session_keys("web1")
    worker.store.minion_keys.delete("web1")
    assert worker.context.session_keys("web1") == ()


def test_another_key_is_another_session(worker: Worker) -> None:
    worker.accept("web1")
    before = worker.context.session_keys("web1")
    worker.store.minion_keys.store("web1", worker.keys[0].public.pem, "accepted")
    assert worker.context.session_keys("web1") != before
    assert opens(
        worker.context.session_keys("web1")[0], worker.context.session_key_string("web1", worker.keys[0].public)
    )


def test_epochs_are_believed_for_a_while(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("saltern.mworker.worker_context.time.monotonic", lambda: now[0])
    first = worker.context.epochs()
    worker.store.epochs.rotate_aes()
    now[0] += 1.9
    assert worker.context.epochs() == first
    now[0] += 0.2
    assert worker.context.epochs().aes == first.aes + 1


def test_only_old_minions_share_a_key(new_worker: Callable[..., Worker]) -> None:
    assert new_worker().context.shared_keys() == ()
    old = new_worker(minimum_auth_version=2)
    (key,) = old.context.shared_keys()
    assert opens(key, old.context.aes_key_string())


def test_redis_holds_no_pillar_in_the_clear(worker: Worker, new_worker: Callable[..., Worker]) -> None:
    worker.context.keep_pillar("web1", {"password": "s3cret-word"})
    assert b"s3cret-word" not in worker.store.cache.pillars_of(["web1"])["web1"]
    for reader in (worker, new_worker()):
        assert reader.context.pillars() == {"web1": {"password": "s3cret-word"}}
    worker.context.keep_pillar("web1", {"password": "another"})
    assert worker.context.pillars() == {"web1": {"password": "another"}}


def test_a_pillar_under_another_secret_is_passed_over(worker: Worker) -> None:
    worker.store.cache.set_pillar("web1", b"sealed by somebody else, or not at all")
    assert worker.context.pillars() == {}

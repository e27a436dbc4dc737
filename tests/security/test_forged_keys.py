"""Attack: somebody who writes to Redis puts a key among the accepted keys, or changes an accepted one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import redis

from masterstore import keys
from saltwire.pack import packb
from tests.services.mworker.conftest import FakeMinion, Worker

pytestmark = pytest.mark.redis

NewWorker = Callable[..., Worker]
ACCEPTED = keys.minion_keys("accepted")


@pytest.fixture
def raw(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(redis_url)


#: Attack -> what the attacker writes to have the key ``evil`` accepted for web1. web2 has an accepted key, whose record is known.
FORGERIES: Mapping[str, Callable[[redis.Redis, str], object]] = {
    "a key without a code": lambda raw, evil: raw.hset(ACCEPTED, "web1", evil),
    "a key with an empty code": lambda raw, evil: (
        raw.hset(ACCEPTED, "web1", evil),
        raw.hset(keys.KEY_CODES, "web1", ""),
    ),
    "a key with the code of another minion": lambda raw, evil: (
        raw.hset(ACCEPTED, "web1", evil),
        raw.hset(keys.KEY_CODES, "web1", raw.hget(keys.KEY_CODES, "web2") or b""),
    ),
    "another minion's key and code": lambda raw, evil: (
        raw.hset(ACCEPTED, "web1", raw.hget(ACCEPTED, "web2") or b""),
        raw.hset(keys.KEY_CODES, "web1", raw.hget(keys.KEY_CODES, "web2") or b""),
    ),
    "a key with a code of spaces": lambda raw, evil: (
        raw.hset(ACCEPTED, "web1", evil),
        raw.hset(keys.KEY_CODES, "web1", " 1 1 0 0 \n"),
    ),
    "a key with a code of zeros": lambda raw, evil: (
        raw.hset(ACCEPTED, "web1", evil),
        raw.hset(keys.KEY_CODES, "web1", "0" * 64),
    ),
    "a key with a number of its acceptance": lambda raw, evil: (
        raw.hset(ACCEPTED, "web1", evil),
        raw.hset(keys.ACCEPTANCES, "web1", "1"),
    ),
}


@pytest.mark.parametrize("known", [False, True], ids=["a new id", "an accepted id"])
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_key_does_not_sign_in(name: str, known: bool, worker: Worker, raw: redis.Redis) -> None:
    worker.minion("web2", key=1)
    if known:
        worker.minion("web1")
    evil = FakeMinion("web1", worker.keys[1], worker.handler)
    FORGERIES[name](raw, evil.key.public.pem)
    raw.incr(keys.KEYS_VERSION)
    assert evil.sign_in().credentials is None
    assert worker.store.minion_keys.pem("web1") is None
    assert worker.context.public_key_of("web1") is None
    assert worker.context.session_keys("web1") == ()


def test_a_session_of_a_forged_key_is_refused(worker: Worker, raw: redis.Redis) -> None:
    """The attacker waits until web1 is signed in, and then replaces its key."""
    minion = worker.minion("web1")
    raw.hset(ACCEPTED, "web1", worker.keys[1].public.pem)
    raw.incr(keys.KEYS_VERSION)
    worker.store.minion_keys._looked = 0.0
    assert minion.send({"cmd": "_mine_get", "id": "web1"})[0] == packb("bad load")


@pytest.mark.ordinary
def test_an_operator_mends_a_record(worker: Worker, raw: redis.Redis) -> None:
    """A forged record costs web1 its sign-in, not its place: salt-key -d and -a bring it back."""
    minion = worker.minion("web1")
    raw.hdel(keys.KEY_CODES, "web1")
    raw.incr(keys.KEYS_VERSION)
    assert minion.sign_in().credentials is None
    worker.control("wheel", fun="key.delete", arg=[], kwarg={"match": "web1"})
    assert minion.sign_in().credentials is None
    worker.control("wheel", fun="key.accept", arg=[], kwarg={"match": "web1"})
    assert minion.sign_in().credentials is not None


@pytest.mark.ordinary
def test_keys_of_an_older_release_are_signed_in_an_upgrade(new_worker: NewWorker, raw: redis.Redis) -> None:
    first = new_worker()
    made: Any = FakeMinion("web1", first.keys[0], first.handler)
    raw.hset(ACCEPTED, "web1", made.key.public.pem)
    raw.incr(keys.KEYS_VERSION)
    assert made.sign_in().credentials is None
    upgrading = new_worker(accept_unsigned_records=True)
    assert FakeMinion("web1", first.keys[0], upgrading.handler).sign_in().credentials is not None
    assert [upgrading.store.minion_keys.sign_all(), upgrading.store.minion_keys.sign_all()] == [1, 0]
    assert made.sign_in().credentials is not None

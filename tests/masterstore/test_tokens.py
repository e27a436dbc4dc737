"""Tokens of signed-in users: at rest as digests, with codes, ends and a limit for each user."""

from __future__ import annotations

import hashlib
import hmac
import json
import time

import pytest
import redis

from masterstore import keys
from masterstore.record_mac import Records
from masterstore.store import Store
from masterstore.tokens import Token, digest_of

pytestmark = pytest.mark.redis

TEXT = "ab" * 20


def _mac(kind: str, record: bytes) -> bytes:
    return hmac.new(b"secret " + kind.encode(), record, hashlib.sha256).hexdigest().encode()


def _token(user: str = "ann", *, seconds: float = 60, start: float = 0) -> Token:
    begin = start or time.time()
    return Token(user, "file", ("ops", "web"), begin, begin + seconds)


@pytest.fixture
def signed(redis_url: str) -> Store:
    return Store.open(redis_url, timeout=5.0, client_name="signed", records=Records(_mac))


def test_a_token_is_found_until_its_end(signed: Store) -> None:
    token = _token()
    assert signed.tokens.add(TEXT, token, most=10) == 0
    assert signed.tokens.find(TEXT, time.time()) == token
    assert signed.tokens.find(TEXT, token.expire + 1) is None
    assert signed.tokens.find("cd" * 20, time.time()) is None


def test_redis_holds_no_token(signed: Store, raw: redis.Redis) -> None:
    signed.tokens.add(TEXT, _token(), most=10)
    held = b"".join(raw.dump(key) or b"" for key in raw.keys("*"))  # type: ignore[union-attr]
    assert TEXT.encode() not in held
    assert all(TEXT.encode() not in key for key in raw.keys("*"))  # type: ignore[union-attr]
    assert 0 < int(raw.ttl(keys.token(digest_of(TEXT)))) <= 61  # type: ignore[arg-type]


def test_a_revoked_token_is_gone(signed: Store) -> None:
    signed.tokens.add(TEXT, _token(), most=10)
    assert signed.tokens.revoke(TEXT)
    assert not signed.tokens.revoke(TEXT)
    assert signed.tokens.find(TEXT, time.time()) is None


def test_all_tokens_of_a_user_are_revoked(signed: Store) -> None:
    texts = [f"{number:040x}" for number in range(3)]
    for text in texts:
        signed.tokens.add(text, _token("bob"), most=10)
    signed.tokens.add(TEXT, _token("ann"), most=10)
    assert signed.tokens.revoke_all("file", "bob") == 3
    assert [signed.tokens.find(text, time.time()) for text in texts] == [None] * 3
    assert signed.tokens.find(TEXT, time.time()) is not None


def test_a_user_has_a_limited_number_of_tokens(signed: Store) -> None:
    texts = [f"{number:040x}" for number in range(5)]
    gone = [signed.tokens.add(text, _token("eve", seconds=60 + at), most=3) for at, text in enumerate(texts)]
    assert gone == [0, 0, 0, 1, 1]
    found = [signed.tokens.find(text, time.time()) is not None for text in texts]
    assert found == [False, False, True, True, True]


def test_of_tokens_of_one_moment_the_newest_stay(signed: Store) -> None:
    token = _token("eve")
    texts = [f"{9 - at}" * 64 for at in range(10)]
    gone = [signed.tokens.add(text, token, most=3) for text in texts]
    assert gone == [0] * 3 + [1] * 7
    known = [text for text in texts if signed.tokens.find(text, token.start + 1) is not None]
    assert known == texts[-3:]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: {**record, "user": "root"},
        lambda record: {**record, "groups": ["admins"]},
        lambda record: {**record, "expire": record["expire"] + 1e9},
    ],
    ids=["user", "groups", "end"],
)
def test_a_forged_token_is_refused(signed: Store, raw: redis.Redis, change: object) -> None:
    signed.tokens.add(TEXT, _token(), most=10)
    key = keys.token(digest_of(TEXT))
    record = json.loads(raw.hget(key, "record") or "{}")  # type: ignore[arg-type]
    raw.hset(key, "record", json.dumps(change(record)))  # type: ignore[operator]
    assert signed.tokens.find(TEXT, time.time()) is None
    assert signed.faults.total == 1


def test_a_record_does_not_serve_another_token(signed: Store, raw: redis.Redis) -> None:
    signed.tokens.add(TEXT, _token("root"), most=10)
    own = "12" * 20
    raw.restore(keys.token(digest_of(own)), 0, raw.dump(keys.token(digest_of(TEXT))))  # type: ignore[arg-type]
    assert signed.tokens.find(own, time.time()) is None


def test_failures_are_counted_for_a_while(signed: Store, raw: redis.Redis) -> None:
    signed.tokens.record_failure(["address 10.9.8.7", "user x"], window=60)
    signed.tokens.record_failure(["address 10.9.8.7"], window=60)
    assert signed.tokens.failures(["address 10.9.8.7", "user x", "user y"]) == [2, 1, 0]
    assert 0 < int(raw.ttl(keys.login_failures("user x"))) <= 60  # type: ignore[arg-type]

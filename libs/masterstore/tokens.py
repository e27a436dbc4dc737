"""Tokens of users who signed in with external authentication (eauth), and the counts of failed sign-ins.

Redis holds the SHA-256 digest of a token, never the token: whoever reads Redis cannot sign in. A token's record
carries an authentication code, so that whoever writes to Redis cannot make a token that a worker accepts, or extend
one.

Source: docs/security.md#redis
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hmac import compare_digest

from masterstore import keys
from masterstore.client import Client
from masterstore.record_mac import TOKEN, Records


@dataclass(frozen=True, slots=True)
class Token:
    """The record of an eauth token: the user's name, the eauth backend that authenticated the user, the user's groups,
    and the times (seconds since 1970) from which and until which the token is valid.
    """

    user: str
    eauth: str
    groups: tuple[str, ...]
    start: float
    expire: float


#: KEYS: the token, the tokens of its user. ARGV: digest, record, code, seconds to live, end in ms, now in ms, most tokens of a
#: user. Returns the number of older tokens of the user that were removed.
_ADD = f"""
redis.call('HSET', KEYS[1], 'record', ARGV[2], 'mac', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[6])
local at, last = tonumber(ARGV[5]), redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
-- Of tokens of one millisecond, the later one is the newer one.
if last and math.floor(tonumber(last)) == at then at = tonumber(last) + 0.001 end
redis.call('ZADD', KEYS[2], string.format('%.3f', at), ARGV[1])
local gone = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[7])
if gone > 0 then
  for _, old in ipairs(redis.call('ZRANGE', KEYS[2], 0, gone - 1)) do redis.call('DEL', '{keys.TOKEN}' .. old) end
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, gone - 1)
end
redis.call('EXPIRE', KEYS[2], math.max(tonumber(ARGV[4]), redis.call('TTL', KEYS[2])))
return math.max(gone, 0)
"""

#: KEYS: counters. ARGV: seconds. The time runs from the first failure.
_FAIL = """
for _, key in ipairs(KEYS) do
  if redis.call('INCR', key) == 1 then redis.call('EXPIRE', key, ARGV[1]) end
end
"""


class Tokens:
    """Stores, finds and revokes the eauth tokens in Redis, and counts failed sign-ins. All operations raise
    StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client, records: Records = Records()) -> None:  # noqa: B008 - it never changes
        """Create the operations on eauth tokens. ``records`` makes and checks the authentication codes of the tokens'
        records.
        """
        self._client = client
        self._records = records
        self._add = client.redis.register_script(_ADD)
        self._fail = client.redis.register_script(_FAIL)

    def add(self, text: str, token: Token, *, most: int) -> int:
        """Store the record of a new eauth token. Return the number of older tokens of the same user that were revoked
        to make room.

        ``text``: the token's text, which the user sends. ``most``: largest number of tokens of one user; the tokens
        that expire first are revoked.
        """
        digest = digest_of(text)
        record = json.dumps(asdict(token))
        seconds = max(1, int(token.expire - token.start) + 1)
        names = [keys.token(digest), keys.tokens_of(token.eauth, token.user)]
        code = self._records.code(TOKEN, _bound(digest, record))
        times = [seconds, int(token.expire * 1000), int(token.start * 1000)]
        with self._client.calling():
            gone: int = self._add(keys=names, args=[digest, record, code, *times, max(1, most)])
        return gone

    def find(self, text: str, now: float) -> Token | None:
        """Return the Token (record) of the eauth token with this text. None if there is none, if it has expired, or if
        no worker of this master made it.

        ``now``: seconds since 1970.
        """
        digest = digest_of(text)
        record, code = self._client.call("hmget", keys.token(digest), "record", "mac")
        if record is None:
            return None
        if not compare_digest(self._records.code(TOKEN, _bound(digest, record.decode())), code or b""):
            self._client.faults.report(keys.token(digest), "its code belongs to another record or another master")
            return None
        found = Token(**{**json.loads(record), "groups": tuple(json.loads(record)["groups"])})
        return found if found.expire > now else None

    def revoke(self, text: str) -> bool:
        """Delete the eauth token with this text. Return True if it existed."""
        digest = digest_of(text)
        record = self._client.call("hget", keys.token(digest), "record")
        removed = bool(self._client.call("delete", keys.token(digest)))
        if record is not None:
            token = json.loads(record)
            self._client.call("zrem", keys.tokens_of(token["eauth"], token["user"]), digest)
        return removed

    def revoke_all(self, eauth: str, user: str) -> int:
        """Delete all eauth tokens of a user of the backend ``eauth``. Return their number."""
        index = keys.tokens_of(eauth, user)
        digests = [digest.decode() for digest in self._client.call("zrange", index, 0, -1)]
        removed = sum(int(self._client.call("delete", keys.token(digest))) for digest in digests)
        self._client.call("delete", index)
        return removed

    def failures(self, subjects: Sequence[str]) -> list[int]:
        """Return the number of recent failed sign-ins of each subject (text that names an address or a user), in the
        order of ``subjects``.
        """
        return [int(count or 0) for count in self._client.call("mget", list(map(keys.login_failures, subjects)))]

    def record_failure(self, subjects: Iterable[str], *, window: int) -> None:
        """Count one failed sign-in for each subject (text that names an address or a user). A count is deleted
        ``window`` seconds after its first failure.
        """
        with self._client.calling():
            self._fail(keys=list(map(keys.login_failures, subjects)), args=[window])


def digest_of(text: str) -> str:
    """Return the SHA-256 digest of an eauth token's text, in hexadecimal digits. Redis holds the token under it."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _bound(digest: str, record: str) -> str:
    return f"{digest} {record}"

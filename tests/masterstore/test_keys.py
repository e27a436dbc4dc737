"""The table of keys against Redis: after everything was done once, each key is a row of it, with its type and its end."""

from __future__ import annotations

import re
from typing import Any

import pytest
import redis

from masterstore import keys
from masterstore.client import text
from masterstore.jobs import UnaskedLimits
from masterstore.keys import KEYS, KeySpec
from masterstore.store import Store
from masterstore.tokens import Token

JID, RUNNER, LATE = "20260101000000000000", "20260101000001000000", "20260101000002000000"
BEGUN, WAITS = "20260101000003000000", "20260101000004000000"

#: What a part of a pattern may be.
PARTS = {
    "jid": r"\d{20}",
    "minion": r"[^:]+",
    "fun": r"[\w.,-]+",
    "state": "accepted|pending|rejected|denied",
    "id": r"\w+",
    "name": r"\w+",
    "cache": "grains|pillar",
    "bank": "[^:]+",
    "kind": "minion|fun|user|tgt|result|state",
    "value": r".+",
    "group": r"\w+",
    "nonce": "[0-9a-f]{32}",
    "digest": "[0-9a-f]{64}",
}


def form(spec: KeySpec) -> re.Pattern[str]:
    pieces = re.split(r"<(\w+)>", spec.pattern)
    return re.compile(
        "".join(f"(?:{PARTS[piece]})" if odd % 2 else re.escape(piece) for odd, piece in enumerate(pieces))
    )


def row_of(name: str) -> KeySpec:
    """The one row that a key belongs to; a key of ours is never taken for ``<minion>:<fun>``."""
    rows = [spec for spec in KEYS if form(spec).fullmatch(name)]
    exact = [spec for spec in rows if spec.name != "last_jid"] or rows
    assert len(exact) == 1, f"{name} is {[spec.name for spec in exact]}"
    return exact[0]


def everything(store: Store) -> None:
    """Every verb that writes, once or more."""
    load: dict[str, Any] = {"jid": JID, "fun": "test.ping", "tgt": "*", "arg": [], "user": "root"}
    ret: dict[str, Any] = {"jid": JID, "id": "a", "fun": "test.ping", "return": True, "retcode": 0}
    store.jobs.publish(load, ["a", "b"], request_id="r1", ttl=1000, now_ms=1)
    for minion in ("a", "a", "b", "x"):
        store.jobs.record_return({**ret, "id": minion}, ttl=1000)
    store.jobs.record_return({**ret, "jid": LATE}, ttl=1000)
    store.jobs.record_return({**ret, "id": "big", "return": "x" * 99}, ttl=1000, compress_above=9)
    store.jobs.store_external(RUNNER, {**load, "jid": RUNNER}, {**ret, "jid": RUNNER}, ttl=1000)
    wide = [f"m{number}" for number in range(200)]
    store.jobs.publish(
        {**load, "jid": WAITS}, wide, request_id="r3", ttl=1000, now_ms=1, offline=wide[:2], when_back_until_ms=2
    )
    store.jobs.sign("m5", [(WAITS, "started", 1)], 1)
    store.runner_jobs.begin("r2", {**load, "jid": BEGUN}, "master", ttl=1000)
    store.runner_jobs.alive(BEGUN, "here")
    store.runner_jobs.tell(BEGUN, "vim", {"kill": True}, ttl=1000)
    store.publications.save_cursors(["publisher-1"], "1-1")
    store.publications.give_sign("publisher-1", 1)
    store.overview.report_reqserver("req-1", {"at": 1})
    for state in ("accepted", "pending", "rejected", "denied"):
        store.minion_keys.store(f"minion-{state}", "PEM", state)
    store.sign_ins.begin("minion-accepted", "PEM", 1)
    store.master_keys.set("minion-accepted", "aa:bb")
    store.cache.set_grains("a", {"os": "Debian"})
    store.jobs.own_jid("a", JID, JID, ttl=1000)
    store.jobs.may_store_own("a", "", UnaskedLimits(10, 1000))
    store.cache.set_pillar("a", b"sealed")
    store.cache.keep_pillar("a", "base", b"sealed", 500)
    store.banks.store("sites/one", "k", [1])
    store.cache.mine_set("a", {"network.ip_addrs": ["::1"]})
    store.presence.seen("a", 1)
    store.presence.seen("c", 3)
    store.presence.left("c", 4)
    store.replays.admit("a", "0" * 32, 1, window=300)
    store.audit.append({"act": "publish", "who": "cli"}, 1)
    store.audit.seal(1, kept=10)
    store.events.want("reactor", ["a/*"])
    store.event_groups.create("reactor", 0)
    store.event_groups.claim("reactor", "one", 1000, 1)
    store.events.keep(b"event", 10)
    batch = store.event_groups.read("reactor", "one", 0, 1)
    for event in batch.events if batch else ():
        store.event_groups.bury("reactor", event, "why", 1)
    store.epochs.current()
    store.epochs.rotate_aes()
    store.epochs.rotate_session()
    store.schema.begin()
    store.locks.acquire("trim", "one", 60_000)
    store.tokens.add("ab", Token("ann", "file", (), 1.0, 500.0), most=10)
    store.tokens.record_failure(["user ann"], window=60)


#: Rows whose key ends by itself, and the largest number of seconds until then in ``everything``.
ENDS = {
    "reqservers": 60,
    "pillar_cache": 500,
    "load": 1000,
    "ret": 1000,
    "last_jid": 1000,
    "job": 1000,
    "job_minions": 1000,
    "life": 1000,
    "large": 1000,
    **dict.fromkeys(("jobs", "wide_jobs", "functions", "due_jobs", "waiting", "waiting_of"), 1000),
    "index": 1000,
    "request": keys.REQUEST_TTL,
    "orders": 1000,
    "own_job": 1000,
    "spent": 3600,
    "lock": 60,
    "nonce": 660,
    "stock_sign_ins": 60,
    "master_keys": 90 * 86400,
    "token": 500,
    "tokens_of": 500,
    "login_failures": 60,
}


@pytest.mark.redis
def test_every_key_is_a_row_and_ends_as_the_row_says(store: Store, raw: redis.Redis) -> None:
    everything(store)
    found: set[str] = set()
    for name in raw.scan_iter("*"):
        spec = row_of(name.decode())
        found.add(spec.name)
        assert text(raw.type(name)) == spec.type, name
        left = raw.ttl(name)
        if spec.name in ENDS:
            # An index is kept a sixteenth longer: it is not renewed with each job.
            most = ENDS[spec.name] * (17 / 16 if spec.type == "zset" else 1) + 1
            assert ENDS[spec.name] - 10 <= left <= most, f"{name!r} ends in {left} s"
        else:
            assert left == -1, f"{name!r} ends in {left} s and its row says {spec.ttl}"
            assert spec.ttl.startswith("none: "), f"{spec.name} has neither an end nor a reason"
    assert found == {spec.name for spec in KEYS}


@pytest.mark.redis
def test_doing_it_again_adds_no_key(store: Store, raw: redis.Redis) -> None:
    everything(store)
    before = sorted(raw.scan_iter("*"))
    store.jobs.record_return({"jid": JID, "id": "a", "fun": "test.ping", "return": 1}, ttl=1000)
    store.minion_keys.store("minion-pending", "PEM", "accepted")
    store.cache.mine_set("b", {"network.ip_addrs": []})
    store.cache.set_grains("b", {})
    store.presence.seen("b", 2)
    store.epochs.rotate_aes()
    after = sorted(raw.scan_iter("*"))
    # The pending key moved: its hash is empty, and gone.
    assert [name for name in before if name not in after] == [b"salt:keys:pending"]
    assert [name for name in after if name not in before] == []


@pytest.mark.redis
def test_everything_that_belongs_to_jobs_goes_with_them(store: Store, raw: redis.Redis) -> None:
    everything(store)
    for name in list(raw.scan_iter("*")):
        if raw.ttl(name) > 0:
            raw.pexpire(name, 0)
    store.jobs.expire(2**41, keep_seconds=1)
    left = {row_of(name.decode()).name for name in raw.scan_iter("*")}
    assert left == {"audit", "audit_seals", "audit_end", "minions", "publications", "cursors", "publisher_signs",
                    "minion_keys", "keys_version", "acceptances", "clocks", "key_codes", "grains", "pillar", "changed", "version",
                    "mine", "mine_functions", "seen", "left", "epochs", "fences", "runners", "bank", "banks", "signers",
                    "job_bytes", "schema", "events", "events_count", "events_wanted",
                    "event_group", "event_readers", "dead_events"}  # fmt: skip


def test_rows_are_unlike_each_other() -> None:
    assert len({spec.name for spec in KEYS}) == len(KEYS)
    assert len({spec.pattern for spec in KEYS}) == len(KEYS)
    assert all(spec.bounded and spec.ttl and spec.meaning and spec.writers and spec.readers for spec in KEYS)


@pytest.mark.parametrize("spec", KEYS, ids=lambda spec: spec.name)
def test_keys_are_spelled_as_the_table_has_them(spec: KeySpec) -> None:
    spelled: dict[str, str] = {
        "events": keys.EVENTS,
        "events_count": keys.EVENTS_COUNT,
        "events_wanted": keys.EVENTS_WANTED,
        "event_group": keys.event_group("reactor"),
        "event_readers": keys.event_readers("reactor"),
        "dead_events": keys.dead_events("reactor"),
        "load": keys.load(JID),
        "ret": keys.ret(JID),
        "last_jid": keys.last_jid("a", "test.ping")[0],
        "minions": keys.MINIONS,
        "jobs": keys.JOBS,
        "index": keys.index("minion", "a"),
        "wide_jobs": keys.WIDE_JOBS,
        "functions": keys.FUNCTIONS,
        "due_jobs": keys.DUE,
        "job_bytes": keys.JOB_BYTES,
        "life": keys.life(JID),
        "large": keys.large(JID),
        "waiting": keys.WAITING,
        "waiting_of": keys.waiting_of("a"),
        "signers": keys.SIGNERS,
        "job": keys.job(JID),
        "job_minions": keys.job_minions(JID),
        "request": keys.request("r1"),
        "own_job": keys.own_job("a", JID),
        "spent": keys.spent("a"),
        "runners": keys.RUNNERS,
        "changed": keys.changed(keys.GRAINS),
        "version": keys.version(keys.GRAINS),
        "orders": keys.orders(JID),
        "publications": keys.PUBLICATIONS,
        "cursors": keys.CURSORS,
        "publisher_signs": keys.PUBLISHER_SIGNS,
        "reqservers": keys.REQSERVERS,
        "stock_sign_ins": keys.STOCK_SIGN_INS,
        "master_keys": keys.MASTER_KEYS,
        "minion_keys": keys.minion_keys("accepted"),
        "keys_version": keys.KEYS_VERSION,
        "acceptances": keys.ACCEPTANCES,
        "clocks": keys.CLOCKS,
        "nonce": keys.nonce("a", "0" * 32),
        "key_codes": keys.KEY_CODES,
        "grains": keys.GRAINS,
        "pillar": keys.PILLAR,
        "pillar_cache": keys.pillar_cache("web1"),
        "bank": keys.bank("a/b"),
        "banks": keys.BANKS,
        "mine": keys.mine("test.ping"),
        "mine_functions": keys.MINE_FUNCTIONS,
        "seen": keys.SEEN,
        "left": keys.LEFT,
        "epochs": keys.EPOCHS,
        "lock": keys.lock("trim"),
        "fences": keys.FENCES,
        "audit": keys.AUDIT,
        "audit_seals": keys.AUDIT_SEALS,
        "audit_end": keys.AUDIT_END,
        "schema": keys.SCHEMA,
        "token": keys.token("0" * 64),
        "tokens_of": keys.tokens_of("file", "ann"),
        "login_failures": keys.login_failures("user ann"),
    }
    assert row_of(spelled[spec.name]) is spec


def test_the_page_has_every_row() -> None:
    page = keys.markdown()
    for spec in KEYS:
        assert f"| `{spec.pattern}` | {spec.type} | {spec.meaning} | {spec.ttl} |" in page
    assert page.endswith("|\n")
    assert {line.count("|") for line in page.splitlines() if line.startswith("|")} == {8}

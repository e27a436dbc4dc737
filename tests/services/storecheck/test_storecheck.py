"""``saltern store`` over a real Redis: what is wrong is named by its key, mended, and then nothing is."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from masterstore import keys, values
from masterstore.check import Check
from masterstore.client import Client
from masterstore.job_filter import JobFilter
from masterstore.life import State
from masterstore.lives import jid_ms
from masterstore.store import Store
from saltern.entry import main
from saltern.storecheck.main import main as store_main
from saltwire.jid import new_jid

pytestmark = pytest.mark.redis

JID, LATER = "20260101000000000000", "20260101000001000000"
TTL = 1000


@pytest.fixture
def raw(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(redis_url, socket_timeout=5.0)


@pytest.fixture
def run(redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], tuple[int, list[str]]]:
    (tmp_path / "master").write_text(f"redis_url: {redis_url}\n")

    def command(verb: str) -> tuple[int, list[str]]:
        code = main(["store", verb, "-c", str(tmp_path)])
        said = capsys.readouterr()
        assert said.err == "" or code not in (0, 1) or verb == "migrate", said.err
        return code, said.out.splitlines()

    return command


def filled(url: str) -> Store:
    store = Store.open(url, timeout=5.0, client_name="test")
    store.schema.begin()
    for jid in (JID, LATER):
        load = {"jid": jid, "fun": "test.ping", "tgt": "*", "user": "root"}
        store.jobs.publish(
            load, ["a", "b"], request_id=jid, ttl=TTL, now_ms=jid_ms(jid), offline=["b"], when_back_until_ms=2**41
        )
        store.jobs.record_return({**load, "id": "a", "return": 1}, ttl=TTL, now_ms=jid_ms(jid), compress_above=10)
    store.jobs.store_external("20260101000002000000", {"fun": "x.y"}, {"id": "m", "return": 1}, ttl=TTL)
    store.runner_jobs.begin("r9", {"jid": "20260101000003000000", "fun": "runner.x"}, "master", ttl=TTL)
    store.minion_keys.store("a", "PEM", "accepted")
    store.cache.set_grains("a", {})
    store.cache.mine_set("a", {"f.g": 1})
    store.locks.acquire("maintenance", "me", 60_000)
    store.epochs.current()
    return store


def test_nothing_is_wrong_with_what_the_store_wrote(redis_url: str, run: Any, raw: redis.Redis) -> None:
    filled(redis_url)
    raw.set("another:program", "x")
    assert run("check") == (0, [f"{raw.dbsize()} keys looked at, 0 faults"])
    assert run("repair") == (0, ["0 mended, 0 left"])


#: What another hand did -> (who did it, the line that names it, what repair says of it).
SPOILED: dict[str, tuple[Callable[[redis.Redis], Any], str, str]] = {
    "another type": (
        lambda r: (r.delete(f"salt:job:{JID}:life"), r.lpush(f"salt:job:{JID}:life", "x")),
        f"salt:job:{JID}:life: a list where salt:job:<jid>:life is a hash",
        "removed",
    ),
    "an index of another type": (
        lambda r: r.set("salt:idx:fun:test.echo", "x"),
        "salt:idx:fun:test.echo: a string where salt:idx:<kind>:<value> is a zset",
        "removed",
    ),
    "no end": (lambda r: r.persist(f"ret:{JID}"), f"ret:{JID}: would never end", "ends in 86400 s"),
    "a load": (lambda r: r.set(f"load:{JID}", b"{", keepttl=True), f"load:{JID}: not JSON", "removed"),
    "a load no map": (lambda r: r.set(f"load:{JID}", b"[]", keepttl=True), f"load:{JID}: a list, not a map", "removed"),
    "a return": (lambda r: r.hset(f"ret:{JID}", "a", b"\xff"), f"ret:{JID}[a]: not JSON", "removed"),
    "a large return": (
        lambda r: r.hset(f"salt:large:{JID}", "a", b"nothing"),
        f"salt:large:{JID}[a]: not compressed by zlib",
        "removed",
    ),
    "a large return cut off": (
        lambda r: r.hset(f"salt:large:{JID}", "a", zlib.compress(b"{}")[:-2]),
        f"salt:large:{JID}[a]: the compressed return is cut off",
        "removed",
    ),
    "a life": (lambda r: r.hset(f"salt:job:{JID}:life", "a", "?"), f"salt:job:{JID}:life[a]: '?' is no life", "returned"),
    "the life of who has not returned": (
        lambda r: r.hset(f"salt:job:{JID}:life", "b", "?"),
        f"salt:job:{JID}:life[b]: '?' is no life",
        "expected",
    ),
    "a count": (
        lambda r: r.hset(f"salt:job:{JID}", "answered", 7),
        f"salt:job:{JID}: answered: not what the lives of its minions say",
        "counted anew",
    ),
    "a count that is no number": (
        lambda r: r.hset(f"salt:job:{JID}", "answered", "x"),
        f"salt:job:{JID}[answered]: 'x' is no number",
        "removed",
    ),
    "bytes": (lambda r: r.hset("salt:jobs:bytes", "x", 1), "salt:jobs:bytes[x]: not an hour and its bytes: '1'", "removed"),
    "a publication": (lambda r: r.xadd("salt:publications", {"x": "y"}, id="9999999999999-0"),
        "salt:publications[9999999999999-0]: an entry without a load", "removed"),
    "an entry of an index": (
        lambda r: r.zadd("salt:idx:minion:a", {"noon": 1}),
        "salt:idx:minion:a[noon]: no JID",
        "removed",
    ),
    "grains": (lambda r: r.hset("salt:grains", "web1", b"\xc1"), "salt:grains[web1]: not msgpack", "removed"),
    "grains no map": (lambda r: r.hset("salt:grains", "web1", b"\x05"), "salt:grains[web1]: of type int, not a map", "removed"),
    "mine data": (lambda r: r.hset("salt:mine:f.g", "a", b"\xc1"), "salt:mine:f.g[a]: not msgpack", "removed"),
    "the schema": (lambda r: r.set("salt:schema", "x"), "salt:schema: 'x' is no number", "removed"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_what_is_wrong_is_named_and_mended(redis_url: str, run: Any, raw: redis.Redis, name: str) -> None:
    spoil, line, remedy = SPOILED[name]
    store = filled(redis_url)
    spoil(raw)
    code, lines = run("check")
    assert code == 1
    assert [one for one in lines if one.startswith(line) and one.endswith(f"(repair: {remedy})")], lines
    code, lines = run("repair")
    assert code == 0, lines
    assert [one for one in lines if one.startswith(line) and one.endswith(f"; {remedy}")], lines
    assert run("check")[0] == 0
    # The job beside it is as it was.
    assert store.jobs.returns(LATER)["a"]["return"] == 1
    assert {minion: life.state for minion, life in store.jobs.life(LATER).items()} == {
        "a": State.RETURNED,
        "b": State.OFFLINE,
    }


def test_what_nobody_here_wrote_is_left_alone(run: Any, raw: redis.Redis) -> None:
    raw.set("salt:of:tomorrow", "x")
    raw.set("salt:schema", keys.SCHEMA_VERSION + 1)
    raw.set(b"salt:job:\xff", "x")
    code, lines = run("repair")
    assert (code, raw.get("salt:of:tomorrow")) == (1, b"x")
    assert sorted(lines)[-3:] == [
        "salt:job:\\xff: no key of this store: of another program, or of a newer version; it is left alone; not mended",
        "salt:of:tomorrow: no key of this store: of another program, or of a newer version; it is left alone; not mended",
        f"salt:schema: schema {keys.SCHEMA_VERSION + 1}, and this version knows {keys.SCHEMA_VERSION}: use the newer version;"
        " not mended",
    ]
    assert run("migrate")[0] == 1


# ------------------------------------------------------------------------------------------------------------------- migrate


def of_schema_1(raw: redis.Redis, jid: str, minions: list[str], returned: list[str], failed: int = 0) -> None:
    """A job as the version before wrote it."""
    load = {"jid": jid, "fun": ["test.ping", "cmd.run"], "tgt": "web*", "user": "joe"}
    made = jid_ms(jid)
    counts = {
        "created": made,
        "expected": len(minions),
        "answered": len(returned),
        "returned": len(returned),
        "failed": failed,
    }
    if len(returned) == len(minions):
        counts["ended"] = made + 50
    raw.set(keys.load(jid), json.dumps(load), ex=TTL)
    raw.hset(keys.job(jid), mapping={**counts, "user": "joe", "fun": "test.ping,cmd.run", "tgt": "web*"})
    raw.sadd(keys.job_minions(jid), *minions)
    for minion in returned:
        raw.hset(keys.ret(jid), minion, json.dumps({"jid": jid, "id": minion, "return": 1}))
    raw.zadd(keys.JOBS, {jid: made})
    for name in (keys.job(jid), keys.job_minions(jid), keys.ret(jid)):
        raw.expire(name, TTL)


def test_jobs_of_the_first_schema_are_brought_over(redis_url: str, run: Any, raw: redis.Redis) -> None:
    # What is older than it is kept for is not taken into an index.
    jid, later = new_jid(time.time() - 60), new_jid(time.time() - 30)
    wide = [f"m{number}" for number in range(150)]
    of_schema_1(raw, jid, ["a", "b"], ["a"])
    of_schema_1(raw, later, wide, wide, failed=1)
    store = Store.open(redis_url, timeout=5.0, client_name="test")
    assert store.schema.begin() == 1
    code, lines = run("check")
    assert code == 1
    assert f"salt:job:{jid}: a job of schema 1 (repair: of this schema)" in lines
    code, lines = run("migrate")
    assert (code, sorted(lines)) == (0, ["2 jobs brought to schema 2", jid, later])
    assert store.schema.version() == 2
    lives = store.jobs.life(jid)
    assert (lives["a"].state, lives["b"].state) == (State.RETURNED, State.EXPECTED)
    assert store.jobs.life(later)["m7"].times[State.RETURNED] == jid_ms(later) + 50
    for wanted, jids in (
        (JobFilter(minions=("a",)), [jid]),
        (JobFilter(minions=("m7",)), [later]),
        (JobFilter(functions=("cmd.*",)), [later, jid]),
        (JobFilter(users=("joe",), targets=("web*",)), [later, jid]),
        (JobFilter(states=("running",)), [jid]),
        (JobFilter(success=False), [later]),
    ):
        assert [job.jid for job in store.found_jobs.page(wanted).jobs] == jids, wanted
    assert run("check")[0] == 0
    assert store.job_budget.bytes() > 1000
    before = {name: raw.dump(name) for name in raw.scan_iter("*")}
    assert run("migrate") == (0, ["0 jobs brought to schema 2"])
    assert {name: raw.dump(name) for name in raw.scan_iter("*")} == before
    # They go on from there.
    recorded = store.jobs.record_return({"jid": jid, "id": "b", "fun": "test.ping", "return": 1}, ttl=TTL)
    assert (recorded.complete, store.jobs.meta(jid)["answered"]) == (True, "2")


def test_a_migration_that_was_stopped_goes_on(
    redis_url: str, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    jids = [f"2026010100{number:02}00000000" for number in range(20)]
    for jid in jids:
        of_schema_1(raw, jid, ["a"], ["a"])
    check = Check(Client(redis_url, timeout=5.0, client_name="test"))
    done: list[str] = []

    def stop_at_five(jid: str) -> None:
        done.append(jid)
        if len(done) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check.migrate(stop_at_five)
    assert raw.get("salt:schema") is None
    assert check.migrate(done.append) == 15
    assert sorted(done) == jids


def test_a_job_that_is_spoiled_stops_no_migration(run: Any, raw: redis.Redis) -> None:
    of_schema_1(raw, JID, ["a"], ["a"])
    of_schema_1(raw, LATER, ["a"], ["a"])
    raw.delete(keys.ret(JID))
    raw.set(keys.ret(JID), "x")
    code, lines = run("migrate")
    assert code == 1
    assert LATER in lines
    assert [line for line in lines if line.startswith(f"salt:job:{JID}: one of its keys is of another type")]
    assert values.loads_map(raw.get(keys.load(JID)), "load")["jid"] == JID


# ----------------------------------------------------------------------------------------------------------------- bad input


def test_without_redis_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "master").write_text("redis_url: redis://127.0.0.1:1/0\n")
    assert store_main(["check", "-c", str(tmp_path)]) == 69
    assert "redis at redis://127.0.0.1:1/0 does not answer" in capsys.readouterr().err


def test_a_wrong_configuration_or_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "master").write_text("redis_url: [x]\n")
    assert store_main(["check", "-c", str(tmp_path)]) == 78
    (tmp_path / "master").write_text("")
    assert store_main(["check", "-c", str(tmp_path), "--redis-url", "what"]) == 1
    assert "write redis://HOST:PORT/DB" in capsys.readouterr().err
    for words in ([], ["mend"], ["check", "more"]):
        with pytest.raises(SystemExit) as ended:
            store_main(words)
        assert ended.value.code == 2

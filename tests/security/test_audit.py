"""Attacks of a writer of Redis on the audit record, and the actions that it must contain."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zmq

from masterstore import keys
from masterstore.audit import Audit
from masterstore.audit_chain import (
    AuditRecord,
    Seal,
    SealName,
    code_line,
    digest_of,
    entry_text,
    hash_of,
    named_workers,
    read_place,
    verify,
)
from masterstore.client import Client
from masterstore.errors import JidTaken, StoreCorrupt, StoreUnavailable
from masterstore.jobs import Jobs
from masterstore.record_mac import AUDIT_END, AUDIT_ENTRY, AUDIT_SEAL, Records
from masterstore.store import Store
from saltern.kit.config.master import load_client
from saltern.kit.keys.master_keys import MasterKeys, record_mac
from saltern.kit.links.control import connect_control
from saltern.storecheck import audit as command
from tests.roles.lab import Lab, until
from tests.services.mworker.conftest import Worker

pytestmark = pytest.mark.redis

RECORDS = Records(record_mac(b"s" * 32))
STRANGER = Records(record_mac(b"x" * 32))
NewWorker = Callable[..., Worker]


class Record:
    """An audit record of two workers in memory, as Redis holds it: entries, seals and the end."""

    def __init__(self, records: Records = RECORDS) -> None:
        self.records = records
        self.entries: list[AuditRecord] = []
        self.seals: list[AuditRecord] = []
        self.end = (b"", b"")
        self.counts = {"w1": 0, "w2": 0}
        self.last = Seal()

    def write(self, by: str, *, unsure: int = 0, who: str = "ann", at: int = 1000) -> AuditRecord:
        self.counts[by] += 1 + unsure
        text = entry_text({"act": "publish", "who": who}, by, self.counts[by], at, unsure)
        last = int(self.entries[-1].stream_id[:-2]) if self.entries else 0
        entry = AuditRecord(f"{last + 1}-0", text, self.records.code(AUDIT_ENTRY, text))
        self.entries.append(entry)
        return entry

    def seal(self, by: str) -> None:
        covered = [entry for entry in self.entries if int(entry.stream_id[:-2]) > int(self.last.last[:-2])]
        size = sum(len(entry.text) for entry in covered)
        before = self.last
        counts, named_since = named_workers(before, [read_place(entry.text) for entry in covered], 2000)
        self.last = Seal(
            number=before.number + 1,
            prev=hash_of(*self.seals[-1][1:]) if self.seals else "",
            at=2000,
            last=covered[-1].stream_id if covered else before.last,
            count=len(covered),
            size=size,
            digest=digest_of(b"".join(map(code_line, covered))),
            total=before.total + len(covered),
            total_size=before.total_size + size,
            first=max(1, before.first),
            by=by,
            no=self.counts[by],
            since=1000,
            counts=counts,
            named_since=named_since,
        )
        text = self.last.text()
        self.seals.append(
            AuditRecord(f"{len(self.entries)}-{len(self.seals)}", text, self.records.code(AUDIT_SEAL, text))
        )
        self.end = (text, self.records.code(AUDIT_END, text))

    def name(self, at: int = -1) -> SealName:
        """Return the number and hash of a seal, as ``saltern audit verify`` prints those of the last seal."""
        return SealName(at + 1 if at >= 0 else self.last.number, hash_of(*self.seals[at][1:]))

    def faults(self, known: SealName = SealName()) -> tuple[str, ...]:  # noqa: B008 - it never changes
        return verify(self.seals, self.entries, self.end, RECORDS, known=known).faults


def whole(records: Records = RECORDS) -> Record:
    """Return a valid audit record: seven entries with three seals over them, and two entries that are not sealed yet."""
    record = Record(records)
    for by in ("w1", "w2", "w1", "seal w1", "w2", "w1", "w2", "seal w2", "w1", "seal w1", "w1", "w2"):
        if by.startswith("seal"):
            record.seal(by[-2:])
        else:
            record.write(by)
    return record


def changed(one: AuditRecord, old: bytes, new: bytes) -> AuditRecord:
    assert old in one.text
    return one._replace(text=one.text.replace(old, new))


def insert_entry(record: Record, at: int, records: Records) -> None:
    text = entry_text({"act": "publish", "who": "eve"}, "w1", 9, 1000)
    before = record.entries[at - 1].stream_id
    record.entries.insert(at, AuditRecord(f"{before[:-1]}5", text, records.code(AUDIT_ENTRY, text)))


def exchange(items: list[AuditRecord], one: int, other: int) -> None:
    """Exchange the contents of two entries or seals of a stream; the stream ids keep their places."""
    first, second = items[one], items[other]
    items[one], items[other] = second._replace(stream_id=first.stream_id), first._replace(stream_id=second.stream_id)


def repeat(record: Record, number: int, stream_id: str = "99-0") -> None:
    record.entries.append(record.entries[number]._replace(stream_id=stream_id))


def late_seal(record: Record) -> None:
    """Seal the record at a time that is ten minutes after its entries."""
    record.seal("w1")
    record.last = replace(record.last, at=600_000)
    text = record.last.text()
    record.seals[-1] = record.seals[-1]._replace(text=text, mac=record.records.code(AUDIT_SEAL, text))
    record.end = (text, record.records.code(AUDIT_END, text))


def drop_oldest(record: Record, but: str = "") -> None:
    """Remove the oldest seal and its entries, as a worker does when the record is full, and the entries of worker ``but``."""
    record.last = replace(record.last, first=2)
    record.seal("w1")
    record.seals.pop(0)
    del record.entries[:3]
    if but:
        record.entries = [entry for entry in record.entries if read_place(entry.text).by != but]


def cut(record: Record) -> None:
    """Remove the last seal of the record, and the entries that it and later seals would cover."""
    record.seals.pop()
    del record.entries[6:]


def replace_end(record: Record, text: bytes, mac: bytes) -> None:
    record.end = (text, mac)


#: Attack -> what the writer of Redis does to a whole record.
ATTACKS: dict[str, Callable[[Record], object]] = {
    "an entry removed": lambda it: it.entries.pop(2),
    "the first entry removed": lambda it: it.entries.pop(0),
    "a sealed entry at the end removed": lambda it: it.entries.pop(6),
    "all entries removed": lambda it: it.entries.clear(),
    "all entries and seals removed": lambda it: (it.entries.clear(), it.seals.clear()),
    "an entry removed before it was sealed": lambda it: (it.write("w1"), it.entries.pop(7)),
    "the last entry of a worker removed before it was sealed": lambda it: (it.entries.pop(), it.seal("w2")),
    "all entries of a worker removed before they were sealed": lambda it: (
        it.counts.update(w3=0), it.write("w3"), it.entries.pop(), it.seal("w3")),
    "the last seal removed": lambda it: it.seals.pop(),
    "the first seal removed": lambda it: it.seals.pop(0),
    "the first seal and its entries removed": lambda it: (it.seals.pop(0), it.entries.__delitem__(slice(0, 3))),
    "a seal removed": lambda it: it.seals.pop(1),
    "the end cut": cut,
    "the end cut, and the recorded end removed": lambda it: (cut(it), replace_end(it, b"", b"")),
    "the end cut, and its last seal recorded as the end": lambda it: (cut(it), replace_end(it, *it.seals[-1][1:])),
    "the recorded end signed by another master": lambda it: replace_end(it, it.end[0], whole(STRANGER).end[1]),
    "an entry changed": lambda it: it.entries.__setitem__(0, changed(it.entries[0], b"ann", b"bob")),
    "an entry that is not sealed changed": lambda it: it.entries.__setitem__(8, changed(it.entries[8], b"ann", b"bob")),
    "a count changed": lambda it: it.entries.__setitem__(0, changed(it.entries[0], b'"no": 1', b'"no": 7')),
    "a seal changed": lambda it: it.seals.__setitem__(0, changed(it.seals[0], b'"count":3', b'"count":2')),
    "two entries exchanged": lambda it: exchange(it.entries, 0, 1),
    "two entries of two seals exchanged": lambda it: exchange(it.entries, 2, 3),
    "two seals exchanged": lambda it: exchange(it.seals, 0, 1),
    "the order of seals reversed": lambda it: it.seals.reverse(),
    "an entry repeated": lambda it: repeat(it, 1),
    "the newest entry repeated": lambda it: repeat(it, 8),
    "a seal repeated": lambda it: it.seals.append(it.seals[2]._replace(stream_id="99-0")),
    "an old seal at the end": lambda it: it.seals.append(it.seals[0]._replace(stream_id="99-0")),
    "an entry inserted": lambda it: insert_entry(it, 2, STRANGER),
    "an entry inserted without a code": lambda it: insert_entry(it, 2, Records()),
    "an entry inserted at the end": lambda it: insert_entry(it, 9, STRANGER),
    "a code of another kind of record": lambda it: it.entries.__setitem__(
        8, it.entries[8]._replace(mac=RECORDS.code("load", it.entries[8].text))),
    "a seal's code of the end": lambda it: it.seals.__setitem__(2, it.seals[2]._replace(mac=it.end[1])),
    "an entry that is no JSON": lambda it: it.entries.append(AuditRecord("99-0", b"[[[[", b"0")),
    "an empty entry": lambda it: it.entries.append(AuditRecord("99-0", b"", b"")),
    "an empty seal": lambda it: it.seals.append(AuditRecord("99-0", b"", b"")),
    # Finding 38.19: true entries of the past, and gaps that a worker itself reported.
    "a true entry of another time appended": lambda it: repeat(it, 1, "9000000-0"),
    "a true entry of another time of an unknown worker appended": lambda it: (
        it.counts.update(w3=0), it.write("w3", at=9_000_000)),
    "a true entry before its seal's time moved behind the seal": lambda it: (
        it.counts.update(w3=0), late_seal(it), it.write("w3")),
    "an entry removed that its worker reported as unconfirmed": lambda it: it.write("w1", unsure=1),
    "sealed entries removed that their worker reported as unconfirmed": lambda it: (it.write("w1", unsure=2), it.seal("w1")),
    "the oldest seals removed, and a true entry of an ended worker appended": lambda it: (
        drop_oldest(it), it.counts.update(w0=4), it.write("w0")),
    "the oldest seals removed, and all entries of a worker": lambda it: (drop_oldest(it, "w2")),
    "another master's record": lambda it: vars(it).update(vars(whole(STRANGER))),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_verify_finds_a_changed_record(attack: str) -> None:
    record = whole()
    ATTACKS[attack](record)
    assert record.faults()


def test_a_record_that_nobody_changed_has_no_fault() -> None:
    record = whole()
    found = verify(record.seals, record.entries, record.end, RECORDS, known=record.name(0))
    assert found == (9, 2, 1, record.name(), ())
    assert verify([], [], (b"", b""), RECORDS).faults == ()
    drop_oldest(record)
    assert record.faults() == ()
    # A worker that a seal of the past named, and a new one.
    record.counts["w3"] = 0
    for by in ("w2", "w3"):
        record.write(by)
    assert record.faults() == ()


def test_a_redis_that_was_set_back_is_found_by_a_known_seal() -> None:
    old, now = whole(), whole()
    now.seal("w2")
    assert old.faults() == ()
    assert "set back" in old.faults(now.name())[0]
    assert "not the known one" in old.faults(SealName(2, "0" * 64))[0]


@pytest.fixture
def client(redis_url: str) -> Client:
    return Client(redis_url, timeout=5, client_name="test")


def now() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


def test_workers_share_one_record(client: Client) -> None:
    workers = [Audit(client, RECORDS) for _ in range(3)]
    for number in range(30):
        workers[number % 3].append({"act": "publish", "who": str(number)}, now())
        if number % 7 == 0:
            workers[number % 2].seal(now(), kept=1000)
    found = workers[0].verify()
    assert (found.entries, found.unsealed, found.first, found.faults) == (30, 1, 1, ())
    assert [json.loads(entry.text)["who"] for entry in workers[1].entries()] == [str(number) for number in range(30)]
    assert [worker.seal(now(), kept=1000) for worker in workers] == [1, 0, 0]
    # Each says how many entries it wrote; then there is nothing to say any more.
    assert workers[0].verify().last.number == 8
    assert [worker.seal(now(), kept=1000) for worker in workers] == [0, 0, 0]
    assert workers[0].verify().last.number == 8


@pytest.mark.parametrize(("kept", "most_bytes"), [(10, 0), (10_000, 1000)])
def test_the_oldest_entries_leave_with_their_seals(client: Client, kept: int, most_bytes: int) -> None:
    worker, other = Audit(client, RECORDS), Audit(client, RECORDS)
    for number in range(60):
        (worker if number % 2 else other).append({"act": "publish", "who": "ann"}, now())
        if number % 3 == 0:
            worker.seal(now(), kept=kept, most_bytes=most_bytes)
    entries = list(worker.entries())
    assert 5 <= len(entries) <= 15
    found = other.verify()
    assert (found.faults, found.entries) == ((), len(entries))
    assert found.first > 1
    client.redis.xdel(keys.AUDIT, entries[0].stream_id)
    assert other.verify().faults


@pytest.mark.parametrize("attack", ["set back", "end deleted", "end forged"])
def test_a_worker_says_that_the_record_was_changed_and_goes_on(client: Client, attack: str) -> None:
    worker, other = Audit(client, RECORDS), Audit(client, STRANGER)
    for _ in range(3):
        worker.append({"act": "a"}, now())
        worker.seal(now(), kept=10)
    old = client.redis.hgetall(keys.AUDIT_END)
    worker.append({"act": "b"}, now())
    worker.seal(now(), kept=10)
    if attack == "set back":
        client.redis.hset(keys.AUDIT_END, mapping=old)
    elif attack == "end deleted":
        client.redis.delete(keys.AUDIT_END)
    else:
        other.append({"act": "forged"}, now())
        with pytest.raises(StoreCorrupt):
            other.seal(now(), kept=10)
    worker.append({"act": "c"}, now())
    with pytest.raises(StoreCorrupt, match="audit verify"):
        worker.seal(now(), kept=10)
    assert json.loads(list(worker.entries())[-1].text)["act"] == "c"
    assert worker.verify().faults
    worker.append({"act": "d"}, now())
    assert worker.seal(now(), kept=10) == 1


def test_an_entry_has_a_bound(client: Client) -> None:
    worker = Audit(client, RECORDS)
    nested: list[object] = []
    nested.append(nested)
    for arg in (["x" * 1_000_000], [{b"bytes": 1}], nested, ["\ud800"], [{1: 2}]):
        worker.append({"act": "publish", "arg": arg, "fun": "test.arg"}, now())
    entries = list(worker.entries())
    assert all(len(entry.text) < 4096 for entry in entries)
    assert [json.loads(entry.text)["fun"] for entry in entries] == ["test.arg"] * 5
    assert worker.verify().faults == ()


LOAD = {"jid": "20260101000000000000", "fun": "test.ping", "tgt": "*", "arg": [], "user": "ann"}


def test_a_publication_and_its_entry_are_one_step(client: Client) -> None:
    audit = Audit(client, RECORDS)
    jobs = Jobs(client, records=RECORDS, audit=audit)

    def publish(request: str) -> bool:
        audited = {"act": "publish", "who": "ann"}
        return jobs.publish(LOAD, ["a"], request_id=request, ttl=100, now_ms=now(), audited=audited).created

    assert [publish("one"), publish("one")] == [True, False]
    with pytest.raises(JidTaken):
        publish("two")
    (entry,) = audit.entries()
    assert json.loads(entry.text)["jid"] == LOAD["jid"]
    # The refused ones took no number.
    audit.append({"act": "a"}, now())
    assert audit.verify().faults == ()


@pytest.fixture
def hasty(redis_url: str) -> Client:
    """A client that waits 0.2 seconds for an answer."""
    return Client(redis_url, timeout=0.2, client_name="hasty")


@contextmanager
def busy(client: Client, redis_url: str) -> Iterator[None]:
    """Keep Redis busy for two to three seconds, so that it receives commands and answers none. Wait for its end after the
    block.
    """
    loop = "local e = redis.call('TIME')[1] + 3 while redis.call('TIME')[1] + 0 < e do end"
    worker = threading.Thread(target=lambda: client.redis.execute_command("EVAL", loop, 0))

    def silent() -> bool:
        try:
            Client(redis_url, timeout=0.1, client_name="probe").call("ping")
        except StoreUnavailable:
            return True
        return False

    worker.start()
    until(silent, 5, "Redis received the script")
    try:
        yield
    finally:
        worker.join(10)


@pytest.mark.parametrize("written", [True, False], ids=["Redis wrote it", "Redis may write it later"])
def test_an_entry_without_an_answer_is_in_the_record_once(
    client: Client, hasty: Client, redis_url: str, written: bool
) -> None:
    audit = Audit(hasty, RECORDS)
    audit.append({"act": "a"}, now())
    with busy(client, redis_url):
        for act in ("in doubt", "owed"):
            with pytest.raises(StoreUnavailable):
                audit.append({"act": act}, now())
    if written:
        # Redis carries out what it received while it was busy. It may read later requests before.
        until(lambda: client.redis.xlen(keys.AUDIT) == 2, 10, "Redis wrote the entry")
    until(lambda: sealed(audit), 10, "the worker sealed its entries")
    assert audit.verify().faults == ()
    entries = [json.loads(entry.text) for entry in audit.entries()]
    assert [entry["act"] for entry in entries] == ["a", "in doubt", "owed"]
    assert [entry["no"] for entry in entries] == [1, 2, 3]


def sealed(audit: Audit) -> bool:
    """Seal the record, and return whether Redis answered."""
    try:
        return bool(audit.seal(now(), kept=10_000))
    except StoreUnavailable:
        return False


def test_entries_that_a_worker_had_to_drop_are_a_finding(client: Client, hasty: Client) -> None:
    audit = Audit(hasty, RECORDS)
    audit.append({"act": "first"}, now())
    client.redis.execute_command("CLIENT", "PAUSE", 1000, "ALL")
    for number in range(1004):
        with pytest.raises(StoreUnavailable):
            audit.append({"act": str(number)}, now())
    until(lambda: sealed(audit), 10, "the worker sealed its entries")
    acts_found = [json.loads(entry.text)["act"] for entry in audit.entries()]
    assert acts_found[0] == "first"
    assert acts_found[-1] == "1003"
    assert len(acts_found) < 1005
    assert "entries of worker" in "".join(audit.verify().faults)


#: What a writer of Redis does to the audit record before a request, and how he hides it behind the request.
TAKEN_OUT: dict[str, tuple[Callable[[Client], object], Callable[[Client], object]]] = {
    "renamed, and a text in its place": (
        lambda it: (it.redis.rename(keys.AUDIT, "away"), it.redis.set(keys.AUDIT, "x")),
        lambda it: it.redis.rename("away", keys.AUDIT)),
    "renamed, and a list in its place": (
        lambda it: (it.redis.rename(keys.AUDIT, "away"), it.redis.rpush(keys.AUDIT, "x")),
        lambda it: it.redis.rename("away", keys.AUDIT)),
    "every stream id used up": (
        lambda it: it.redis.execute_command("XSETID", keys.AUDIT, f"{2**64 - 1}-{2**64 - 1}"), lambda it: None),
    "a last entry with the largest stream id": (
        lambda it: it.redis.execute_command("XADD", keys.AUDIT, f"{2**64 - 1}-{2**64 - 1}", "entry", "{}", "mac", "0"),
        lambda it: it.redis.xdel(keys.AUDIT, f"{2**64 - 1}-{2**64 - 1}")),
}  # fmt: skip


@pytest.mark.parametrize("attack", TAKEN_OUT)
@pytest.mark.parametrize("action", ["publish", "runner", "wheel"])
def test_no_entry_no_job(new_worker: NewWorker, redis_url: str, attack: str, action: str) -> None:
    worker = new_worker()
    worker.minion("web1")
    client = Client(redis_url, timeout=5, client_name="test")
    asked: dict[str, Any] = {
        "publish": {"fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "request_id": "r"},
        "runner": {"fun": "test.arg", "arg": ["a"], "kwarg": {}},
        "wheel": {"fun": "key.delete", "kwarg": {"match": "web1"}},
    }[action]
    worker.control("wheel", "cli", fun="key.list_all")
    take, put_back = TAKEN_OUT[attack]
    take(client)
    published = client.redis.xlen(keys.PUBLICATIONS)
    answer = worker.control(action, "cli", **asked)
    put_back(client)
    assert answer[0] == "StoreError"
    assert "the audit record salt:audit takes no entry" in answer[1]
    assert client.redis.xlen(keys.PUBLICATIONS) == published
    assert worker.store.jobs.recent(10) == []
    assert list(worker.store.minion_keys.accepted()) == ["web1"]


def acts(worker: Worker) -> list[dict[str, Any]]:
    return [json.loads(entry.text) for entry in worker.store.audit.entries()]


def test_the_record_says_who_did_what(new_worker: NewWorker) -> None:
    worker = new_worker(auto_accept=True, control_acl={"cli": [".*", "@runner", "@wheel"], "eve": []})
    minion = worker.minion("web1", accepted=False)
    minion.sign_in()
    minion.sign_in()
    kwarg = {"__kwarg__": True, "password": "hunter2"}
    asked = {"fun": "user.add", "arg": ["ann", kwarg], "tgt": "*", "tgt_type": "glob"}
    jid = worker.control("publish", "cli", request_id="r", user="ann", **asked)["jid"]
    worker.control("publish", "cli", request_id="r", user="ann", **asked)
    worker.control("runner", "cli", fun="test.arg", arg=["a"], kwarg={"token": "hunter2"}, user="ann")
    worker.control("wheel", "cli", fun="key.delete", kwarg={"match": "web1"}, user="ann")
    worker.control("publish", "eve", request_id="q", **asked)
    found = acts(worker)
    assert [(entry["act"], entry["who"]) for entry in found] == [
        ("sign-in", "web1"),
        ("publish", "cli"),
        ("runner", "cli"),
        ("wheel", "cli"),
        ("refused", "eve"),
    ]
    assert found[1].items() >= {"jid": jid, "fun": "user.add", "tgt": "*", "user": "ann", "minions": 1}.items()
    assert "hunter2" not in json.dumps(found)
    worker.context.audit.seal()
    assert worker.store.audit.verify().faults == ()


def test_refusals_do_not_push_everything_else_out(new_worker: NewWorker) -> None:
    worker = new_worker(control_acl={"eve": []})
    for number in range(200):
        worker.control("publish", "eve", request_id=str(number), fun="test.ping", tgt="*", tgt_type="glob")
    found = acts(worker)
    assert [entry["act"] for entry in found] == ["refused"] * 60
    assert "more" in found[-1]


def test_a_worker_seals_once_a_second(new_worker: NewWorker) -> None:
    worker, now = new_worker(), [100.0]
    log = worker.context.audit
    log.clock = lambda: now[0]

    def sealed(second: float) -> int:
        now[0] = second
        log.seal_when_due()
        return worker.store.audit.verify().last.number

    log.record("wheel", "cli")
    assert [sealed(100), sealed(100.5)] == [1, 1]
    log.record("wheel", "cli")
    assert [sealed(100.9), sealed(101)] == [1, 2]
    # What another worker left when it was killed.
    new_worker().context.audit.record("wheel", "cli")
    assert [sealed(103), sealed(112)] == [2, 3]
    assert worker.store.audit.verify().unsealed == 0


def test_the_record_can_be_switched_off(new_worker: NewWorker) -> None:
    worker = new_worker(audit=False)
    worker.control("wheel", fun="key.list_all")
    assert acts(worker) == []


@pytest.mark.roles
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_no_entry_is_lost_with_its_worker(tmp_path: Path, number: signal.Signals) -> None:
    lab = Lab(tmp_path, minions=())
    try:
        lab.start_all("eventpublisher", "reqserver", "mworker")
        records = Records(record_mac(MasterKeys.load(lab.etc / "keys" / "mworker").secret))
        store = Store.open(lab.master_options.redis_url, client_name="test", records=records)
        store.minion_keys.store("web1", "PEM", "accepted")
        with zmq.Context() as context:
            control = connect_control(load_client(str(lab.etc)), config_dir=str(lab.etc), context=context)
            asked = {"tgt": "web1", "tgt_type": "list", "fun": "test.ping", "arg": [], "kwargs": {}}
            jobs = [control.call("publish", request_id=str(one), **asked)["jid"] for one in range(20)]
            lab.kill("mworker", number)
            control.close()
        before = store.audit.verify()
        assert [json.loads(entry.text)["jid"] for entry in store.audit.entries()] == jobs
        if number == signal.SIGTERM:
            assert before.unsealed == 0
        lab.start("mworker")
        until(lambda: store.audit.verify().unsealed == 0, 30, "another worker sealed the entries")
        assert (before.faults, store.audit.verify().faults) == ((), ())
    finally:
        lab.close()


def test_the_command(
    new_worker: NewWorker, role_keys: Path, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = new_worker()
    worker.control("wheel", fun="key.list_all")
    worker.context.audit.seal()
    worker.context.audit.record("wheel", "cli", fun="\x1b[31m")
    where = ["-c", str(tmp_path), "--redis-url", redis_url]
    verified = ["verify", "--keys", str(role_keys / "mworker"), *where]
    assert command.main(verified) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 entries, 1 of them not sealed yet, seals 1 to 1, no fault; end 1:")
    end = said.split()[-1]
    assert command.main(["export", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [next(kind for kind in ("entry", "seal") if kind in json.loads(line)) for line in lines] == [
        "entry",
        "seal",
        "entry",
    ]
    entries = [found["entry"] for line in lines if "entry" in (found := json.loads(line))]
    assert [entry["who"] for entry in entries] == ["cli", "cli"]
    assert "\x1b" not in "".join(lines)
    assert command.main([*verified, "--known", end]) == 0
    assert command.main([*verified, "--known", "3:00"]) == 1
    Client(redis_url, timeout=5, client_name="test").redis.xdel(keys.AUDIT, json.loads(lines[0])["id"])
    assert command.main(verified) == 1
    assert "seal 1 covers 1 entries" in capsys.readouterr().out
    assert command.main(["verify", "--keys", str(tmp_path), *where]) == 78
    assert command.main(["export", "-c", str(tmp_path), "--redis-url", "redis://127.0.0.1:1/0"]) == 69

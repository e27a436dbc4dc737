"""Attacks of a writer of Redis on the audit record, and the actions that it must contain."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masterstore import keys
from masterstore.audit import Audit, AuditEntry, ChainEnd, end_record, hash_of, linked, verify
from masterstore.client import Client
from masterstore.errors import StoreCorrupt
from masterstore.record_mac import AUDIT_END, Records
from saltern.kit.keys.master_keys import record_mac
from saltern.storecheck import audit as command
from tests.services.mworker.conftest import Worker

pytestmark = pytest.mark.redis

RECORDS = Records(record_mac(b"s" * 32))
STRANGER = Records(record_mac(b"x" * 32))
NewWorker = Callable[..., Worker]


def chain(length: int = 6, records: Records = RECORDS) -> tuple[list[AuditEntry], ChainEnd]:
    end, made = ChainEnd(), []
    for number in range(length):
        entry, mac, end = linked(records, end, {"act": "publish", "who": "ann", "fun": f"f{number}"}, 1000 + number)
        made.append(AuditEntry(f"{number + 1}-0", entry, mac))
    return made, end


def code(end: ChainEnd, records: Records = RECORDS) -> bytes:
    return records.code(AUDIT_END, end_record(end))


def forged(entries: list[AuditEntry], at: int, records: Records) -> AuditEntry:
    """Return an entry that continues ``entries`` at this place, with another load."""
    before = entries[at - 1]
    end = ChainEnd(at, hash_of(before.text, before.mac))
    return AuditEntry("9-9", *linked(records, end, {"act": "publish", "who": "eve"}, 5)[:2])


def changed(entry: AuditEntry, old: bytes, new: bytes) -> AuditEntry:
    assert old in entry.text
    return entry._replace(text=entry.text.replace(old, new))


CHAIN, END = chain()
OTHER, _ = chain(8, STRANGER)

#: Attack -> (entries, recorded end, its code).
ATTACKS: dict[str, tuple[list[AuditEntry], ChainEnd, bytes]] = {
    "an entry removed": ([*CHAIN[:2], *CHAIN[3:]], END, code(END)),
    "the first entry removed": (CHAIN[1:], END, code(END)),
    "the last entry removed": (CHAIN[:-1], END, code(END)),
    "all entries removed": ([], END, code(END)),
    "the end cut, and the recorded end removed": (CHAIN[:-2], ChainEnd(), b""),
    "the end cut, and the recorded end made up": (
        CHAIN[:-1],
        ChainEnd(5, hash_of(CHAIN[4].text, CHAIN[4].mac)),
        code(END),
    ),
    "the recorded end signed by another master": (CHAIN, END, code(END, STRANGER)),
    "an entry changed": ([changed(CHAIN[0], b"ann", b"bob"), *CHAIN[1:]], END, code(END)),
    "the last entry changed": ([*CHAIN[:-1], changed(CHAIN[-1], b"ann", b"bob")], END, code(END)),
    "a number changed": ([changed(CHAIN[0], b'"n": 1', b'"n": 7'), *CHAIN[1:]], END, code(END)),
    "two entries exchanged": ([CHAIN[0], CHAIN[2], CHAIN[1], *CHAIN[3:]], END, code(END)),
    "the order reversed": (CHAIN[::-1], END, code(END)),
    "an entry repeated": ([*CHAIN[:2], CHAIN[1], *CHAIN[2:]], END, code(END)),
    "an old entry at the end": ([*CHAIN, CHAIN[2]], END, code(END)),
    "an entry inserted": ([*CHAIN[:2], forged(CHAIN, 2, STRANGER), *CHAIN[2:]], END, code(END)),
    "an entry inserted without a code": ([*CHAIN[:2], forged(CHAIN, 2, Records()), *CHAIN[2:]], END, code(END)),
    "an entry exchanged": ([*CHAIN[:2], forged(CHAIN, 2, STRANGER), *CHAIN[3:]], END, code(END)),
    "a code of another kind of record": (
        [*CHAIN[:5], CHAIN[5]._replace(mac=RECORDS.code("load", CHAIN[5].text))],
        END,
        code(END),
    ),
    "an entry that is no JSON": ([*CHAIN[:2], AuditEntry("3-0", b"[[[[", b"0"), *CHAIN[2:]], END, code(END)),
    "an empty entry": ([*CHAIN, AuditEntry("7-0", b"", b"")], END, code(END)),
    "another master's chain": (OTHER, END, code(END)),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_verify_finds_a_changed_record(attack: str) -> None:
    entries, end, mac = ATTACKS[attack]
    assert verify(entries, end, mac, RECORDS, kept=100).faults


def test_a_chain_that_nobody_changed_has_no_fault() -> None:
    found = verify(CHAIN, END, code(END), RECORDS, kept=100, known=ChainEnd(3, hash_of(CHAIN[2].text, CHAIN[2].mac)))
    assert (found.faults, found.first, found.last, found.hash) == ((), 1, 6, END.hash)
    assert verify([], ChainEnd(), b"", RECORDS, kept=100).faults == ()
    # Older entries leave by audit_kept, the known end among them.
    assert verify(CHAIN[2:], END, code(END), RECORDS, kept=4, known=ChainEnd(1, "x")).faults == ()


def test_a_redis_that_was_set_back_is_found_by_a_known_end() -> None:
    before, end = chain(4)
    assert verify(before, end, code(end), RECORDS, kept=100).faults == ()
    assert "set back" in verify(before, end, code(end), RECORDS, kept=100, known=END).faults[0]
    another = ChainEnd(3, "0" * 64)
    assert "not the one" in verify(before, end, code(end), RECORDS, kept=100, known=another).faults[0]


@pytest.fixture
def client(redis_url: str) -> Client:
    return Client(redis_url, timeout=5, client_name="test")


def test_workers_share_one_chain(client: Client) -> None:
    workers = [Audit(client, RECORDS) for _ in range(3)]
    for number in range(30):
        workers[number % 3].append({"act": "publish", "who": str(number)}, number, kept=1000)
    found = workers[0].verify(kept=1000)
    assert (found.entries, found.first, found.last, found.faults) == (30, 1, 30, ())
    assert [json.loads(entry.text)["who"] for entry in workers[1].entries()] == [str(number) for number in range(30)]


@pytest.mark.parametrize("attack", ["set back", "end deleted", "end forged"])
def test_a_worker_says_that_the_chain_was_changed_and_goes_on(client: Client, attack: str) -> None:
    worker, other = Audit(client, RECORDS), Audit(client, STRANGER)
    for number in range(3):
        worker.append({"act": "a"}, number, kept=10)
    old = client.redis.hgetall(keys.AUDIT_END)
    worker.append({"act": "b"}, 4, kept=10)
    if attack == "set back":
        client.redis.hset(keys.AUDIT_END, mapping=old)
    elif attack == "end deleted":
        client.redis.delete(keys.AUDIT_END)
    else:
        with pytest.raises(StoreCorrupt):
            other.append({"act": "forged"}, 5, kept=10)
    with pytest.raises(StoreCorrupt, match="audit verify"):
        worker.append({"act": "c"}, 6, kept=10)
    assert json.loads(list(worker.entries())[-1].text)["act"] == "c"
    assert worker.verify(kept=10).faults


def test_an_entry_has_a_bound(client: Client) -> None:
    worker = Audit(client, RECORDS)
    worker.append({"act": "publish", "arg": ["x" * 1_000_000], "fun": "test.arg"}, 1, kept=10)
    (entry,) = worker.entries()
    assert len(entry.text) < 16384
    assert json.loads(entry.text)["fun"] == "test.arg"


def acts(worker: Worker) -> list[dict[str, Any]]:
    return [json.loads(entry.text) for entry in worker.store.audit.entries()]


def test_the_record_says_who_did_what(new_worker: NewWorker) -> None:
    worker = new_worker(audit=True, auto_accept=True, control_acl={"cli": [".*", "@runner", "@wheel"], "eve": []})
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
    assert worker.store.audit.verify(kept=1000).faults == ()


def test_the_record_is_off_by_default(new_worker: NewWorker) -> None:
    worker = new_worker()
    worker.control("wheel", fun="key.list_all")
    assert acts(worker) == []


def test_the_command(
    new_worker: NewWorker, role_keys: Path, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = new_worker(audit=True)
    worker.control("wheel", fun="key.list_all")
    worker.context.record_audit("wheel", "cli", fun="\x1b[31m")
    where = ["-c", str(tmp_path), "--redis-url", redis_url]
    verified = ["verify", "--keys", str(role_keys / "mworker"), *where]
    assert command.main(verified) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 entries, 1 to 2, no fault; end 2:")
    end = said.split()[-1]
    assert command.main(["export", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["entry"]["who"] for line in lines] == ["cli", "cli"]
    assert "\x1b" not in "".join(lines)
    assert command.main([*verified, "--known", end]) == 0
    assert command.main([*verified, "--known", "3:00"]) == 1
    Client(redis_url, timeout=5, client_name="test").redis.xdel(keys.AUDIT, json.loads(lines[0])["id"])
    assert command.main(verified) == 1
    assert "audit_kept" in capsys.readouterr().out
    assert command.main(["verify", "--keys", str(tmp_path), *where]) == 78
    assert command.main(["export", "-c", str(tmp_path), "--redis-url", "redis://127.0.0.1:1/0"]) == 69

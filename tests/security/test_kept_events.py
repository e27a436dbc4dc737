"""Attack: somebody writes to Redis, and wants reactors to act on an event that no role of the master fired.

The attacker reads all that Redis holds and writes what it likes; the attacker does not have the key of events.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

from masterstore import keys
from masterstore.errors import StoreCorrupt
from masterstore.event_codes import EventCodes
from masterstore.record_mac import EVENT
from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.config.reactor_rows import rows_of
from saltern.kit.keys.events_key import event_mac
from saltern.kit.links.event_bus import pack
from saltern.kit.process.service import Role
from saltern.reactor import inbox as inbox_module
from saltern.reactor.event_store import event_stores
from saltern.reactor.inbox import GROUP, EventTask, Inbox
from saltern.reactor.table import ReactorTable

pytestmark = pytest.mark.redis

EVIL = pack("site/deploy", {"id": "web1", "data": {"cmd": "id"}})
MAC = event_mac(b"e" * 32)

Fields = dict[bytes, bytes]
NewRole = Callable[[str, MasterOptions], Role]


class Reactors:
    """A worker that stores events in Redis, and reactors that react to them; reactions are recorded in ``obeyed``."""

    def __init__(self, url: str, new_role: NewRole, options: MasterOptions, key_dir: Path) -> None:
        self.raw = redis.Redis.from_url(url)
        self.worker = Store.open(url, client_name="mworker", event_codes=EventCodes([MAC]))
        self.role = new_role("reactor", options)
        object.__setattr__(self.role, "keys", key_dir)
        self.obeyed: list[str] = []
        self.one = self.reactor()
        self.turn()

    def reactor(self) -> Inbox:
        table = ReactorTable(rows_of(self.role.options.reactor), "master")
        return Inbox(self.role, event_stores(self.role)("reactor"), table, lambda tag, data: None)

    def turn(self, one: Inbox | None = None, times: int = 4) -> None:
        inbox = one or self.one

        def react(task: EventTask) -> None:
            self.obeyed.append(task.tag)
            inbox.finished(task)

        for _ in range(times):
            inbox.poll(react)

    def fire(self, tag: str, **data: Any) -> Fields:
        """Keep an event as a worker does; return the fields of its entry."""
        self.worker.events.keep(pack(tag, data), 1000)
        ((_, fields),) = self.raw.xrevrange(keys.EVENTS, count=1)
        return fields

    def refused(self) -> dict[str, int]:
        """Return {reason: number of refused events} of the metric."""
        lines = self.role.metrics.registry.text().splitlines()
        found = [line for line in lines if line.startswith("salt_events_refused_total{")]
        return {line.split('"')[1]: int(float(line.rsplit(" ", 1)[1])) for line in found}


@pytest.fixture
def key_dir(tmp_path: Path) -> Path:
    (tmp_path / "events.key").write_bytes(b"e" * 32)
    return tmp_path


@pytest.fixture
def reactors(
    redis_url: str,
    new_role: NewRole,
    new_options: Callable[..., MasterOptions],
    key_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Reactors:
    monkeypatch.setattr(inbox_module, "_BLOCK", 5)
    monkeypatch.setattr(inbox_module, "_ALIVE_EVERY", 0.0)
    options = new_options(reactor=[{"site/*": ["/x.sls"]}], redis_url=redis_url)
    return Reactors(redis_url, new_role, options, key_dir)


def _sealed(origin: bytes, frame: bytes, key: bytes = b"e" * 32) -> bytes:
    return origin + b"-" + event_mac(key)(EVENT, b"%s  %s" % (origin, frame))


#: Attack -> (what the attacker appends, given the fields of a genuine event; the reason for which it is refused).
FORGERIES: Mapping[str, tuple[Callable[[Fields], Fields], str]] = {
    "an event without a code": (lambda fields: {b"n": b"9", b"event": EVIL}, "unsigned"),
    "an empty code": (lambda fields: {**fields, b"event": EVIL, b"mac": b""}, "unsigned"),
    "the code of another event": (lambda fields: {**fields, b"event": EVIL}, "forged"),
    "another tag": (lambda fields: {**fields, b"event": fields[b"event"].replace(b"site/ok", b"site/go")}, "forged"),
    "other data": (lambda fields: {**fields, b"event": fields[b"event"].replace(b"web1", b"web2")}, "forged"),
    "one more byte": (lambda fields: {**fields, b"event": fields[b"event"] + b"\xc0"}, "forged"),
    "a later time": (
        lambda fields: {**fields, b"mac": b"%d" % (int(fields[b"mac"].split(b"-")[0]) + 1) + fields[b"mac"][13:]},
        "forged",
    ),
    "another random number": (
        lambda fields: {**fields, b"mac": fields[b"mac"][:14] + b"0" * 16 + fields[b"mac"][30:]},
        "forged",
    ),
    "the beginning of a code": (lambda fields: {**fields, b"mac": fields[b"mac"][:-1]}, "forged"),
    "no code but words": (lambda fields: {**fields, b"mac": b"trust me"}, "forged"),
    "a code by a key of zeros": (
        lambda fields: {b"event": EVIL, b"mac": _sealed(fields[b"mac"][:30], EVIL, bytes(32))},
        "forged",
    ),
    "for another group": (lambda fields: {**fields, b"to": b"reactor"}, "forged"),
    "a second time": (lambda fields: fields, "repeated"),
    "a second time with another number": (lambda fields: {**fields, b"n": b"77"}, "repeated"),
    "after a year": (
        lambda fields: {b"event": EVIL, b"mac": _sealed(b"1763859600000-%s" % (b"0" * 16), EVIL)},
        "old",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_event_is_not_obeyed(name: str, reactors: Reactors) -> None:
    make, reason = FORGERIES[name]
    fields = reactors.fire("site/ok", id="web1")
    reactors.turn()
    reactors.raw.xadd(keys.EVENTS, make(fields))  # type: ignore[arg-type]
    reactors.turn()
    assert reactors.obeyed == ["site/ok"]
    assert reactors.refused() == {reason: 1}
    assert reactors.worker.event_groups.backlog(GROUP).in_hand == 0, "a refused event waits for ever"


def _delivered_again(reactors: Reactors) -> None:
    reactors.raw.xgroup_setid(keys.EVENTS, GROUP, "0")


def _taken_over(reactors: Reactors) -> None:
    """Assign the only event in Redis to a reader that seems to have fallen silent, so that another reader takes it over."""
    ((name, _),) = reactors.raw.xrange(keys.EVENTS)
    reactors.raw.xclaim(keys.EVENTS, GROUP, "ghost", 0, [name], force=True)
    reactors.raw.zadd(keys.event_readers(GROUP), {"ghost": 0})


def _group_made_again(reactors: Reactors) -> None:
    reactors.raw.xgroup_destroy(keys.EVENTS, GROUP)
    reactors.raw.xgroup_create(keys.EVENTS, GROUP, "0")


def _stream_made_again(reactors: Reactors) -> None:
    ((name, fields),) = reactors.raw.xrange(keys.EVENTS)
    reactors.raw.delete(keys.EVENTS)
    reactors.raw.xadd(keys.EVENTS, fields, id=name)  # type: ignore[arg-type]
    reactors.raw.xgroup_create(keys.EVENTS, GROUP, "0")


#: Attack -> how the attacker has an event delivered again that a reactor obeyed.
REPLAYS: Mapping[str, Callable[[Reactors], None]] = {
    "the position is moved back": _delivered_again,
    "a silent reader had it": _taken_over,
    "the group is made again": _group_made_again,
    "the stream is made again": _stream_made_again,
}


@pytest.mark.parametrize("name", REPLAYS)
def test_an_event_is_not_obeyed_twice(name: str, reactors: Reactors) -> None:
    reactors.fire("site/ok")
    reactors.turn()
    REPLAYS[name](reactors)
    reactors.turn()
    assert reactors.obeyed == ["site/ok"]
    assert reactors.refused() == {"repeated": 1}


EVIL_ROWS = [{"site/*": ["/tmp/evil.sls"]}]


def _state(**more: object) -> str:
    return json.dumps({"configured": "", "rows": EVIL_ROWS, "is_leader": True, **more})


#: Attack -> what the attacker writes into the shared table of reactions, given the genuine fields.
TABLES: Mapping[str, Callable[[Fields], Mapping[str, bytes | str | int]]] = {
    "other files": lambda fields: {"state": json.dumps({**json.loads(fields[b"state"]), "rows": EVIL_ROWS})},
    "no code": lambda fields: {
        "state": json.dumps({**json.loads(fields[b"state"]), "rows": EVIL_ROWS}),
        "mac": b"",
    },
    "switched off": lambda fields: {"state": json.dumps({**json.loads(fields[b"state"]), "is_leader": False})},
}


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_table_of_reactions_is_not_used(name: str, reactors: Reactors) -> None:
    genuine = reactors.raw.hgetall(keys.event_group(GROUP))
    reactors.raw.hset(keys.event_group(GROUP), mapping={**TABLES[name](genuine), "version": 7})  # type: ignore[arg-type]
    reactors.fire("site/first")
    reactors.turn()
    for one in (reactors.one, reactors.reactor()):
        reactors.turn(one)
        assert one._table.rows == [{"site/*": ["/x.sls"]}]
        assert one._table.is_leader
    assert reactors.refused()


def test_an_older_table_of_reactions_is_not_used(reactors: Reactors) -> None:
    older = reactors.raw.hgetall(keys.event_group(GROUP))
    reactors.fire("salt/reactors/manage/add", event="new/*", reactors=["/n.sls"])
    reactors.turn()
    reactors.raw.hset(keys.event_group(GROUP), mapping=older)  # type: ignore[arg-type]
    reactors.fire("site/first")
    reactors.turn()
    assert {"new/*": ["/n.sls"]} in reactors.one._table.rows


#: Attack -> what the attacker puts into the list of dead events, which an operator then has handled again.
DEAD: Mapping[str, Callable[[Fields], Fields]] = {
    "an event without a code": lambda fields: {b"event": EVIL, b"why": b"no", b"tries": b"3", b"n": b"1"},
    "the code of another event": lambda fields: {**fields, b"event": EVIL},
    "another tag": lambda fields: {**fields, b"event": fields[b"event"].replace(b"site/ok", b"site/go")},
}


@pytest.mark.parametrize("name", DEAD)
def test_a_forged_dead_event_is_not_handled_again(name: str, reactors: Reactors) -> None:
    fields = reactors.fire("site/ok")
    reactors.turn()
    dead = reactors.raw.xadd(keys.dead_events(GROUP), DEAD[name](fields)).decode()  # type: ignore[arg-type]
    with pytest.raises(StoreCorrupt, match=r"reactor\.drop"):
        reactors.worker.event_groups.revive(GROUP, dead, 1000)
    reactors.turn()
    assert reactors.obeyed == ["site/ok"]


def test_a_request_of_a_reaction_is_not_foreseen(reactors: Reactors) -> None:
    """Whoever knows the id of a request that will come can have it taken for one that was answered."""
    found = []
    for inbox in (reactors.one,):
        reactors.fire("site/ok")
        inbox.poll(lambda task: found.append(task.request_id("/x.sls#0")))
    ((name, fields),) = reactors.raw.xrange(keys.EVENTS)
    task = EventTask(reactors.worker.events.read("0-0/0", 1)[0][0], "site/ok", {})
    assert found == [task.request_id("/x.sls#0")]
    forged = EventTask(type(task.event)(name.decode(), int(fields[b"n"]), fields[b"event"]), "site/ok", {})
    assert forged.request_id("/x.sls#0") not in found


@pytest.mark.ordinary
def test_each_reason_is_logged_once(reactors: Reactors, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    for _ in range(20):
        reactors.raw.xadd(keys.EVENTS, {"event": EVIL})
    reactors.turn()
    assert reactors.refused() == {"unsigned": 20}
    (said,) = [record.message for record in caplog.records if "is not obeyed" in record.message]
    assert "run `saltern keygen` again" in said
    assert "accept_unsigned_records" in said


@pytest.mark.ordinary
def test_events_of_release_0_1_can_be_accepted(
    redis_url: str, new_role: NewRole, new_options: Callable[..., MasterOptions], key_dir: Path
) -> None:
    options = new_options(reactor=[{"site/*": ["/x.sls"]}], redis_url=redis_url, accept_unsigned_records=True)
    reactors = Reactors(redis_url, new_role, options, key_dir)
    old = Store.open(redis_url, client_name="old")
    old.events.keep(pack("site/old", {}), 100)
    fields = reactors.fire("site/new")
    reactors.raw.xadd(keys.EVENTS, {**fields, b"event": EVIL})  # type: ignore[arg-type]
    reactors.turn()
    assert reactors.obeyed == ["site/old", "site/new"]
    assert reactors.refused() == {"forged": 1}


@pytest.mark.ordinary
def test_without_a_key_events_are_obeyed_and_the_log_says_so(
    redis_url: str,
    new_role: NewRole,
    new_options: Callable[..., MasterOptions],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An installation whose keygen has not run again since the upgrade."""
    options = new_options(reactor=[{"site/*": ["/x.sls"]}], redis_url=redis_url)
    reactors = Reactors(redis_url, new_role, options, tmp_path)
    Store.open(redis_url, client_name="old").events.keep(pack("site/old", {}), 100)
    reactors.turn()
    assert reactors.obeyed == ["site/old"]
    assert f"{tmp_path / 'events.key'} is missing" in caplog.text
    assert "saltern keygen" in caplog.text


@pytest.mark.ordinary
@pytest.mark.parametrize("first", ["the reader", "the writer"])
def test_the_key_is_replaced_without_a_lost_event(
    first: str, reactors: Reactors, key_dir: Path, redis_url: str
) -> None:
    """Old events wait, one role is restarted with the new key, then the other one."""
    new = os.urandom(32)
    (key_dir / "events.key.old").write_bytes((key_dir / "events.key").read_bytes())
    (key_dir / "events.key").write_bytes(new)
    reactors.fire("site/before")
    if first == "the reader":
        later = reactors.reactor()
        reactors.fire("site/between")
        reactors.worker = Store.open(redis_url, client_name="mworker", event_codes=EventCodes([event_mac(new), MAC]))
    else:
        reactors.worker = Store.open(redis_url, client_name="mworker", event_codes=EventCodes([event_mac(new), MAC]))
        later = reactors.reactor()
    reactors.fire("site/after")
    reactors.turn(later)
    expected = ["site/before", "site/between", "site/after"] if first == "the reader" else ["site/before", "site/after"]
    assert reactors.obeyed == expected
    assert reactors.refused() == {}


@pytest.mark.ordinary
def test_a_dead_event_is_handled_again(reactors: Reactors) -> None:
    reactors.fire("site/ok")
    batch = reactors.worker.event_groups.read(GROUP, "other", 0, 10)
    assert batch is not None
    reactors.worker.event_groups.bury(GROUP, batch.events[0], "no", 3)
    (dead,) = reactors.worker.event_groups.dead(GROUP, 10)
    assert reactors.worker.event_groups.revive(GROUP, dead.id, 1000)
    reactors.turn()
    assert reactors.obeyed == ["site/ok"]
    assert reactors.worker.event_groups.dead(GROUP, 10) == []

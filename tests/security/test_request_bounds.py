"""Requests that fill Redis or a worker's memory: refused before anything is built or stored."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from saltern.kit.links import event_bus
from saltern.mworker.request_handler import BAD_LOAD
from saltern.reqserver import clear_header
from saltern.reqserver.clear_header import ClearHeader
from saltern.reqserver.dispatch import MAX_ATTEMPTS, RISKY_BYTES, Assign, Dispatcher, GiveUp
from saltern.reqserver.queue import Side
from saltwire.crypticle import Crypticle
from saltwire.envelope import clear_request
from saltwire.errors import PeerFault
from saltwire.handshake import parse_sign_in
from saltwire.keys import PrivateKey, generate_key_string
from saltwire.pack import MAX_VALUES, check_values, packb, unpackb

Worker = Any

NONCE = "0123456789abcdef" * 2

#: Bytes by which a worker's memory may grow while it refuses a request, beside the request itself.
ROOM = 16 * 1024 * 1024


def sign_in(pub: str, minion: str = "web1", **more: object) -> bytes:
    return clear_request({"cmd": "_auth", "id": minion, "nonce": NONCE, "pub": pub, **more})


# ---------------------------------------------------------------------------------------------------------- Redis fills

#: Attack -> the text that is offered as a key, made from a correct PEM.
KEY_TEXTS: dict[str, Callable[[str], str]] = {
    "text before the key": lambda pem: "x" * 10_000 + "\n" + pem,
    "text behind the key": lambda pem: pem + "\n" + "x" * 10_000,
    "white space around the key": lambda pem: " \n" * 5_000 + pem + "\n" * 5_000,
    "empty lines within the key": lambda pem: pem.replace("\n", "\n" * 200),
    "a second key": lambda pem: pem + "\n" + pem,
    "headers of PEM": lambda pem: pem.replace("KEY-----\n", "KEY-----\nComment: " + "x" * 5_000 + "\n\n", 1),
    "a megabyte before the key": lambda pem: "x" * 1_000_000 + "\n" + pem,
    "40 kB behind the key": lambda pem: pem + "\n" + "x" * 40_000,
    "no key at all": lambda pem: "x" * 40_000,
    "an empty text": lambda pem: "",
}

#: Key that the id has already -> list in which the offered key is stored by the master of today's table.
STATES = ("", "pending", "accepted", "rejected")


def stored_bytes(worker: Worker) -> int:
    """Return the number of bytes of all public keys that the master stores for web1."""
    keys = worker.store.minion_keys
    return sum(
        len(pem)
        for state in ("accepted", "pending", "rejected", "denied")
        for pem in keys.pems(state, ["web1"]).values()
    )


@pytest.mark.redis
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("attack", KEY_TEXTS)
def test_nothing_but_the_key_is_stored(
    worker: Worker, minion_keys: tuple[PrivateKey, PrivateKey], attack: str, state: str
) -> None:
    first, other = (key.public.pem for key in minion_keys)
    if state:
        worker.store.minion_keys.store("web1", other, state)
    worker.handler.answer(b"minion", "", sign_in(KEY_TEXTS[attack](first)))
    assert stored_bytes(worker) <= len(first) + len(other)
    assert all(len(str(data)) < 2_000 for _, data in worker.events)


@pytest.mark.redis
@pytest.mark.ordinary
def test_a_stock_minions_key_is_stored_as_it_was(worker: Worker, minion_keys: tuple[PrivateKey, PrivateKey]) -> None:
    pem = minion_keys[0].public.pem
    for text in (pem, pem + "\n", pem.replace("\n", "\r\n"), pem.replace("PUBLIC KEY", "RSA PUBLIC KEY")):
        assert parse_sign_in({"id": "web1", "nonce": NONCE, "pub": text}, version=3).pub == pem
        worker.handler.answer(b"minion", "", sign_in(text))
        assert worker.store.minion_keys.state_of("web1") == ("pending", pem)


@pytest.mark.redis
@pytest.mark.ordinary
def test_a_key_that_an_earlier_release_stored_with_text_is_still_the_same(worker: Worker) -> None:
    minion = worker.minion(accepted=False)
    worker.store.minion_keys.store("web1", "a comment\n" + minion.key.public.pem, "accepted")
    assert minion.sign_in().outcome.value == "accepted"


@pytest.mark.redis
def test_rejected_keys_of_strangers_are_limited(
    worker: Worker, minion_keys: tuple[PrivateKey, PrivateKey], tmp_path: Any
) -> None:
    (tmp_path / "reject").write_text("bad*\n")
    options = worker.context.options
    object.__setattr__(options, "max_pending_keys", 3)
    object.__setattr__(options, "autoreject_file", str(tmp_path / "reject"))
    for number in range(6):
        worker.handler.answer(b"minion", "", sign_in(minion_keys[0].public.pem, f"bad{number}"))
    assert len(worker.store.minion_keys.ids("rejected")) == 3


# --------------------------------------------------------------------------------------------------------- memory grows


def _envelope(load: bytes) -> bytes:
    """Return the bytes of an unencrypted request whose load is given as msgpack bytes."""
    return b"\x83\xa3enc\xa5clear\xa7version\x03\xa4load" + load


def _list(count: int, item: bytes) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + item * count


MANY = 3_000_000

#: Attack -> a request of a stranger on 4506.
REQUESTS: dict[str, Callable[[], bytes]] = {
    "empty maps in the load": lambda: _envelope(_list(MANY, b"\x80")),
    "empty lists in the load": lambda: _envelope(_list(MANY, b"\x90")),
    "empty maps as the request": lambda: _list(MANY, b"\x80"),
    "empty maps as a field of the envelope": lambda: b"\x84\xa1x" + _list(MANY, b"\x80") + _envelope(b"\x80")[1:],
    "empty maps as autosign grains": lambda: _envelope(b"\x81\xafautosign_grains" + _list(MANY, b"\x80")),
    "empty maps said to be encrypted": lambda: b"\x82\xa3enc\xa3aes\xa4load" + _list(MANY, b"\x80"),
    "empty maps behind the request": lambda: _envelope(b"\x80") + b"\x80" * MANY,
    "empty maps within an extension value": lambda: _envelope(
        b"\xc9" + (MANY + 5).to_bytes(4, "big") + b"\x4f" + _list(MANY, b"\x80")
    ),
    "short texts in the load": lambda: _envelope(_list(MANY, b"\xa2xy")),
    "lists of announced but missing items": lambda: _envelope(b"\xdd\x7f\xff\xff\xff" * 400),
    "lists within lists": lambda: _envelope(b"\x91" * MANY),
    "a map of a million keys": lambda: _envelope(
        b"\xdf\x00\x0f\x42\x40" + b"".join(b"\xce" + n.to_bytes(4, "big") + b"\x80" for n in range(1_000_000))
    ),
    "a large key": lambda: sign_in("x" * 8_000_000),
    "a large id": lambda: sign_in("x", "x" * 8_000_000),
    "a large token": lambda: sign_in("x", token="x" * 8_000_000),
    "a large field that no command has": lambda: sign_in("x", more="x" * 8_000_000),
    "a large ping": lambda: clear_request({"cmd": "ping", "more": "x" * 8_000_000}),
}


@pytest.mark.redis
@pytest.mark.parametrize("attack", REQUESTS)
def test_a_strangers_request_is_not_built(worker: Worker, attack: str) -> None:
    payload = REQUESTS[attack]()
    tracemalloc.start()
    try:
        answer = worker.handler.answer(b"minion", "", payload)
        assert tracemalloc.get_traced_memory()[1] < ROOM
    finally:
        tracemalloc.stop()
    assert answer == BAD_LOAD


@pytest.mark.parametrize("attack", [name for name in REQUESTS if "encrypted" not in name])
def test_the_reqserver_hands_no_large_clear_request_to_a_worker(attack: str) -> None:
    payload = REQUESTS[attack]()
    assert len(payload) <= 64 * 1024 or not clear_header.is_plausible(payload)


#: Attack -> an encrypted load of an accepted minion.
LOADS: dict[str, bytes] = {
    "empty maps": b"\x82\xa3cmd\xa7_return\xa6return" + _list(MANY, b"\x80"),
    "numbers": b"\x82\xa3cmd\xa7_return\xa6return" + _list(MANY, b"\x01"),
    "maps within lists": b"\x82\xa3cmd\xa7_return\xa6return" + _list(MANY // 4, b"\x91\x91\x91\x80"),
}


@pytest.mark.parametrize("attack", LOADS)
def test_an_encrypted_load_is_counted_before_it_is_built(attack: str) -> None:
    crypticle = Crypticle(generate_key_string())
    sealed = crypticle.encrypt(b"pickle::" + LOADS[attack])
    tracemalloc.start()
    try:
        with pytest.raises(PeerFault, match="more than 500000 values"):
            crypticle.loads(sealed, most=MAX_VALUES)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(sealed) + ROOM
    finally:
        tracemalloc.stop()


@pytest.mark.redis
def test_an_accepted_minions_request_is_counted(worker: Worker) -> None:
    minion = worker.minion()
    payload, _ = minion.session.seal({"cmd": "_return", "return": [{}] * (MAX_VALUES + 1)}, 0)
    assert worker.handler.answer(b"minion", "", payload) == BAD_LOAD


@pytest.mark.redis
def test_an_operators_request_is_counted(worker: Worker) -> None:
    answer = worker.handler.answer(b"control", "ann", b"\x81\xa3arg" + _list(MANY, b"\x80"))
    assert msgpack.unpackb(answer)["error"]["message"] == "a message of more than 500000 values"


def test_an_event_is_counted() -> None:
    assert event_bus.unpack(b"tag\n\n\x81\xa1x" + _list(MANY, b"\x80")) is None


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, -1, 200, 70_000, 2**40, -(2**40), 1.5, None, True], "b" * 40: "c" * 300, "d": b"e" * 70_000},
        [[], {}, [{}], "x" * 31, "x" * 32, "x" * 70_000, msgpack.ExtType(5, b"1234"), msgpack.ExtType(5, b"123")],
        [0] * 20 + [dict.fromkeys(range(20), "x")] + [list(range(70_000))],
    ],
)
@pytest.mark.ordinary
def test_values_are_counted_exactly(value: object) -> None:
    def count(one: object) -> int:
        if isinstance(one, dict):
            return 1 + sum(count(key) + count(item) for key, item in one.items())
        return 1 + sum(map(count, one)) if isinstance(one, list) else 1

    for data in (packb(value), msgpack.packb(value)):
        check_values(data, count(value))
        if len(data) > count(value):
            with pytest.raises(PeerFault):
                check_values(data, count(value) - 1)


@pytest.mark.ordinary
def test_large_true_loads_are_read() -> None:
    packages = {f"package-{number}": {"version": "1.2.3", "arch": "amd64"} for number in range(60_000)}
    assert unpackb(packb(packages), most=MAX_VALUES) == packages
    assert unpackb(packb("x" * 5_000_000), most=64) == "x" * 5_000_000


# ------------------------------------------------------------------------------------------------ workers are ended


@pytest.mark.parametrize(
    ("side", "cmd", "payload", "deaths"),
    [
        (Side.MINION, "_auth", b"x", 1),
        (Side.MINION, "ping", b"x", 1),
        (Side.MINION, "", b"x" * (RISKY_BYTES + 1), 1),
        (Side.MINION, "", b"x", MAX_ATTEMPTS),
        (Side.CONTROL, "runner", b"x", MAX_ATTEMPTS),
    ],
    ids=["a sign-in", "a ping", "a large request", "a small encrypted request", "an operator's request"],
)
def test_a_request_that_ends_workers_is_given_up(side: Side, cmd: str, payload: bytes, deaths: int) -> None:
    dispatcher = Dispatcher()
    workers = [b"w1", b"w2", b"w3", b"w4"]
    for name in workers:
        dispatcher.ready(name, 0.0)
    told = dispatcher.request(side, (b"r", b""), "", payload, 0.0, header=ClearHeader(cmd, b"web1"))
    ended = 0
    while assigned := [one for one in told if isinstance(one, Assign)]:
        ended += 1
        told = dispatcher.hung(assigned[0].worker, float(ended))
    assert ended == deaths
    assert [type(one) for one in told] == [GiveUp]
    assert len(dispatcher.workers) == len(workers) - deaths

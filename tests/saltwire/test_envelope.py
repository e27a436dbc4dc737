"""Requests on 4506: what is opened, what is refused with which answer, and the minion's half of it."""

from __future__ import annotations

import contextlib
import functools
import string
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltwire import pack
from saltwire.crypticle import Crypticle
from saltwire.envelope import (
    BAD_LOAD,
    ClientSession,
    Envelope,
    OpenedRequest,
    clear_request,
    open_request,
    parse_request,
    seal_reply,
)
from saltwire.errors import AuthenticationError, NonceError, PeerFault
from saltwire.keys import PrivateKey, PublicKey, generate_key_string
from saltwire.pack import packb, unpackb

NOW = 1_800_000_000.5
NONCE = "0123456789abcdef0123456789abcdef"
SESSION, LAST, SHARED, FOREIGN = (Crypticle(generate_key_string()) for _ in range(4))


class Master:
    """A master that knows the keys of minion ``a``."""

    def __init__(self, accepted: Mapping[str, PublicKey]) -> None:
        self.accepted = accepted
        self.asked: list[str] = []

    def open(self, payload: bytes, **options: Any) -> OpenedRequest:
        return open_request(
            parse_request(payload),
            session_keys=self.session_keys,
            shared_keys=[SHARED],
            public_pem_of=self.pem_of,
            now=options.pop("now", NOW),
            **options,
        )

    def pem_of(self, minion: str) -> str | None:
        return self.accepted[minion].pem if minion in self.accepted else None

    def session_keys(self, minion: str) -> list[Crypticle]:
        self.asked.append(minion)
        return [SESSION, LAST] if minion in self.accepted else []


@pytest.fixture
def master(minion_key: PrivateKey) -> Master:
    return Master({"a": minion_key.public})


@pytest.fixture(scope="module")
def session(minion_key: PrivateKey) -> ClientSession:
    return ClientSession("a", SESSION, minion_key)


# ------------------------------------------------------------------------------------------------------------- the outer map


def test_an_envelope() -> None:
    assert parse_request(packb({"enc": "clear", "load": {"cmd": "ping"}, "version": 3})) == Envelope(
        "clear", {"cmd": "ping"}, 3, "", "OAEP-SHA1", "PKCS1v15-SHA1"
    )
    outer = {"enc": "aes", "load": b"\xff", "version": 3, "id": "a", "enc_algo": "X", "sig_algo": "Y"}
    assert parse_request(packb(outer)) == Envelope("aes", b"\xff", 3, "a", "X", "Y")


@pytest.mark.parametrize(
    ("version", "read"),
    [(3, 3), (2, 2), (1, 1), (0, 0), (4, 3), (99, 3), (2**64 - 1, 3), ("3", 3), (b"2", 2), (2.9, 2), (-1, -1), (None, 0),
     ("x", 0), ("", 0), ([], 0), ({}, 0), (float("nan"), 0), (float("inf"), 0), ("9" * 5000, 0), (b"\xff", 0)],
    ids=str,
)  # fmt: skip
def test_versions(version: Any, read: int) -> None:
    assert parse_request(packb({"enc": "clear", "load": {}, "version": version})).version == read
    assert parse_request(packb({"enc": "clear", "load": {}})).version == 0


BAD_OUTER: dict[str, bytes] = {
    "nothing": b"",
    "garbage": b"\xc1\x00garbage",
    "a text": packb("hello"),
    "a list": packb(["enc", "load"]),
    "a number": packb(1),
    "none": packb(None),
    "an empty map": packb({}),
    "no enc": packb({"load": {}}),
    "no load": packb({"enc": "clear"}),
    "another scheme": packb({"enc": "pub", "load": {}}),
    "no scheme": packb({"enc": None, "load": {}}),
    "a list of schemes": packb({"enc": ["aes"], "load": {}}),
    "schemes that are no text": packb({"enc": b"\xff", "load": {}}),
    "keys of nested lists": b"\x81\x91\x01\x01",
    "too deep": b"\x91" * 1000 + b"\x01",
}


@pytest.mark.parametrize("payload", BAD_OUTER.values(), ids=BAD_OUTER.keys())
def test_bad_envelopes_are_bad_loads(payload: bytes) -> None:
    with pytest.raises(PeerFault) as caught:
        parse_request(payload)
    assert caught.value.reply == BAD_LOAD == b"\xa8bad load"


def test_every_cut_of_an_envelope_is_a_bad_load(session: ClientSession) -> None:
    payload, _ = session.seal({"cmd": "x"}, NOW)
    for length in range(len(payload)):
        with pytest.raises(PeerFault) as caught:
            parse_request(payload[:length])
        assert caught.value.reply == BAD_LOAD


def test_an_oversized_envelope_is_a_bad_load(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = clear_request({"cmd": "ping", "data": "x" * 1000})
    assert parse_request(payload).load["cmd"] == "ping"
    monkeypatch.setattr(pack, "MAX_MESSAGE", 1000)
    with pytest.raises(PeerFault, match="1000 are allowed") as caught:
        parse_request(payload)
    assert caught.value.reply == BAD_LOAD


def test_a_clear_request_in_bytes() -> None:
    expected = b"\x83\xa3enc\xa5clear\xa4load\x81\xa3cmd\xa4ping\xa7version\x03"
    assert clear_request({"cmd": "ping"}) == expected


# ------------------------------------------------------------------------------------------------------------ there and back


def test_a_request_is_opened_and_answered(master: Master, session: ClientSession) -> None:
    payload, nonce = session.seal({"cmd": "_file_list", "saltenv": "base"}, NOW)
    opened = master.open(payload)
    # Nonce, token and time are taken out; the id stays.
    assert opened.load == {"cmd": "_file_list", "saltenv": "base", "id": "a"}
    assert (opened.id, opened.nonce, opened.version) == ("a", nonce, 3)
    assert (opened.enc_algo, opened.sig_algo) == ("OAEP-SHA1", "PKCS1v15-SHA1")
    reply = seal_reply(opened, ["top.sls"])
    assert session.open(reply, nonce) == ["top.sls"]
    assert isinstance(unpackb(reply, raw=True), bytes)


def test_the_form_of_a_request(session: ClientSession, minion_key: PrivateKey) -> None:
    payload, nonce = session.seal({"cmd": "x", "id": "somebody else", "tok": "mine"}, NOW)
    outer = unpackb(payload)
    assert {**outer, "load": None} == {
        "enc": "aes",
        "load": None,
        "version": 3,
        "id": "a",
        "patient": True,
        "enc_algo": "OAEP-SHA1",
        "sig_algo": "PKCS1v15-SHA1",
    }
    inner = SESSION.loads(pack.octets(outer["load"]) or b"")
    assert inner == {
        "cmd": "x",
        "id": "a",
        "nonce": nonce,
        "ts": int(NOW),
        "tok": minion_key.x931_sign(b"salt"),
    }
    assert len(nonce) == 32
    assert set(nonce) <= set(string.hexdigits)
    assert session.seal({"cmd": "x"}, NOW)[1] != nonce


def test_the_last_epochs_key_still_opens_and_answers(master: Master, minion_key: PrivateKey) -> None:
    late = ClientSession("a", LAST, minion_key)
    payload, nonce = late.seal({"cmd": "x"}, NOW)
    opened = master.open(payload)
    assert opened.key is LAST
    assert late.open(seal_reply(opened, True), nonce) is True


@pytest.mark.parametrize("value", [None, True, "", "text", b"\xff\xfe", [1], {"a": {}}, 2**64], ids=str)
def test_every_kind_of_answer(master: Master, session: ClientSession, value: Any) -> None:
    payload, nonce = session.seal({"cmd": "x"}, NOW)
    answer = session.open(seal_reply(master.open(payload), value), nonce)
    assert answer == (str(value) if value == 2**64 else value)


def test_raw_answers(master: Master, session: ClientSession) -> None:
    payload, nonce = session.seal({"cmd": "x"}, NOW)
    reply = seal_reply(master.open(payload), {"data": b"text", "dest": "a"})
    assert session.open(reply, nonce, raw=True) == {"data": b"text", "dest": b"a"}


def test_the_algorithms_of_the_request_are_handed_on(master: Master, minion_key: PrivateKey) -> None:
    modern = ClientSession("a", SESSION, minion_key, enc_algo="OAEP-SHA224", sig_algo="PKCS1v15-SHA224")
    opened = master.open(modern.seal({"cmd": "x"}, NOW)[0])
    assert (opened.enc_algo, opened.sig_algo) == ("OAEP-SHA224", "PKCS1v15-SHA224")


# ----------------------------------------------------------------------------------------------------------- what is refused

DROP = object()


@functools.cache
def token_of(key: PrivateKey) -> bytes:
    return key.x931_sign(b"salt")


def request(
    minion_key: PrivateKey, key: Crypticle = SESSION, *, sealed: Any = DROP, outer: Any = (), **inner: Any
) -> bytes:
    """A request of a modern minion, but for what is given."""
    load = {"cmd": "x", "nonce": NONCE, "ts": int(NOW), "tok": token_of(minion_key), "id": "a"} | inner
    load = {name: value for name, value in load.items() if value is not DROP}
    envelope = {
        "enc": "aes",
        "load": key.dumps(load) if sealed is DROP else sealed,
        "version": 3,
        "id": "a",
        "enc_algo": "OAEP-SHA1",
        "sig_algo": "PKCS1v15-SHA1",
    } | dict(outer)
    return packb({name: value for name, value in envelope.items() if value is not DROP})


def test_the_request_that_the_table_starts_from_is_good(master: Master, minion_key: PrivateKey) -> None:
    assert master.open(request(minion_key)).load == {"cmd": "x", "id": "a"}


Request = Callable[[PrivateKey, PrivateKey], bytes]

#: A request that is refused -> what its sender is told. In the order of docs/protocol.md#reply-order.
REFUSED: dict[str, tuple[Request, Any]] = {
    "version 2": (lambda own, _: request(own, outer={"version": 2}), "bad load"),
    "no version": (lambda own, _: request(own, outer={"version": DROP}), "bad load"),
    "version of words": (lambda own, _: request(own, outer={"version": "three"}), "bad load"),
    "encryption unknown": (lambda own, _: request(own, outer={"enc_algo": "ROT13"}), "bad load"),
    "signature unknown": (lambda own, _: request(own, outer={"sig_algo": "MD5"}), "bad load"),
    "no id": (lambda own, _: request(own, outer={"id": DROP}), "bad load"),
    "empty id": (lambda own, _: request(own, outer={"id": ""}, id=""), "bad load"),
    "id with a slash": (lambda own, _: request(own, outer={"id": "../a"}, id="../a"), "bad load"),
    "id that is a number": (lambda own, _: request(own, outer={"id": 5}), "bad load"),
    "id that is no text": (lambda own, _: request(own, outer={"id": b"\xff"}), "bad load"),
    "nobody's id": (lambda own, _: request(own, outer={"id": "b"}, id="b"), "bad load"),
    "another's key": (lambda own, _: request(own, FOREIGN), "bad load"),
    "the shared key": (lambda own, _: request(own, SHARED), "bad load"),
    "not encrypted": (lambda own, _: request(own, outer={"enc": "clear"}), "bad load"),
    "load is a map": (lambda own, _: request(own, sealed={"cmd": "x"}), "bad load"),
    "load is a number": (lambda own, _: request(own, sealed=5), "bad load"),
    "load is none": (lambda own, _: request(own, sealed=None), "bad load"),
    "load is empty": (lambda own, _: request(own, sealed=b""), "bad load"),
    "load is text": (lambda own, _: request(own, sealed="bad load"), "bad load"),
    "sealed garbage": (lambda own, _: request(own, sealed=SESSION.encrypt(b"pickle::\xc1")), "bad load"),
    "sealed list": (lambda own, _: request(own, sealed=SESSION.dumps([1])), "payload and load must be a dict"),
    "sealed text": (lambda own, _: request(own, sealed=SESSION.dumps("x")), "payload and load must be a dict"),
    # A foreign plaintext counts as an empty map (docs/protocol.md#crypticle), which has no token.
    "sealed something else": (lambda own, _: request(own, sealed=SESSION.encrypt(b"else")), "bad load"),
    "inner id has a null byte": (lambda own, _: request(own, id="a\0"), "bad load: id contains a null byte"),
    "inner id is a number": (lambda own, _: request(own, id=5), "bad load: id 5 is not a string"),
    "inner id is no text": (lambda own, _: request(own, id=b"\xff"), "bad load: id b'\\xff' is not a string"),
    "nonce too short": (lambda own, _: request(own, nonce="abc"), "bad load"),
    "nonce too long": (lambda own, _: request(own, nonce=NONCE + "0"), "bad load"),
    "nonce with letters of two bytes": (lambda own, _: request(own, nonce="ä" * 32), "bad load"),
    "nonce that is no text": (lambda own, _: request(own, nonce=b"\xff" * 32), "bad load"),
    "ids differ": (lambda own, _: request(own, id="b"), "bad load"),
    "no inner id": (lambda own, _: request(own, id=DROP), "bad load"),
    "no token": (lambda own, _: request(own, tok=DROP), "bad load"),
    "token is none": (lambda own, _: request(own, tok=None), "bad load"),
    "token is a number": (lambda own, _: request(own, tok=5), "bad load"),
    "empty token": (lambda own, _: request(own, tok=b""), "bad load"),
    "token of zeros": (lambda own, _: request(own, tok=b"\0" * 256), "bad load"),
    "another's token": (lambda _, other: request(other), "bad load"),
    "token of another word": (lambda own, _: request(own, tok=own.x931_sign(b"pepper")), "bad load"),
    "no command": (lambda own, _: request(own, cmd=DROP), "Some exception handling minion payload"),
}


@pytest.mark.parametrize(("make", "answer"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_requests(
    master: Master, minion_key: PrivateKey, other_key: PrivateKey, make: Request, answer: str
) -> None:
    with pytest.raises(PeerFault) as caught:
        master.open(make(minion_key, other_key))
    assert caught.value.reply is not None
    assert unpackb(caught.value.reply) == answer


def test_nobody_speaks_for_another_even_with_its_token(minion_key: PrivateKey, other_key: PrivateKey) -> None:
    both = Master({"a": minion_key.public, "b": other_key.public})
    with pytest.raises(PeerFault, match="the load's id is not the envelope's") as caught:
        both.open(request(other_key, id="b"))
    assert caught.value.reply == BAD_LOAD


def test_keys_are_never_looked_up_for_what_is_no_id(master: Master, minion_key: PrivateKey) -> None:
    for bad in ("../a", "", "a\0", b"\xff", 5):
        with pytest.raises(PeerFault):
            master.open(request(minion_key, outer={"id": bad}))
    assert master.asked == []


@pytest.mark.parametrize(
    ("ts", "ttl", "good"),
    [
        (int(NOW), 30, True),
        (int(NOW) - 30, 30, False),
        (int(NOW) - 29, 30, True),
        # A clock that is ahead is no replay.
        (int(NOW) + 10_000, 30, True),
        (0, 30, False),
        (0, 0, True),
        (DROP, 30, False),
        (DROP, 0, True),
        ("soon", 30, False),
        ("soon", 0, True),
        (2**64 - 1, 30, True),
    ],
)
def test_old_requests(master: Master, minion_key: PrivateKey, ts: Any, ttl: int, good: bool) -> None:
    payload = request(minion_key, ts=ts)
    if good:
        assert master.open(payload, ttl=ttl).load == {"cmd": "x", "id": "a"}
    else:
        with pytest.raises(PeerFault, match="too old") as caught:
            master.open(payload, ttl=ttl)
        assert caught.value.reply == BAD_LOAD


def test_a_request_without_a_nonce_gets_an_answer_without_one(master: Master, minion_key: PrivateKey) -> None:
    opened = master.open(request(minion_key, nonce=DROP))
    assert opened.nonce is None
    assert SESSION.loads(pack.octets(unpackb(seal_reply(opened, "x"))) or b"") == "x"


def test_a_token_is_recovered_once(master: Master, minion_key: PrivateKey, other_key: PrivateKey) -> None:
    cache: dict[Any, Any] = {}
    master.open(request(minion_key), tok_cache=cache)
    assert len(cache) == 1
    master.open(request(minion_key), tok_cache=cache)
    assert len(cache) == 1
    for wrong in (b"\0" * 256, other_key.x931_sign(b"salt")):
        with pytest.raises(PeerFault, match="wrong token"):
            master.open(request(minion_key, tok=wrong), tok_cache=cache)
    # Another key was accepted for the id: what is remembered of the first does not let it in.
    replaced = Master({"a": other_key.public})
    with pytest.raises(PeerFault, match="wrong token"):
        replaced.open(request(minion_key), tok_cache=cache)
    with pytest.raises(PeerFault, match="no accepted key"):
        open_request(
            parse_request(request(minion_key)),
            session_keys=lambda minion: [SESSION],
            shared_keys=[],
            public_pem_of=lambda minion: None,
            now=NOW,
            tok_cache=cache,
        )


# ---------------------------------------------------------------------------------------------------------------- version two


def test_a_minion_of_version_two(master: Master, minion_key: PrivateKey) -> None:
    old = ClientSession("a", SHARED, minion_key, version=2)
    payload, nonce = old.seal({"cmd": "_file_envs"}, NOW)
    assert set(unpackb(payload)) == {"enc", "load", "version"}
    with pytest.raises(PeerFault, match="older than 3"):
        master.open(payload)
    opened = master.open(payload, minimum_version=2)
    # Masters of that time choke on keys they do not know: there is no time and no id.
    assert opened.load == {"cmd": "_file_envs"}
    assert (opened.id, opened.version, opened.key) == ("", 2, SHARED)
    assert old.open(seal_reply(opened, ["base"]), nonce) == ["base"]


OLD_REFUSED: dict[str, dict[str, Any]] = {
    "wrong token": {"tok": b"\0" * 256, "id": "a"},
    "nobody's token": {"tok": b"x", "id": "b"},
    "id that leaves its directory": {"id": "../../etc/passwd"},
    "id that leaves, without a token": {"id": ".."},
    "number": {"id": 5},
    "NUL": {"id": "a\0b"},
}


@pytest.mark.parametrize("load", OLD_REFUSED.values(), ids=OLD_REFUSED.keys())
def test_refused_requests_of_version_two(master: Master, load: dict[str, Any]) -> None:
    payload = packb({"enc": "aes", "load": SHARED.dumps({"cmd": "x", "nonce": NONCE, **load}), "version": 2})
    with pytest.raises(PeerFault) as caught:
        master.open(payload, minimum_version=2)
    assert caught.value.reply is not None
    assert str(unpackb(caught.value.reply)).startswith("bad load")


def test_a_token_of_version_two_is_checked(master: Master, minion_key: PrivateKey) -> None:
    old = ClientSession("a", SHARED, minion_key, version=2)
    payload, _ = old.seal({"cmd": "_mine", "id": "a", "tok": "to be filled in"}, NOW)
    assert master.open(payload, minimum_version=2).id == "a"


@pytest.mark.parametrize("version", [0, 1])
def test_answers_to_older_ones_have_no_nonce(master: Master, version: int) -> None:
    payload = packb({"enc": "aes", "load": SHARED.dumps({"cmd": "x", "nonce": NONCE}), "version": version})
    opened = master.open(payload, minimum_version=0)
    assert SHARED.loads(pack.octets(unpackb(seal_reply(opened, "y"))) or b"") == "y"


# -------------------------------------------------------------------------------------------------------- the minion's side


@pytest.mark.parametrize(
    "reply",
    [packb("bad load"), packb("Some exception handling minion payload"), packb({}), packb(None), packb(5), packb([1]),
     packb({"error": "Routing error"}), packb(b""), packb(b"\xff" * 500), packb(FOREIGN.dumps("x", NONCE))],
    ids=["bad load", "exception", "map", "none", "number", "list", "error", "empty", "noise", "another key"],
)  # fmt: skip
def test_answers_that_ask_for_a_new_sign_in(session: ClientSession, reply: bytes) -> None:
    with pytest.raises(AuthenticationError):
        session.open(reply, NONCE)


@pytest.mark.parametrize(
    "said",
    [
        "bad load",
        *("the master cannot reach Redis: ".ljust(length, "x") for length in (199, 200, 208, 224, 255, 256, 900)),
    ],
    ids=len,
)
def test_what_the_master_said_is_told(session: ClientSession, said: str) -> None:
    """A long text is no ciphertext, either: a minion that took it for one would sign in again."""
    with pytest.raises(AuthenticationError, match=f"^the master answered '{said}'$"):
        session.open(packb(said), NONCE)


def test_the_answer_to_another_request(session: ClientSession) -> None:
    for sealed in (SESSION.dumps(True, "f" * 32), SESSION.dumps(True)):
        with pytest.raises(NonceError):
            session.open(packb(sealed), NONCE)


@pytest.mark.parametrize("reply", [b"", b"\xc1", b"\x91"])
def test_an_answer_that_is_no_message(session: ClientSession, reply: bytes) -> None:
    with pytest.raises(PeerFault):
        session.open(reply, NONCE)


# ---------------------------------------------------------------------------------------------------------------------- fuzz

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.integers() | st.binary(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)


def test_an_envelope_of_any_values_is_opened_or_refused(minion_key: PrivateKey) -> None:
    names = ("enc", "load", "version", "id", "enc_algo", "sig_algo")
    good = unpackb(request(minion_key))
    known = Master({"a": minion_key.public})
    answers: list[bytes | None] = []

    @settings(max_examples=50)
    @given(st.dictionaries(st.sampled_from(names), VALUES, max_size=3), st.sampled_from([0, 2, 3]))
    def check(changes: dict[str, Any], minimum: int) -> None:
        try:
            known.open(packb({**good, **changes}), minimum_version=minimum)
        except PeerFault as fault:
            answers.append(fault.reply)

    check()
    assert all(answers)


def test_a_load_of_any_values_is_opened_or_refused(minion_key: PrivateKey) -> None:
    names = ("cmd", "nonce", "ts", "tok", "id")
    token = minion_key.x931_sign(b"salt")
    known = Master({"a": minion_key.public})
    answers: list[bytes | None] = []

    @settings(max_examples=50)
    @given(st.dictionaries(st.sampled_from(names), VALUES, max_size=5), VALUES, st.sampled_from([2, 3]), st.booleans())
    def check(changes: dict[str, Any], whole: Any, version: int, replaced: bool) -> None:
        load = whole if replaced else {"cmd": "x", "nonce": NONCE, "ts": 1, "tok": token, "id": "a", **changes}
        key = SESSION if version == 3 else SHARED
        payload = packb({"enc": "aes", "load": key.dumps(load), "version": version, "id": "a"})
        try:
            opened = known.open(payload, minimum_version=2, ttl=0)
        except PeerFault as fault:
            answers.append(fault.reply)
        else:
            assert unpackb(seal_reply(opened, opened.load))

    check()
    assert all(answers)


@given(st.binary(max_size=120))
def test_any_bytes_are_an_envelope_or_a_bad_load(payload: bytes) -> None:
    with contextlib.suppress(PeerFault, TypeError):
        # Bytes that happen to be an envelope are not what is looked at here.
        if {"enc", "load"} <= set(unpackb(payload)):
            return
    with pytest.raises(PeerFault) as caught:
        parse_request(payload)
    assert caught.value.reply == BAD_LOAD


def test_any_answer_is_opened_or_refused(session: ClientSession) -> None:
    @settings(max_examples=50)
    @given(VALUES, st.binary(max_size=60))
    def check(value: Any, noise: bytes) -> None:
        for reply in (packb(value), noise, packb(noise), packb(SESSION.encrypt(b"pickle::" + NONCE.encode() + noise))):
            try:
                session.open(reply, NONCE)
            except PeerFault:
                continue

    check()

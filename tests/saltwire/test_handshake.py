"""Sign-in, both ends in one process: the master's table of verdicts, its exact answers, and what a minion makes of each."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltwire import handshake
from saltwire.envelope import BAD_LOAD, parse_request
from saltwire.errors import OwnFault, PeerFault
from saltwire.handshake import (
    FULL,
    OWN_COMMANDS,
    OWN_FIELD,
    Answer,
    KeyState,
    Outcome,
    SignIn,
    SignInRequest,
    decide,
    parse_sign_in,
    refusal_reply,
    success_reply,
)
from saltwire.keys import ENC_ALGOS, SIG_ALGOS, PrivateKey, PublicKey, generate_key_string
from saltwire.pack import octets, packb, unpackb

AES, SESSION = generate_key_string(), generate_key_string()
PORT = 4505

# ------------------------------------------------------------------------------------------------------------------- verdicts

#: docs/protocol.md#sign-in-decisions: (state, same key, auto accept, auto reject) -> (stored as, ret, act).
DECIDED: dict[tuple[object, ...], tuple[str | None, Any, str]] = {
    # 5. rejected stays so, whatever the lists say
    **{("rejected", *facts): (None, False, "reject") for facts in itertools.product((True, False), repeat=3)},
    # 6. accepted with another key: denied; 9. accepted
    **{("accepted", False, *lists): ("denied", False, "denied") for lists in itertools.product((True, False), repeat=2)},
    **{("accepted", True, *lists): (None, None, "accept") for lists in itertools.product((True, False), repeat=2)},
    # 7. no key (the key that is only denied counts as none)
    **{
        (state, same, accept, True): ("rejected", False, "reject")
        for state in ("none", "denied", "pending")
        for same in (True, False)
        for accept in (True, False)
    },
    **{(state, same, True, False): ("accepted", None, "accept") for state in ("none", "denied") for same in (True, False)},
    **{(state, same, False, False): ("pending", True, "pend") for state in ("none", "denied") for same in (True, False)},
    # 8. pending
    ("pending", False, True, False): ("denied", False, "denied"),
    ("pending", False, False, False): ("denied", False, "denied"),
    ("pending", True, True, False): ("accepted", None, "accept"),
    ("pending", True, False, False): (None, True, "pend"),
}  # fmt: skip


@pytest.mark.parametrize("state", KeyState)
@pytest.mark.parametrize("facts", list(itertools.product((True, False), repeat=3)), ids=str)
def test_verdicts(state: KeyState, facts: tuple[bool, bool, bool]) -> None:
    same, accept, reject = facts
    switches = {"same_pem": same, "auto_accept": accept, "auto_reject": reject}
    stored, ret, act = DECIDED[(state.value, *facts)]
    verdict = decide(state, **switches, open_mode=False, full=False)
    assert (verdict.store and verdict.store.value, verdict.ret, verdict.act) == (stored, ret, act)
    assert verdict.accepted == (act == "accept")
    # 2. full stands before everything.
    assert decide(state, **switches, open_mode=True, full=True) is FULL
    # 4. open mode lets in everybody, and stores the key unless it is there already.
    opened = decide(state, **switches, open_mode=True, full=False)
    assert opened.accepted
    assert opened.store is (None if state is KeyState.ACCEPTED and same else KeyState.ACCEPTED)


def test_only_a_full_master_says_full() -> None:
    assert (FULL.store, FULL.ret, FULL.act, FULL.accepted) == (None, "full", "full", False)


# --------------------------------------------------------------------------------------------------------- the master's door


def parsed(sign_in: SignIn) -> SignInRequest:
    envelope = parse_request(sign_in.request())
    assert envelope.enc == "clear"
    return parse_sign_in(envelope.load, version=envelope.version)


def welcome(sign_in: SignIn, master_key: PrivateKey, **changes: Any) -> bytes:
    values: dict[str, Any] = {"aes_key_string": AES, "session_key_string": SESSION, "publish_port": PORT} | changes
    return welcomed(parsed(sign_in), master_key=master_key, **values)


def welcomed(request: SignInRequest, **values: Any) -> bytes:
    """As a worker does it: it reads the key that the minion brings."""
    return success_reply(request, PublicKey.from_pem(request.pub), **values)


def test_a_first_sign_in_is_read(minion_key: PrivateKey) -> None:
    sign_in = SignIn("a", minion_key, None, autosign_grains={"uuid": "1"})
    request = parsed(sign_in)
    assert (request.id, request.pub, request.token, request.version) == ("a", minion_key.public.pem, None, 3)
    assert (request.enc_algo, request.sig_algo) == ("OAEP-SHA1", "PKCS1v15-SHA1")
    assert request.autosign_grains == {"uuid": "1"}
    assert request.nonce is not None
    assert len(request.nonce) == 32
    # Sent again and again, with the same nonce and token (docs/protocol.md#sign-in-request).
    assert sign_in.request() == sign_in.request()


def test_a_later_sign_in_has_a_token_for_the_master(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    request = parsed(SignIn("a", minion_key, master_key.public))
    assert request.token is not None
    assert len(master_key.decrypt(request.token, "OAEP-SHA1")) == 76


def test_a_sign_in_may_do_without_a_token(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    sign_in = SignIn("a", minion_key, master_key.public, token=False)
    assert parsed(sign_in).token is None
    outer = unpackb(welcome(sign_in, master_key))
    assert "token" not in unpackb(outer["load"], raw=True)
    assert sign_in.feed(welcome(sign_in, master_key)).outcome is Outcome.ACCEPTED


#: Changes to the load of a good sign-in -> the answer. ``...`` removes the key.
REFUSED_LOADS: dict[str, tuple[dict[str, Any], Any]] = {
    "signature unknown": ({"sig_algo": "MD5"}, {"enc": "clear", "load": {"ret": "bad sig algo"}}),
    "encryption unknown": ({"enc_algo": "ROT13"}, {"enc": "clear", "load": {"ret": "bad enc algo"}}),
    "no id": ({"id": ...}, "bad load"),
    "id with a slash": ({"id": "../a"}, "bad load"),
    "id that is a number": ({"id": 5}, "bad load"),
    "id that is no text": ({"id": b"\xff"}, "bad load"),
    "no key": ({"pub": ...}, "bad load"),
    "key is a number": ({"pub": 5}, "bad load"),
    "key is a map": ({"pub": {}}, "bad load"),
    "key is no text": ({"pub": b"\xff\xfe"}, "bad load"),
}


@pytest.mark.parametrize(("changes", "answer"), REFUSED_LOADS.values(), ids=REFUSED_LOADS.keys())
def test_sign_ins_that_get_no_verdict(minion_key: PrivateKey, changes: dict[str, Any], answer: Any) -> None:
    load = parse_request(SignIn("a", minion_key, None).request()).load | changes
    load = {name: value for name, value in load.items() if value is not ...}
    with pytest.raises(PeerFault) as caught:
        parse_sign_in(load, version=3)
    assert caught.value.reply is not None
    assert unpackb(caught.value.reply) == answer


@pytest.mark.parametrize(
    "changes",
    [{"enc_algo": None, "sig_algo": None}, {"enc_algo": 5, "sig_algo": []}, {"autosign_grains": "x"}, {"token": 5},
    ],
    ids=str,
)  # fmt: skip
def test_optional_fields_of_another_kind_count_as_absent(
    minion_key: PrivateKey, master_key: PrivateKey, changes: dict[str, Any]
) -> None:
    load = parse_request(SignIn("a", minion_key, None).request()).load | changes
    request = parse_sign_in(load, version=3)
    assert (request.enc_algo, request.sig_algo, request.token) == ("OAEP-SHA1", "PKCS1v15-SHA1", None)
    assert request.autosign_grains == {}
    assert refusal_reply(request, True, master_key=master_key)


def test_the_exact_welcome(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    """docs/protocol.md#sign-in-reply, field by field, without code of SignIn.feed."""
    sign_in = SignIn("a", minion_key, master_key.public)
    request = parsed(sign_in)
    outer = unpackb(welcome(sign_in, master_key), raw=True)
    assert set(outer) == {"enc", "load", "sig"}
    assert outer["enc"] == b"clear"
    master_key.public.verify(outer["load"], outer["sig"], "PKCS1v15-SHA1")
    load = unpackb(outer["load"], raw=True)
    assert set(load) == {"enc", "pub_key", "publish_port", "aes", "session", "sig", "token", "nonce", OWN_FIELD}
    assert load[OWN_FIELD] == OWN_COMMANDS, "minions of ours know us by it; others pass it over"
    assert load["enc"] == b"pub"
    assert load["pub_key"].decode() == master_key.public.pem
    assert load["publish_port"] == PORT
    assert minion_key.decrypt(load["aes"], "OAEP-SHA1").decode() == AES
    assert minion_key.decrypt(load["session"], "OAEP-SHA1").decode() == SESSION
    assert master_key.public.x931_recover(load["sig"]) == hashlib.sha256(AES.encode()).hexdigest().encode()
    token = minion_key.decrypt(load["token"], "OAEP-SHA1")
    assert token == master_key.decrypt(request.token or b"", "OAEP-SHA1")
    assert load["nonce"].decode() == request.nonce


@pytest.mark.parametrize("ret", [True, False, "full"])
def test_the_exact_refusal(minion_key: PrivateKey, master_key: PrivateKey, ret: bool | str) -> None:
    request = parsed(SignIn("a", minion_key, None, sig_algo="PKCS1v15-SHA224"))
    outer = unpackb(refusal_reply(request, ret, master_key=master_key))
    packed = octets(outer["load"])
    assert packed is not None
    assert unpackb(packed) == {"ret": ret, "nonce": request.nonce}
    master_key.public.verify(packed, octets(outer["sig"]) or b"", "PKCS1v15-SHA224")


def test_minions_before_version_two_are_answered_unsigned(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    load = parse_request(SignIn("a", minion_key, None).request()).load
    request = parse_sign_in(load, version=1)
    assert unpackb(refusal_reply(request, True, master_key=master_key)) == {"enc": "clear", "load": {"ret": True}}
    bare = unpackb(
        welcomed(request, master_key=master_key, aes_key_string=AES, session_key_string=SESSION, publish_port=PORT)
    )
    assert bare["enc"] == "pub"
    assert bare["pub_key"] == master_key.public.pem


def test_a_precomputed_signature_is_passed_on(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    outer = unpackb(welcome(SignIn("a", minion_key, None), master_key, pub_sig="c2ln\n"))
    assert unpackb(octets(outer["load"]) or b"")["pub_sig"] == "c2ln\n"


def test_a_token_for_another_master_is_left_out(
    minion_key: PrivateKey, master_key: PrivateKey, other_key: PrivateKey
) -> None:
    outer = unpackb(welcome(SignIn("a", minion_key, other_key.public), master_key))
    assert "token" not in unpackb(octets(outer["load"]) or b"")


def test_a_welcome_for_what_is_no_key_is_the_peers_fault(
    minion_key: PrivateKey, master_key: PrivateKey, small_key: PrivateKey
) -> None:
    values: dict[str, Any] = {"aes_key_string": AES, "session_key_string": SESSION, "publish_port": PORT}
    load = parse_request(SignIn("a", minion_key, None).request()).load
    for pub in ("", "no key", minion_key.to_pem().decode()):
        with pytest.raises(PeerFault):
            welcomed(parse_sign_in(load | {"pub": pub}, version=3), master_key=master_key, **values)
    with pytest.raises(PeerFault):
        welcome(SignIn("a", small_key, None), master_key)


# ------------------------------------------------------------------------------------------------------------- there and back


@pytest.mark.parametrize("enc_algo", ENC_ALGOS)
@pytest.mark.parametrize("sig_algo", SIG_ALGOS)
@pytest.mark.parametrize("known", [False, True], ids=["first contact", "known master"])
def test_accepted(minion_key: PrivateKey, master_key: PrivateKey, enc_algo: str, sig_algo: str, known: bool) -> None:
    sign_in = SignIn("a", minion_key, master_key.public if known else None, enc_algo=enc_algo, sig_algo=sig_algo)
    answer = sign_in.feed(welcome(sign_in, master_key))
    assert answer.outcome is Outcome.ACCEPTED, answer.reason
    assert answer.credentials == handshake.Credentials(AES, SESSION, PORT, master_key.public.pem, OWN_COMMANDS)


@pytest.mark.parametrize(
    ("ret", "outcome"),
    [
        (True, Outcome.PENDING),
        (False, Outcome.REJECTED),
        ("full", Outcome.FULL),
        ("later", Outcome.BAD),
        (None, Outcome.BAD),
    ],
)
@pytest.mark.parametrize("known", [False, True], ids=["first contact", "known master"])
def test_not_accepted(minion_key: PrivateKey, master_key: PrivateKey, ret: Any, outcome: Outcome, known: bool) -> None:
    sign_in = SignIn("a", minion_key, master_key.public if known else None)
    answer = sign_in.feed(refusal_reply(parsed(sign_in), ret, master_key=master_key))
    assert (answer.outcome, answer.credentials) == (outcome, None)
    assert answer.reason


def forged(sign_in: SignIn, signer: PrivateKey, welcome_from: PrivateKey, **changes: Any) -> bytes:
    """A welcome with some fields changed (``...``: removed), signed by ``signer``."""
    outer = unpackb(welcome(sign_in, welcome_from), raw=True)
    load = unpackb(outer["load"], raw=True) | changes
    packed = packb({name: value for name, value in load.items() if value is not ...})
    return packb({"enc": "clear", "load": packed, "sig": signer.sign(packed, "PKCS1v15-SHA1")})


Reply = Callable[[SignIn, PrivateKey, PrivateKey, PrivateKey], bytes]

#: A welcome as a known master would not send it: (reply from sign-in, master, minion, other) -> outcome, words of the reason.
DISTRUSTED: dict[str, tuple[Reply, Outcome, str]] = {
    "another master": (lambda s, master, minion, other: welcome(s, other), Outcome.WRONG_MASTER, "key has changed"),
    "another master's signature": (
        lambda s, master, minion, other: forged(s, other, master),
        Outcome.BAD,
        "signature does not fit",
    ),
    "another master's key for publications": (
        lambda s, master, minion, other: forged(s, master, master, sig=other.x931_sign(b"x" * 64)),
        Outcome.BAD,
        "X9.31",
    ),
    "signature of another key for publications": (
        lambda s, master, minion, other: forged(s, master, master, sig=master.x931_sign(b"x" * 64)),
        Outcome.BAD,
        "not signed by the master",
    ),
    "no signature of the key": (
        lambda s, master, minion, other: forged(s, master, master, sig=...),
        Outcome.BAD,
        "wrong length",
    ),
    "another nonce": (lambda s, master, minion, other: forged(s, master, master, nonce="f" * 32), Outcome.BAD, "nonce"),
    "no nonce": (lambda s, master, minion, other: forged(s, master, master, nonce=...), Outcome.BAD, "nonce"),
    "another token": (
        lambda s, master, minion, other: forged(
            s, master, master, token=minion.public.encrypt(generate_key_string().encode(), "OAEP-SHA1")
        ),
        Outcome.BAD,
        "token",
    ),
    "no token": (lambda s, master, minion, other: forged(s, master, master, token=...), Outcome.BAD, "token"),
    "token for somebody else": (
        lambda s, master, minion, other: forged(s, master, master, token=other.public.encrypt(b"x" * 76, "OAEP-SHA1")),
        Outcome.BAD,
        "not encrypted to this key",
    ),
    "no key of publications": (lambda s, master, minion, other: forged(s, master, master, aes=...), Outcome.BAD, "aes"),
    "key of publications unreadable": (
        lambda s, master, minion, other: forged(s, master, master, aes=b"\xff" * 256),
        Outcome.BAD,
        "not encrypted to this key",
    ),
    "session is no text": (
        lambda s, master, minion, other: forged(
            s, master, master, session=minion.public.encrypt(b"\xff" * 76, "OAEP-SHA1")
        ),
        Outcome.BAD,
        "session is no key string",
    ),
    "session is no key string": (
        lambda s, master, minion, other: forged(
            s, master, master, session=minion.public.encrypt(b"short", "OAEP-SHA1")
        ),
        Outcome.BAD,
        "session is no key string",
    ),
    "session is a number": (
        lambda s, master, minion, other: forged(s, master, master, session=5),
        Outcome.BAD,
        "session",
    ),
    "master's key is none": (
        lambda s, master, minion, other: forged(s, master, master, pub_key="no key"),
        Outcome.BAD,
        "not a public key",
    ),
    "master's key is no text": (
        lambda s, master, minion, other: forged(s, master, master, pub_key=b"\xff"),
        Outcome.BAD,
        "not a public key",
    ),
    "master's key is a number": (
        lambda s, master, minion, other: forged(s, master, master, pub_key=5),
        Outcome.BAD,
        "not a public key",
    ),
    "refusal signed by another": (
        lambda s, master, minion, other: refusal_reply(parsed(s), False, master_key=other),
        Outcome.BAD,
        "signature",
    ),
    "unsigned refusal": (
        lambda s, master, minion, other: packb({"enc": "clear", "load": {"ret": False}}),
        Outcome.BAD,
        "unsigned",
    ),
    "bad signing algorithm": (
        lambda s, master, minion, other: packb({"enc": "clear", "load": {"ret": "bad sig algo"}}),
        Outcome.BAD,
        "bad sig algo",
    ),
    "bad load": (lambda s, master, minion, other: BAD_LOAD, Outcome.BAD, "bad load"),
    "answer to another sign-in": (
        lambda s, master, minion, other: welcome(SignIn("a", minion, master.public), master),
        Outcome.BAD,
        "nonce",
    ),
    "garbage": (lambda s, master, minion, other: b"\xc1", Outcome.BAD, "msgpack"),
    "nothing": (lambda s, master, minion, other: b"", Outcome.BAD, "msgpack"),
    "signed garbage": (
        lambda s, master, minion, other: packb(
            {"enc": "clear", "load": b"\xc1", "sig": master.sign(b"\xc1", "PKCS1v15-SHA1")}
        ),
        Outcome.BAD,
        "msgpack",
    ),
}


@pytest.mark.parametrize(("reply", "outcome", "words"), DISTRUSTED.values(), ids=DISTRUSTED.keys())
def test_answers_that_are_not_trusted(
    minion_key: PrivateKey,
    master_key: PrivateKey,
    other_key: PrivateKey,
    reply: Reply,
    outcome: Outcome,
    words: str,
) -> None:
    sign_in = SignIn("a", minion_key, master_key.public)
    answer = sign_in.feed(reply(sign_in, master_key, minion_key, other_key))
    assert (answer.outcome, answer.credentials) == (outcome, None)
    assert words in answer.reason
    # The sign-in still takes the right answer afterwards.
    assert sign_in.feed(welcome(sign_in, master_key)).outcome is Outcome.ACCEPTED


def test_the_table_changes_one_thing_only(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    """An unchanged "forged" welcome is accepted: the table above fails for the reason that it names."""
    sign_in = SignIn("a", minion_key, master_key.public)
    assert sign_in.feed(forged(sign_in, master_key, master_key)).outcome is Outcome.ACCEPTED


def test_every_changed_byte_of_a_welcome_is_noticed(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    sign_in = SignIn("a", minion_key, master_key.public)
    outer = unpackb(welcome(sign_in, master_key), raw=True)
    packed = outer["load"]
    for place in range(0, len(packed), 7):
        changed = packed[:place] + bytes([packed[place] ^ 1]) + packed[place + 1 :]
        answer = sign_in.feed(packb({"enc": "clear", "load": changed, "sig": outer["sig"]}))
        assert answer.outcome in (Outcome.BAD, Outcome.WRONG_MASTER)


def test_open_mode_takes_a_new_master(minion_key: PrivateKey, master_key: PrivateKey, other_key: PrivateKey) -> None:
    sign_in = SignIn("a", minion_key, other_key.public, open_mode=True)
    answer = sign_in.feed(welcome(sign_in, master_key))
    assert answer.outcome is Outcome.ACCEPTED
    assert answer.credentials is not None
    assert answer.credentials.master_pub == master_key.public.pem


@pytest.mark.parametrize("hash_type", ["sha256", "md5", "sha512"])
def test_the_masters_fingerprint(
    minion_key: PrivateKey, master_key: PrivateKey, other_key: PrivateKey, hash_type: str
) -> None:
    finger = master_key.public.fingerprint(hash_type)
    sign_in = SignIn("a", minion_key, None, master_finger=finger, hash_type=hash_type)
    assert sign_in.feed(welcome(sign_in, other_key)).outcome is Outcome.WRONG_MASTER
    assert sign_in.feed(welcome(sign_in, master_key)).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize(
    "options",
    [{"enc_algo": "ROT13"}, {"sig_algo": "MD5"}, {"master_finger": "aa:bb", "hash_type": "none"}],
    ids=str,
)
def test_options_that_cannot_work_are_told_before_anything_is_sent(
    minion_key: PrivateKey, options: dict[str, Any]
) -> None:
    with pytest.raises(OwnFault, match="there is no"):
        SignIn("a", minion_key, None, **options)


def test_a_master_of_version_two_gives_no_session(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    sign_in = SignIn("a", minion_key, master_key.public)
    answer = sign_in.feed(forged(sign_in, master_key, master_key, session=...))
    assert answer.outcome is Outcome.ACCEPTED
    assert answer.credentials is not None
    assert answer.credentials.session is None


@pytest.mark.parametrize("port", [None, "4505", [], ...])
def test_a_port_that_is_none_leaves_it_to_the_options(
    minion_key: PrivateKey, master_key: PrivateKey, port: Any
) -> None:
    sign_in = SignIn("a", minion_key, master_key.public)
    answer = sign_in.feed(forged(sign_in, master_key, master_key, publish_port=port))
    assert answer.credentials is not None
    assert answer.credentials.publish_port == 0


# ---------------------------------------------------------------------------------------------------------------------- fuzz

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**64 - 1) | st.floats() | st.text(max_size=8) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def test_any_answer_is_understood_or_bad(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    sign_in = SignIn("a", minion_key, master_key.public)
    nonce = parsed(sign_in).nonce
    fields = ("ret", "pub_key", "aes", "session", "sig", "token", "publish_port", "enc")
    good = unpackb(octets(unpackb(welcome(sign_in, master_key))["load"]) or b"")

    def signed(load: Any) -> bytes:
        packed = packb(load)
        return packb({"enc": "clear", "load": packed, "sig": master_key.sign(packed, "PKCS1v15-SHA1")})

    @settings(max_examples=25)
    @given(VALUES, st.dictionaries(st.sampled_from(fields), VALUES, max_size=3), st.binary(max_size=60))
    def check(value: Any, changes: dict[str, Any], noise: bytes) -> None:
        for reply in (
            noise,
            packb(value),
            packb({"load": value, "sig": noise}),
            signed(value),
            signed({**changes, "nonce": nonce}),
            signed({**good, **changes}),
        ):
            answer = sign_in.feed(reply)
            assert isinstance(answer, Answer)
            assert (answer.credentials is not None) == (answer.outcome is Outcome.ACCEPTED)

    check()


def test_any_load_of_a_sign_in_is_read_or_refused(minion_key: PrivateKey, master_key: PrivateKey) -> None:
    load = parse_request(SignIn("a", minion_key, master_key.public).request()).load
    answers: list[bytes | None] = []

    @settings(max_examples=25)
    @given(st.dictionaries(st.sampled_from(sorted(load)), VALUES, max_size=3))
    def check(changes: dict[str, Any]) -> None:
        try:
            request = parse_sign_in(unpackb(packb({**load, **changes})), version=3)
        except PeerFault as fault:
            answers.append(fault.reply)
            return
        assert refusal_reply(request, False, master_key=master_key)
        try:
            welcomed(request, master_key=master_key, aes_key_string=AES, session_key_string=SESSION, publish_port=PORT)
        except PeerFault:
            assert request.pub != minion_key.public.pem

    check()
    assert all(answers)

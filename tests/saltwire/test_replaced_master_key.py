"""A master with two keys: which one answers whom, and what a minion of ours trusts afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from saltwire.crypticle import Crypticle, SerialGate
from saltwire.envelope import parse_request
from saltwire.errors import PeerFault, SignatureError
from saltwire.handshake import Outcome, SignIn, SignInRequest, choose_master_key, parse_sign_in, success_reply
from saltwire.keys import MasterPublicKeys, PrivateKey, PublicKey, generate_key_string
from saltwire.publication import open_job, seal_job_by_each

JOB: dict[str, Any] = {"fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "jid": "20260101000000000000"}
AES = generate_key_string()
OLD, NEW, STRANGER = (PrivateKey.generate(2048) for _ in range(3))
BOTH = (NEW, OLD)


def request_of(sign_in: SignIn) -> SignInRequest:
    envelope = parse_request(sign_in.request())
    assert isinstance(envelope.load, dict)
    return parse_sign_in(envelope.load, version=3, own=envelope.own)


def stock(sign_in: SignIn) -> SignInRequest:
    """As a stock minion sends it: without the field, and without the sign of ours."""
    load = dict(parse_request(sign_in.request()).load)  # type: ignore[call-overload]
    del load["master"]
    return parse_sign_in(load, version=3)


def earlier(sign_in: SignIn) -> SignInRequest:
    """As release 0.1 sends it."""
    load = dict(parse_request(sign_in.request()).load)  # type: ignore[call-overload]
    del load["master"]
    return parse_sign_in(load, version=3, own=True)


def answer(request: SignInRequest, key: PrivateKey, pems: tuple[str, ...] = ()) -> bytes:
    assert request.public is not None
    return success_reply(
        request,
        request.public,
        master_key=key,
        aes_key_string=AES,
        session_key_string=generate_key_string(),
        publish_port=4505,
        master_pems=pems,
    )


PEMS = tuple(key.public.pem for key in BOTH)

#: Who signs in -> the request that this minion sends with what it knows, the key that answers.
CHOICES: dict[str, tuple[Any, PrivateKey | None, PrivateKey]] = {
    "ours, knows the old key": (request_of, OLD, OLD),
    "ours, knows the new key": (request_of, NEW, NEW),
    "ours, knows none": (request_of, None, NEW),
    "ours, knows another key": (request_of, STRANGER, NEW),
    "ours of release 0.1": (earlier, None, OLD),
    "stock, knows the old key": (stock, OLD, OLD),
    "stock, knows the new key": (stock, NEW, NEW),
    "stock, knows none": (stock, None, NEW),
    "stock, knows another key": (stock, STRANGER, NEW),
}


@pytest.mark.parametrize("who", CHOICES)
def test_the_key_that_the_minion_knows_answers(who: str, minion_key: PrivateKey) -> None:
    send, knows, expected = CHOICES[who]
    sign_in = SignIn("a", minion_key, knows and knows.public, token=send is stock)
    assert choose_master_key(send(sign_in), BOTH) is expected


def test_a_minion_that_trusts_the_old_key_learns_the_new_one(minion_key: PrivateKey) -> None:
    sign_in = SignIn("a", minion_key, OLD.public, token=False)
    found = sign_in.feed(answer(request_of(sign_in), OLD, PEMS))
    assert found.outcome is Outcome.ACCEPTED
    assert found.credentials is not None
    known = MasterPublicKeys.from_pem(found.credentials.master_pub)
    assert known.pems == PEMS
    # The next sign-in shows it; when the old key is gone, it is forgotten.
    later = SignIn("a", minion_key, known, token=False)
    assert choose_master_key(request_of(later), BOTH) is NEW
    last = later.feed(answer(request_of(later), NEW))
    assert last.credentials is not None
    assert last.credentials.master_pub == NEW.public.pem


REFUSED: dict[str, tuple[PrivateKey, tuple[str, ...], Outcome]] = {
    "signed by a stranger": (STRANGER, PEMS, Outcome.WRONG_MASTER),
    "signed by a stranger who names himself": (STRANGER, (STRANGER.public.pem, OLD.public.pem), Outcome.WRONG_MASTER),
    "signed by the new key alone": (NEW, PEMS, Outcome.WRONG_MASTER),
    "the answering key is not named": (OLD, (NEW.public.pem, STRANGER.public.pem), Outcome.BAD),
    "three keys": (OLD, (*PEMS, STRANGER.public.pem), Outcome.BAD),
    "no key": (OLD, ("x", "y"), Outcome.BAD),
}


@pytest.mark.parametrize("attack", REFUSED)
def test_nobody_else_names_a_key(attack: str, minion_key: PrivateKey) -> None:
    key, pems, outcome = REFUSED[attack]
    sign_in = SignIn("a", minion_key, OLD.public, token=False)
    assert sign_in.feed(answer(request_of(sign_in), key, pems)).outcome is outcome


@pytest.mark.parametrize(("finger", "trusted"), [(OLD, (OLD.public.pem,)), (NEW, (NEW.public.pem,)), (STRANGER, None)])
def test_master_finger_decides_which_of_the_two(
    finger: PrivateKey, trusted: tuple[str, ...] | None, minion_key: PrivateKey
) -> None:
    sign_in = SignIn("a", minion_key, OLD.public, token=False, master_finger=finger.public.fingerprint())
    found = sign_in.feed(answer(request_of(sign_in), OLD, PEMS))
    if trusted is None:
        assert found.outcome is Outcome.WRONG_MASTER
    else:
        assert found.credentials is not None
        assert MasterPublicKeys.from_pem(found.credentials.master_pub).pems == trusted


@pytest.mark.parametrize("knows", [OLD.public, NEW.public, MasterPublicKeys([NEW.public, OLD.public])])
def test_a_job_that_both_keys_sign_is_taken_once(knows: PublicKey | MasterPublicKeys) -> None:
    gate, taken = SerialGate(), []
    for payload in seal_job_by_each(JOB, Crypticle(AES), BOTH, "PKCS1v15-SHA1", 7):
        try:
            taken.append(open_job(payload, Crypticle(AES), gate=gate, master_pub=knows, verify=True))
        except SignatureError:
            taken.append(None)
    assert [job is not None for job in taken].count(True) == 1


def test_a_text_with_too_many_keys_is_refused() -> None:
    with pytest.raises(PeerFault, match="3 keys of a master"):
        MasterPublicKeys.from_pem("\n".join((*PEMS, STRANGER.public.pem)))
    with pytest.raises(PeerFault):
        MasterPublicKeys.from_pem("")

"""Publications: sealed once, opened by minions, dropped or refused when they are not what they should be."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltwire.crypticle import Crypticle, SerialGate
from saltwire.errors import AuthenticationError, PeerFault, SignatureError
from saltwire.keys import SIG_ALGOS, PrivateKey, generate_key_string
from saltwire.pack import packb, unpackb
from saltwire.publication import job_fault, open_job, seal_job, serial_of_stream_id, topic

JOB = {
    "fun": "test.ping",
    "arg": [],
    "tgt": "*",
    "tgt_type": "glob",
    "jid": "20260101000000000000",
    "ret": "",
    "user": "root",
}
AES, FOREIGN = Crypticle(generate_key_string()), Crypticle(generate_key_string())
SHA1 = "PKCS1v15-SHA1"


@pytest.mark.parametrize("algo", SIG_ALGOS)
@pytest.mark.parametrize("verify", [False, True])
def test_a_job_arrives(master_key: PrivateKey, algo: str, verify: bool) -> None:
    payload = seal_job(JOB, AES, master_key, algo, 1)
    assert open_job(payload, AES, gate=SerialGate(), master_pub=master_key.public, verify=verify) == JOB


def test_the_form_of_a_publication(master_key: PrivateKey) -> None:
    """docs/protocol.md#publications, without code of open_job."""
    outer = unpackb(seal_job(JOB, AES, master_key, SHA1, 7), raw=True)
    assert set(outer) == {"enc", "load", "sig_algo", "sig"}
    assert (outer["enc"], outer["sig_algo"]) == (b"aes", SHA1.encode())
    master_key.public.verify(outer["load"], outer["sig"], SHA1)
    assert AES.loads(outer["load"]) == {**JOB, "serial": 7}


def test_the_topic_of_a_minion() -> None:
    # Verified against stock minions: docs/protocol.md#publish-framing.
    assert topic("pv") == "9b879864942a33d1bccda3c057d3629e5092b9ba"
    assert len(topic("ä")) == 40


def test_serials_must_rise_and_begin_anew_with_a_new_key(master_key: PrivateKey) -> None:
    gate = SerialGate()
    opened = [
        open_job(seal_job(JOB, AES, master_key, SHA1, serial), AES, gate=gate) is not None for serial in (5, 5, 4, 6, 1)
    ]
    assert opened == [True, False, False, True, False]
    assert open_job(seal_job(JOB, FOREIGN, master_key, SHA1, 1), FOREIGN, gate=SerialGate()) == JOB


def test_another_key_asks_for_a_sign_in_and_leaves_the_gate_alone(master_key: PrivateKey) -> None:
    gate = SerialGate()
    payload = seal_job(JOB, AES, master_key, SHA1, 9)
    with pytest.raises(AuthenticationError):
        open_job(payload, FOREIGN, gate=gate, master_pub=master_key.public, verify=True)
    # The same publication is opened once more with the new key (docs/protocol.md#key-rotation).
    assert open_job(payload, AES, gate=gate) == JOB


def outer_of(payload: bytes, **changes: Any) -> bytes:
    outer = unpackb(payload, raw=True) | changes
    return packb({name: value for name, value in outer.items() if value is not ...})


#: Changes to a good publication that verifying minions refuse.
UNSIGNED: dict[str, dict[str, Any]] = {
    "no signature": {"sig": ...},
    "signature is none": {"sig": None},
    "empty signature": {"sig": b""},
    "signature of zeros": {"sig": b"\0" * 256},
    "signature is a number": {"sig": 5},
    "algorithm unknown": {"sig_algo": "MD5"},
    "other algorithm": {"sig_algo": "PKCS1v15-SHA224"},
    "another load": {"load": AES.dumps({**JOB, "fun": "cmd.run", "serial": 1})},
}


@pytest.mark.parametrize("changes", UNSIGNED.values(), ids=UNSIGNED.keys())
def test_publications_that_the_master_did_not_sign(master_key: PrivateKey, changes: dict[str, Any]) -> None:
    payload = outer_of(seal_job(JOB, AES, master_key, SHA1, 1), **changes)
    with pytest.raises(SignatureError):
        open_job(payload, AES, gate=SerialGate(), master_pub=master_key.public, verify=True)
    # A minion that does not verify takes them: the shared key is all that it asks for.
    assert open_job(payload, AES, gate=SerialGate()) is not None


def test_a_forgery_does_not_move_the_gate(master_key: PrivateKey, other_key: PrivateKey) -> None:
    gate = SerialGate()
    with pytest.raises(SignatureError):
        open_job(seal_job(JOB, AES, other_key, SHA1, 10**6), AES, gate=gate, master_pub=master_key.public, verify=True)
    assert open_job(seal_job(JOB, AES, master_key, SHA1, 1), AES, gate=gate, master_pub=master_key.public, verify=True)


def test_nothing_is_verified_without_the_masters_key(master_key: PrivateKey) -> None:
    with pytest.raises(SignatureError):
        open_job(seal_job(JOB, AES, master_key, SHA1, 1), AES, gate=SerialGate(), master_pub=None, verify=True)


def test_a_signature_without_its_algorithm_is_sha1(master_key: PrivateKey) -> None:
    payload = outer_of(seal_job(JOB, AES, master_key, SHA1, 1), sig_algo=...)
    assert open_job(payload, AES, gate=SerialGate(), master_pub=master_key.public, verify=True) == JOB


DROPPED: dict[str, bytes] = {
    "a text": packb("hello"),
    "the topic": topic("a").encode(),
    "a list": packb([1]),
    "another scheme": packb({"enc": "clear", "load": JOB}),
    "no scheme": packb({"load": AES.dumps({**JOB, "serial": 1})}),
    "no map": packb({"enc": "aes", "load": AES.dumps([1])}),
    "none of Salt's": packb({"enc": "aes", "load": AES.encrypt(b"else")}),
    "no number": packb({"enc": "aes", "load": AES.dumps({**JOB, "serial": "1"})}),
    **{
        f"no {name}": packb({"enc": "aes", "load": AES.dumps({key: JOB[key] for key in JOB if key != name})})
        for name in ("tgt", "jid", "fun", "arg")
    },
}
# The topic frame is 40 bytes of text: not one msgpack value (docs/protocol.md#publish-framing).
NOT_MESSAGES = {"the topic": DROPPED.pop("the topic"), "nothing": b"", "garbage": b"\xc1", "no load": packb({"enc": "aes"}),
                "load is a number": packb({"enc": "aes", "load": 5}),
                "sealed garbage": packb({"enc": "aes", "load": AES.encrypt(b"pickle::\xc1")})}  # fmt: skip


@pytest.mark.parametrize("payload", DROPPED.values(), ids=DROPPED.keys())
def test_dropped_in_silence(payload: bytes) -> None:
    assert open_job(payload, AES, gate=SerialGate()) is None


ONE = {"jid": "20260101000000000000", "fun": "test.ping", "arg": [], "tgt": "*"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        # What an operator of a stock master may choose.
        ({"jid": "rollout-7_a.b"}, ""),
        ({"fun": ["test.ping", "test.arg"], "arg": [[], [1]]}, ""),
        ({"fun": ["test.ping"], "arg": []}, ""),
        ({"jid": None}, "no JID"),
        ({"jid": 5}, "no JID"),
        ({"jid": ""}, "no JID"),
        ({"jid": "../../root/.ssh/x"}, "no JID"),
        ({"jid": ".."}, "no JID"),
        ({"jid": ".x"}, "no JID"),
        ({"jid": "a\nb"}, "no JID"),
        ({"jid": "\u00fc"}, "no JID"),
        ({"jid": "x" * 201}, "no JID"),
        ({"jid": ["20260101000000000000"]}, "no JID"),
        ({"fun": None}, "no function"),
        ({"fun": ""}, "no function"),
        ({"fun": []}, "no function"),
        ({"fun": ["test.ping", None], "arg": [[], []]}, "no function"),
        ({"fun": {"test.ping": []}}, "no function"),
        ({"arg": None}, "no arguments"),
        ({"arg": "text"}, "no arguments"),
        ({"fun": ["test.ping"], "arg": ["text"]}, "no arguments"),
    ],
    ids=str,
)
def test_what_is_no_job_is_named(change: dict[str, Any], said: str) -> None:
    job = ONE | change
    assert said in job_fault(job)
    assert bool(said) is bool(job_fault(job))
    payload = packb({"enc": "aes", "load": AES.dumps(job)})
    if said:
        with pytest.raises(PeerFault, match=said):
            open_job(payload, AES, gate=SerialGate())
    else:
        assert open_job(payload, AES, gate=SerialGate()) == job


@pytest.mark.parametrize("payload", NOT_MESSAGES.values(), ids=NOT_MESSAGES.keys())
def test_not_messages(payload: bytes) -> None:
    with pytest.raises(PeerFault):
        open_job(payload, AES, gate=SerialGate())


def test_serials_of_stream_ids_rise_as_the_ids_do() -> None:
    ids = ["0-0", "0-1", "1-0", "1700000000000-0", "1700000000000-1", "1700000000000-4095", "1700000000001-0"]
    serials = [serial_of_stream_id(stream_id) for stream_id in ids]
    assert serials == sorted(set(serials))
    assert serial_of_stream_id("1700000000000") == serial_of_stream_id("1700000000000-0") == 1700000000000 * 4096
    # Never into the next millisecond, and small enough for msgpack.
    assert serial_of_stream_id("1700000000000-99999") < serial_of_stream_id("1700000000001-0") < 2**63


@settings(max_examples=60)
@given(
    st.binary(max_size=60),
    st.dictionaries(
        st.sampled_from(["enc", "load", "sig", "sig_algo"]),
        st.none() | st.text() | st.binary() | st.lists(st.integers()),
    ),
)
def test_any_publication_is_a_job_or_dropped_or_refused(noise: bytes, changes: dict[str, Any]) -> None:
    good = {"enc": "aes", "load": AES.dumps({**JOB, "serial": 1}), "sig": b"x" * 256, "sig_algo": SHA1}
    for payload in (noise, packb({**good, **changes}), packb({**good, "load": AES.encrypt(b"pickle::" + noise)})):
        for verify in (False, True):
            try:
                job = open_job(payload, AES, gate=SerialGate(), master_pub=PUBLIC, verify=verify)
            except PeerFault:
                continue
            assert job is None or {"tgt", "jid", "fun", "arg"} <= set(job)


PUBLIC = PrivateKey.generate(2048).public

_SALT = """
import base64, json, sys, salt.crypt, salt.payload
job = json.load(sys.stdin)
payload = salt.payload.loads(base64.b64decode(job["payload"]))
public = salt.crypt.PublicKeyString(job["public"])
load = payload["load"] if isinstance(payload["load"], bytes) else payload["load"].encode()
print(json.dumps([payload["enc"], public.verify(load, payload["sig"], payload["sig_algo"]),
                  salt.crypt.Crypticle({}, job["key"]).loads(load)]))
"""


@pytest.mark.oracle
def test_salt_opens_our_publication(oracle: Any, master_key: PrivateKey) -> None:
    question = {
        "payload": base64.b64encode(seal_job(JOB, AES, master_key, SHA1, 3)).decode(),
        "public": master_key.public.pem,
        "key": AES.key_string,
    }
    # Salt takes the serial out itself.
    assert json.loads(oracle.run("python", "-c", _SALT, stdin=json.dumps(question))) == ["aes", True, JOB]

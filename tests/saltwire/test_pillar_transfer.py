"""Pillar under a key of its own: the form of the answer, and every way in which it is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltwire.crypticle import Crypticle
from saltwire.errors import AuthenticationError, NonceError, PeerFault, SignatureError
from saltwire.keys import ENC_ALGOS, SIG_ALGOS, PrivateKey, generate_key_string
from saltwire.pack import octets, packb, unpackb
from saltwire.pillar_transfer import open_pillar, seal_pillar

NONCE = "0123456789abcdef0123456789abcdef"
PILLAR = {"role": "web", "ports": [80, 443], "deep": {"none": None, "bytes": b"\xff\xfe", 5: 1.5}}
OAEP, PKCS = "OAEP-SHA1", "PKCS1v15-SHA1"


class Ends:
    """A minion and its master, who use each other's keys."""

    def __init__(self, minion: PrivateKey, master: PrivateKey) -> None:
        self.minion, self.master = minion, master

    def seal(self, pillar: Any = None, *, nonce: str = NONCE, enc_algo: str = OAEP, sig_algo: str = PKCS) -> bytes:
        return seal_pillar(
            PILLAR if pillar is None else pillar,
            minion_pub=self.minion.public,
            master_key=self.master,
            nonce=nonce,
            enc_algo=enc_algo,
            sig_algo=sig_algo,
        )

    def open(self, reply: bytes, *, nonce: str = NONCE, enc_algo: str = OAEP, sig_algo: str = PKCS) -> dict[str, Any]:
        return open_pillar(
            reply,
            private_key=self.minion,
            master_pub=self.master.public,
            nonce=nonce,
            enc_algo=enc_algo,
            sig_algo=sig_algo,
        )

    def forge(
        self,
        *,
        inner: Any = None,
        signer: PrivateKey | None = None,
        data: bytes | None = None,
        wrapped_text: bytes | None = None,
        **changes: Any,
    ) -> bytes:
        """An answer whose parts may be replaced: the signed data's fields by ``changes`` (``...``: removed)."""
        key_string = generate_key_string()
        wrapped = self.minion.public.encrypt(wrapped_text or key_string.encode(), OAEP)
        load = {"key": wrapped, "pillar": PILLAR, "nonce": NONCE} | changes
        packed = data if data is not None else packb({name: item for name, item in load.items() if item is not ...})
        sealed = {"data": packed, "sig": (signer or self.master).sign(packed, PKCS)} if inner is None else inner
        return packb({"key": wrapped, "pillar": Crypticle(key_string).dumps(sealed)})


@pytest.fixture
def ends(minion_key: PrivateKey, master_key: PrivateKey) -> Ends:
    return Ends(minion_key, master_key)


@pytest.mark.parametrize("enc_algo", ENC_ALGOS)
@pytest.mark.parametrize("sig_algo", SIG_ALGOS)
def test_a_pillar_arrives(ends: Ends, enc_algo: str, sig_algo: str) -> None:
    assert ends.open(ends.seal(enc_algo=enc_algo, sig_algo=sig_algo), enc_algo=enc_algo, sig_algo=sig_algo) == PILLAR
    assert ends.open(ends.seal({})) == {}


def test_the_form_of_the_answer(ends: Ends) -> None:
    """docs/protocol.md#pillar-transfer, without code of open_pillar."""
    outer = unpackb(ends.seal(), raw=True)
    assert set(outer) == {"key", "pillar"}
    key_string = ends.minion.decrypt(outer["key"], OAEP).decode()
    assert len(key_string) == 76
    inner = Crypticle(key_string).loads(outer["pillar"], raw=True)
    assert set(inner) == {"data", "sig"}
    ends.master.public.verify(inner["data"], inner["sig"], PKCS)
    load = unpackb(inner["data"], raw=True)
    assert set(load) == {"key", "pillar", "nonce"}
    assert load["key"] == outer["key"]
    assert load["nonce"].decode() == NONCE
    assert unpackb(ends.seal(), raw=True)["key"] != outer["key"]


def test_the_answer_that_the_table_starts_from_is_good(ends: Ends) -> None:
    assert ends.open(ends.forge()) == PILLAR


REFUSED: dict[str, tuple[Any, type[PeerFault]]] = {
    "bad load": (lambda ends, other: packb("bad load"), PeerFault),
    "an error": (lambda ends, other: packb({"error": "Nonce not included in request"}), PeerFault),
    "nothing": (lambda ends, other: b"", PeerFault),
    "garbage": (lambda ends, other: b"\xc1", PeerFault),
    "an empty map": (lambda ends, other: packb({}), PeerFault),
    "a list": (lambda ends, other: packb([1, 2]), PeerFault),
    "no pillar": (lambda ends, other: packb({"key": b"\xff" * 256}), PeerFault),
    "numbers": (lambda ends, other: packb({"key": 1, "pillar": 2}), PeerFault),
    "key of noise": (lambda ends, other: packb({"key": b"\xff" * 256, "pillar": b"\xff" * 100}), PeerFault),
    "somebody else's": (lambda ends, other: Ends(other, ends.master).seal(), PeerFault),
    "key is no key string": (lambda ends, other: ends.forge(wrapped_text=b"short"), PeerFault),
    "key is no text": (lambda ends, other: ends.forge(wrapped_text=b"\xff" * 76), PeerFault),
    "another key": (lambda ends, other: ends.forge(wrapped_text=generate_key_string().encode()), AuthenticationError),
    "inside a list": (lambda ends, other: ends.forge(inner=[1]), PeerFault),
    "inside no data": (lambda ends, other: ends.forge(inner={"sig": b"x"}), PeerFault),
    "inside no signature": (lambda ends, other: ends.forge(inner={"data": b"x"}), PeerFault),
    "inside numbers": (lambda ends, other: ends.forge(inner={"data": 1, "sig": 2}), PeerFault),
    "another master": (lambda ends, other: ends.forge(signer=other), SignatureError),
    "signed garbage": (lambda ends, other: ends.forge(data=b"\xc1"), PeerFault),
    "signed list": (lambda ends, other: ends.forge(data=packb([1])), SignatureError),
    "no inner key": (lambda ends, other: ends.forge(key=...), SignatureError),
    "another inner key": (lambda ends, other: ends.forge(key=b"\xff" * 256), SignatureError),
    "no nonce": (lambda ends, other: ends.forge(nonce=...), NonceError),
    "another nonce": (lambda ends, other: ends.forge(nonce="f" * 32), NonceError),
    "no pillar inside": (lambda ends, other: ends.forge(pillar=...), PeerFault),
    "pillar is a list": (lambda ends, other: ends.forge(pillar=[1]), PeerFault),
    "pillar is none": (lambda ends, other: ends.forge(pillar=None), PeerFault),
}


@pytest.mark.parametrize(("reply", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(ends: Ends, other_key: PrivateKey, reply: Any, error: type[PeerFault]) -> None:
    with pytest.raises(error) as caught:
        ends.open(reply(ends, other_key))
    assert type(caught.value) is error


def test_an_answer_to_an_earlier_request_is_refused(ends: Ends) -> None:
    with pytest.raises(NonceError):
        ends.open(ends.seal(nonce="f" * 32))


def test_other_algorithms_than_asked_for_are_refused(ends: Ends) -> None:
    with pytest.raises(PeerFault):
        ends.open(ends.seal(enc_algo="OAEP-SHA224"))
    with pytest.raises(SignatureError):
        ends.open(ends.seal(sig_algo="PKCS1v15-SHA224"))


def test_changed_bytes_are_noticed(ends: Ends) -> None:
    outer = unpackb(ends.seal(), raw=True)
    for name in ("key", "pillar"):
        whole = octets(outer[name]) or b""
        for place in range(0, len(whole), 23):
            changed = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
            with pytest.raises(PeerFault):
                ends.open(packb({**outer, name: changed}))


def test_a_key_too_small_for_the_algorithm_is_the_minions_fault(small_key: PrivateKey, master_key: PrivateKey) -> None:
    with pytest.raises(PeerFault, match="too small"):
        Ends(small_key, master_key).seal(enc_algo="OAEP-SHA224")


def test_any_answer_is_a_pillar_or_refused(ends: Ends) -> None:
    @settings(max_examples=40)
    @given(st.binary(max_size=60), st.none() | st.integers() | st.text(max_size=5) | st.lists(st.binary(max_size=3)))
    def check(noise: bytes, value: Any) -> None:
        for reply in (
            noise,
            packb(value),
            packb({"key": value, "pillar": noise}),
            ends.forge(data=noise),
            ends.forge(inner=[value]),
        ):
            with pytest.raises(PeerFault):
                ends.open(reply)

    check()

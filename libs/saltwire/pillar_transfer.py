"""The reply to ``_pillar``: pillar encrypted under its own key string and signed by the master.

Source: docs/protocol.md#pillar-transfer
"""

from __future__ import annotations

from collections.abc import Mapping

from saltwire.crypticle import Crypticle, is_nonce
from saltwire.errors import NonceError, OwnFault, PeerFault, SignatureError, shown
from saltwire.keys import MasterPublicKeys, PrivateKey, PublicKey, generate_key_string
from saltwire.pack import octets, packb, unpackb


def seal_pillar(
    pillar: Mapping[str, object],
    *,
    minion_pub: PublicKey,
    master_key: PrivateKey,
    nonce: str,
    enc_algo: str,
    sig_algo: str,
) -> bytes:
    """Return the master's reply to a minion's request for its pillar: encrypted to ``minion_pub``, signed by the
    master.

    Raises PeerFault for a bad ``nonce``, which the master would sign.
    """
    if not is_nonce(nonce):
        raise PeerFault("a nonce is 32 hexadecimal characters")
    key_string = generate_key_string()
    wrapped = minion_pub.encrypt(key_string.encode(), enc_algo)
    data = packb({"key": wrapped, "pillar": dict(pillar), "nonce": nonce})
    sealed = Crypticle(key_string).dumps({"data": data, "sig": master_key.sign(data, sig_algo)})
    return packb({"key": wrapped, "pillar": sealed})


def open_pillar(
    reply: bytes,
    *,
    private_key: PrivateKey,
    master_pub: PublicKey | MasterPublicKeys,
    nonce: str,
    enc_algo: str,
    sig_algo: str,
) -> dict[str, object]:
    """Decrypt and verify the master's reply to a request for pillar, and return the pillar.

    Raises PeerFault if the reply is malformed (the caller signs in again), SignatureError if the master did not sign
    it, NonceError if it answers another request.
    """
    outer = unpackb(reply)
    wrapped, sealed = (
        (octets(outer.get("key")), octets(outer.get("pillar"))) if isinstance(outer, dict) else (None, None)
    )
    if wrapped is None or sealed is None:
        raise PeerFault(f"the master answered {shown(outer)} to a request for pillar")
    try:
        inner = Crypticle(private_key.decrypt(wrapped, enc_algo).decode("ascii")).loads(sealed)
    except (UnicodeDecodeError, OwnFault) as error:
        raise PeerFault("the pillar's key is no key string") from error
    data, signature = (octets(inner.get("data")), octets(inner.get("sig"))) if isinstance(inner, dict) else (None, None)
    if data is None or signature is None:
        raise PeerFault("a pillar without data and signature")
    master_pub.verify(data, signature, sig_algo)
    load = unpackb(data)
    if not isinstance(load, dict) or octets(load.get("key")) != wrapped:
        raise SignatureError("the pillar's inner key is not the outer one")
    if load.get("nonce") != nonce:
        raise NonceError("the pillar is the answer to another request")
    pillar = load.get("pillar")
    if not isinstance(pillar, dict):
        raise PeerFault(f"the pillar is a {type(pillar).__name__}, not a map")
    return pillar

"""Publications on 4505: sealed once by the master, opened by every minion (protocol section 6)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from saltwire.crypticle import Crypticle, SerialGate
from saltwire.errors import PeerFault, SignatureError
from saltwire.keys import SIG_ALGOS, PrivateKey, PublicKey
from saltwire.pack import octets, packb, text, unpackb

#: A job without these is none.
_NEEDED = ("tgt", "jid", "fun", "arg")

#: Bits of a serial below the milliseconds: more publications in one millisecond than a stream can take.
_SEQUENCE_BITS = 12


def seal_job(load: Mapping[str, Any], aes: Crypticle, private_key: PrivateKey, sig_algo: str, serial: int) -> bytes:
    """The payload of a publication. ``serial`` must rise as long as ``aes`` lives."""
    sealed = aes.dumps({**load, "serial": serial})
    return packb({"enc": "aes", "load": sealed, "sig_algo": sig_algo, "sig": private_key.sign(sealed, sig_algo)})


def open_job(
    payload: bytes, aes: Crypticle, *, gate: SerialGate, master_pub: PublicKey | None = None, verify: bool = False
) -> dict[str, Any] | None:
    """The job; None for what is to be dropped in silence (an old serial, another scheme).

    Raises AuthenticationError when the key has changed (sign in again, open once more), SignatureError, PeerFault.
    """
    outer = unpackb(payload)
    if not isinstance(outer, dict) or outer.get("enc") != "aes":
        return None
    sealed = octets(outer.get("load"))
    if sealed is None:
        raise PeerFault("a publication without a load")
    if verify:
        _verify(sealed, outer, master_pub)
    job = aes.loads(sealed)
    if not isinstance(job, dict) or not gate.admits(job):
        return None
    return job if all(name in job for name in _NEEDED) else None


def topic(minion_id: str) -> str:
    """The topic of one minion where publications are filtered."""
    return hashlib.sha1(minion_id.encode(), usedforsecurity=False).hexdigest()


def serial_of_stream_id(stream_id: str) -> int:
    """The serial of an entry ``<milliseconds>-<sequence>`` of the stream of publications: every publisher agrees on it."""
    milliseconds, _, sequence = stream_id.partition("-")
    return int(milliseconds) << _SEQUENCE_BITS | min(int(sequence or 0), (1 << _SEQUENCE_BITS) - 1)


def _verify(sealed: bytes, outer: Mapping[str, Any], master_pub: PublicKey | None) -> None:
    signature, algo = octets(outer.get("sig")), text(outer.get("sig_algo")) or "PKCS1v15-SHA1"
    if signature is None or master_pub is None or algo not in SIG_ALGOS:
        raise SignatureError("a publication without a signature that can be checked")
    master_pub.verify(sealed, signature, algo)

"""Publications on port 4505: the master encrypts and signs each job once, and every minion decrypts it.

Source: docs/protocol.md#publications
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import cast

from saltwire.crypticle import Crypticle, SerialGate
from saltwire.errors import PeerFault, SignatureError, shown
from saltwire.keys import SIG_ALGOS, MasterPublicKeys, PrivateKey, PublicKey
from saltwire.messages import Publication
from saltwire.pack import octets, packb, text, unpackb

#: Fields that every job has; a publication without one of them is ignored.
_NEEDED = ("tgt", "jid", "fun", "arg")

#: Form of a JID that an operator chose. JIDs become parts of file names.
_JID = re.compile(r"[A-Za-z0-9_][\w.+=@:-]{0,199}", re.ASCII)

#: Bits of a serial that hold the stream's sequence number; the bits above hold milliseconds.
_SEQUENCE_BITS = 12


def seal_job(load: Mapping[str, object], aes: Crypticle, private_key: PrivateKey, sig_algo: str, serial: int) -> bytes:
    """Return the packed bytes of a job's publication: ``load`` with the serial, encrypted with ``aes`` and signed.

    ``serial`` must rise from call to call for as long as the key ``aes`` is in use.
    """
    (sealed,) = seal_job_by_each(load, aes, [private_key], sig_algo, serial)
    return sealed


def seal_job_by_each(
    load: Mapping[str, object], aes: Crypticle, private_keys: Sequence[PrivateKey], sig_algo: str, serial: int
) -> list[bytes]:
    """Return a list of packed publications of one job, each signed with one of the master's ``private_keys``.

    There are two keys while the master's key is replaced. A minion runs the job once, because all publications have
    the same serial and JID.
    """
    sealed = aes.dumps({**load, "serial": serial})
    return [
        packb({"enc": "aes", "load": sealed, "sig_algo": sig_algo, "sig": key.sign(sealed, sig_algo)})
        for key in private_keys
    ]


def open_job(
    payload: bytes,
    aes: Crypticle,
    *,
    gate: SerialGate,
    master_pub: PublicKey | MasterPublicKeys | None = None,
    verify: bool = False,
) -> Publication | None:
    """Decrypt a publication. Return None for a publication to ignore: its serial number is not newer than the last
    one, it is not AES-encrypted, or it lacks a field.

    ``verify``: check the signature with ``master_pub``. Raises AuthenticationError if the key has changed (the caller
    signs in again and opens the publication once more), SignatureError, and PeerFault for a malformed job (see
    ``job_fault``).
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
    if any(name not in job for name in _NEEDED):
        return None
    if fault := job_fault(job):
        raise PeerFault(fault)
    return cast("Publication", job)


def job_fault(job: Mapping[str, object]) -> str:
    """Return why the map of a received publication is not a job that can run; "" if it is one.

    The map has the fields jid, fun and arg.
    """
    jid, fun, arg = job["jid"], job["fun"], job["arg"]
    if not isinstance(jid, str) or not _JID.fullmatch(jid):
        return f"{shown(jid)} is no JID"
    names = fun if isinstance(fun, list) else [fun]
    if not names or not all(isinstance(name, str) and name for name in names):
        return f"{shown(fun)} is no function ({jid})"
    if not isinstance(arg, list) or (isinstance(fun, list) and not all(isinstance(one, list) for one in arg)):
        return f"{shown(arg)} are no arguments ({jid})"
    return ""


def topic(minion_id: str) -> str:
    """Return the topic that one minion subscribes to when the master filters publications (``zmq_filtering``): SHA-1 of
    its id in hex.
    """
    return hashlib.sha1(minion_id.encode(), usedforsecurity=False).hexdigest()


def serial_of_stream_id(stream_id: str) -> int:
    """Return the serial of a Redis stream id ``<milliseconds>-<sequence>``. All publishers compute the same serial for
    one entry.
    """
    milliseconds, _, sequence = stream_id.partition("-")
    return int(milliseconds) << _SEQUENCE_BITS | min(int(sequence or 0), (1 << _SEQUENCE_BITS) - 1)


def _verify(sealed: bytes, outer: Mapping[str, object], master_pub: PublicKey | MasterPublicKeys | None) -> None:
    signature, algo = octets(outer.get("sig")), text(outer.get("sig_algo")) or "PKCS1v15-SHA1"
    if signature is None or master_pub is None or algo not in SIG_ALGOS:
        raise SignatureError("a publication without a signature that can be checked")
    if _is_packed_map(sealed):
        raise SignatureError("a publication whose bytes are another message of the master: somebody forged it")
    master_pub.verify(sealed, signature, algo)


def _is_packed_map(sealed: bytes) -> bool:
    """Return whether bytes are one packed map. A master signs packed maps everywhere, except in publications.

    A master that signs the nonce of a sign-in without a check can be made to sign a map that is a valid ciphertext,
    too. A real ciphertext begins with random bytes and is never a packed map.
    """
    if not sealed or not (sealed[0] & 0xF0 == 0x80 or sealed[0] in (0xDE, 0xDF)):
        return False
    try:
        return isinstance(unpackb(sealed), dict)
    except PeerFault:
        return False

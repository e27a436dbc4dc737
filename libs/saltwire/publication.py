"""Publications on 4505: sealed once by the master, opened by every minion (protocol section 6)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import cast

from saltwire.crypticle import Crypticle, SerialGate
from saltwire.errors import PeerFault, SignatureError
from saltwire.keys import SIG_ALGOS, PrivateKey, PublicKey
from saltwire.messages import Publication
from saltwire.pack import octets, packb, text, unpackb

#: A job without these is none.
_NEEDED = ("tgt", "jid", "fun", "arg")

#: What a JID may be that an operator chose: it becomes the name of files, with more before and behind it.
_JID = re.compile(r"[A-Za-z0-9_][\w.+=@:-]{0,199}", re.ASCII)

#: Characters of a wrong value that are told.
_SHOWN = 100

#: Bits of a serial below the milliseconds: more publications in one millisecond than a stream can take.
_SEQUENCE_BITS = 12


def seal_job(load: Mapping[str, object], aes: Crypticle, private_key: PrivateKey, sig_algo: str, serial: int) -> bytes:
    """The payload of a publication. ``serial`` must rise as long as ``aes`` lives."""
    sealed = aes.dumps({**load, "serial": serial})
    return packb({"enc": "aes", "load": sealed, "sig_algo": sig_algo, "sig": private_key.sign(sealed, sig_algo)})


def open_job(
    payload: bytes, aes: Crypticle, *, gate: SerialGate, master_pub: PublicKey | None = None, verify: bool = False
) -> Publication | None:
    """The job; None for what is to be dropped in silence (an old serial, another scheme).

    Raises AuthenticationError when the key has changed (sign in again, open once more), SignatureError, PeerFault, also for what
    is no job (``job_fault``).
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
    """Why what was published is no job that can be run; empty: it is one. It must have the fields that a job needs."""
    jid, fun, arg = job["jid"], job["fun"], job["arg"]
    if not isinstance(jid, str) or not _JID.fullmatch(jid):
        return f"{_shown(jid)} is no JID"
    names = fun if isinstance(fun, list) else [fun]
    if not names or not all(isinstance(name, str) and name for name in names):
        return f"{_shown(fun)} is no function ({jid})"
    if not isinstance(arg, list) or (isinstance(fun, list) and not all(isinstance(one, list) for one in arg)):
        return f"{_shown(arg)} are no arguments ({jid})"
    return ""


def _shown(value: object) -> str:
    try:
        text_of_it = repr(value)
    except RecursionError:
        text_of_it = f"a {type(value).__name__} that nests too deeply"
    return text_of_it if len(text_of_it) <= _SHOWN else f"{text_of_it[:_SHOWN]}..."


def topic(minion_id: str) -> str:
    """The topic of one minion where publications are filtered."""
    return hashlib.sha1(minion_id.encode(), usedforsecurity=False).hexdigest()


def serial_of_stream_id(stream_id: str) -> int:
    """The serial of an entry ``<milliseconds>-<sequence>`` of the stream of publications: every publisher agrees on it."""
    milliseconds, _, sequence = stream_id.partition("-")
    return int(milliseconds) << _SEQUENCE_BITS | min(int(sequence or 0), (1 << _SEQUENCE_BITS) - 1)


def _verify(sealed: bytes, outer: Mapping[str, object], master_pub: PublicKey | None) -> None:
    signature, algo = octets(outer.get("sig")), text(outer.get("sig_algo")) or "PKCS1v15-SHA1"
    if signature is None or master_pub is None or algo not in SIG_ALGOS:
        raise SignatureError("a publication without a signature that can be checked")
    master_pub.verify(sealed, signature, algo)

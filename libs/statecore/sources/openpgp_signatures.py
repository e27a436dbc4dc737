"""Who signed a file: OpenPGP signatures as the program ``gpg`` finds them, and whether those suffice that are asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from statecore.model.errors import CommandError

#: Seconds that gpg may take.
_PATIENCE = 120

#: What gpg says of how far a key is trusted -> Salt's word. Salt: modules/gpg.py, VERIFY_TRUST_LEVELS.
_TRUST: Mapping[str, str] = {
    "TRUST_EXPIRED": "Expired",
    "TRUST_UNDEFINED": "Undefined",
    "TRUST_NEVER": "Never",
    "TRUST_MARGINAL": "Marginal",
    "TRUST_FULLY": "Fully",
    "TRUST_ULTIMATE": "Ultimate",
}

#: What gpg says of a signature -> what Salt tells. Of these the first alone is one to go by.
_STATUS: Mapping[str, str] = {
    "GOODSIG": "signature good",
    "EXPSIG": "signature expired",
    "EXPKEYSIG": "signing key was expired",
    "REVKEYSIG": "signing key was revoked",
    "BADSIG": "signature bad",
    "ERRSIG": "signature error",
}

TRUST_MODELS = ("pgp", "classic", "tofu", "tofu+pgp", "direct", "always", "auto")


class Signature(NamedTuple):
    """One signature."""

    status: str
    key_id: str = ""
    username: str | None = None
    #: Of the primary key, whichever of its keys signed; "" where it is not known.
    fingerprint: str = ""
    trust_level: str | None = None

    @property
    def good(self) -> bool:
        """Whether it is valid now, by a key that is at hand, neither expired nor revoked."""
        return self.status == _STATUS["GOODSIG"] and bool(self.fingerprint)


class SignatureVerdict(NamedTuple):
    """Whether signatures suffice, and why not."""

    good: bool
    message: str


def found(
    data: Path | bytes,
    signature: Path | None = None,
    *,
    home: Path | None = None,
    keyring: Path | None = None,
    trust_model: str | None = None,
) -> list[Signature]:
    """The signatures of a file: those in ``signature``, else those that it holds itself. Raises CommandError.

    home, keyring
        gpg's directory (its own default otherwise), and a file of keys that alone count
    """
    program = shutil.which("gpg")
    if program is None:
        raise CommandError("signatures cannot be verified: there is no program gpg")
    if home is not None and not home.is_dir():
        raise CommandError(f"signatures cannot be verified: gnupghome {home} is no directory")
    if keyring is not None and not keyring.is_file():
        raise CommandError(f"signatures cannot be verified: keyring {keyring} is no file")
    # Not --batch: with it gpg ends at the first signature that is not valid, and never sees the others.
    command = [program, "--no-tty", "--status-fd", "1", "--no-auto-check-trustdb"]
    command += ["--homedir", str(home)] if home is not None else []
    command += ["--no-default-keyring", "--keyring", str(keyring)] if keyring is not None else []
    command += ["--trust-model", trust_model] if trust_model else []
    named = "-" if isinstance(data, bytes) else str(data)
    command += ["--verify", *([str(signature)] if signature is not None else []), named]
    try:
        done = subprocess.run(
            command,
            input=data if isinstance(data, bytes) else None,
            stdin=None if isinstance(data, bytes) else subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"signatures cannot be verified: gpg: {error}") from error
    return parsed(done.stdout.decode("utf-8", "replace"))


def parsed(status: str) -> list[Signature]:
    """The signatures that gpg's status lines tell of. Pure."""
    told: list[dict[str, Any]] = []
    for line in status.splitlines():
        word, *rest = line.removeprefix("[GNUPG:] ").split(" ") if line.startswith("[GNUPG:] ") else [""]
        if word == "NEWSIG":
            told.append({"status": "signature error"})
        elif word in _STATUS and rest:
            if not told or "key_id" in told[-1]:
                told.append({})
            names = {} if word == "ERRSIG" else {"username": " ".join(rest[1:])}
            told[-1] |= {"status": _STATUS[word], "key_id": rest[0], **names}
        elif word == "VALIDSIG" and told and rest:
            told[-1]["fingerprint"] = rest[9] if len(rest) > 9 else rest[0]
        elif word in _TRUST and told:
            told[-1]["trust_level"] = _TRUST[word]
    return [Signature(**each) for each in told]


def judged(signatures: Sequence[Signature], any_of: Sequence[str] = (), all_of: Sequence[str] = ()) -> SignatureVerdict:
    """Whether one of ``any_of`` and each of ``all_of`` (fingerprints) has signed; where nobody is named, anybody. Pure."""
    good = {each.fingerprint for each in signatures if each.good}
    if not (any_of or all_of):
        bad = any(each.status == _STATUS["BADSIG"] for each in signatures)
        if good and not bad:
            return SignatureVerdict(True, "The signature is verified.")
        return SignatureVerdict(False, f"The signature could not be verified.{_seen(signatures)}")
    if any_of and not good & {_plain(each) for each in any_of}:
        why = "None of the public keys listed in signed_by_any provided a valid signature"
        return SignatureVerdict(False, why + _seen(signatures))
    for each in all_of:
        if _plain(each) not in good:
            why = f"Public key {each} has not provided a valid signature, but was listed in signed_by_all"
            return SignatureVerdict(False, why + _seen(signatures))
    return SignatureVerdict(True, "All required keys have provided a signature")


def _plain(fingerprint: str) -> str:
    """A fingerprint as gpg writes it in its status."""
    return fingerprint.replace(" ", "").upper().removeprefix("0X")


def _seen(signatures: Sequence[Signature]) -> str:
    """What there is instead."""
    if not signatures:
        return " (there is none)"
    told = [f"{each.status} by {each.fingerprint or each.key_id or 'an unknown key'}" for each in signatures]
    return f" ({', '.join(told)})"

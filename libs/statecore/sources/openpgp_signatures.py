"""OpenPGP signatures of files, checked by the program ``gpg``, and the decision whether they are sufficient."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

#: Time limit of gpg in seconds.
_PATIENCE = 120

#: gpg's keyword for the trust in a key -> Salt's word. Salt: salt/modules/gpg.py, VERIFY_TRUST_LEVELS
_TRUST: Mapping[str, str] = {
    "TRUST_EXPIRED": "Expired",
    "TRUST_UNDEFINED": "Undefined",
    "TRUST_NEVER": "Never",
    "TRUST_MARGINAL": "Marginal",
    "TRUST_FULLY": "Fully",
    "TRUST_ULTIMATE": "Ultimate",
}

#: gpg's keyword for a signature -> Salt's text. Only the first one means a valid signature.
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
    """One OpenPGP signature of a file as gpg reports it: its status, key and signer."""

    status: str
    key_id: str = ""
    username: str | None = None
    #: Fingerprint of the primary key, even when a subkey signed; "" when unknown.
    fingerprint: str = ""
    trust_level: str | None = None

    @property
    def good(self) -> bool:
        """True if the OpenPGP signature is valid now, by a known key that is neither expired nor revoked."""
        return self.status == _STATUS["GOODSIG"] and bool(self.fingerprint)


class SignatureVerdict(NamedTuple):
    """Decision about the OpenPGP signatures of a file: ``good`` is True if they are sufficient, ``message`` is the
    reason if not.
    """

    good: bool
    message: str


def signatures_of(
    data: Path | bytes,
    signature: Path | None = None,
    *,
    home: Path | None = None,
    keyring: Path | None = None,
    trust_model: str | None = None,
) -> list[Signature]:
    """Return the OpenPGP signatures of a file: those in the file ``signature``, else those in the file itself. Raises
    CommandError if gpg cannot run.

    home, keyring
        gpg's home directory (None: gpg's default), and a keyring file to use in place of gpg's own keyring
    """
    program = shutil.which("gpg")
    if program is None:
        raise CommandError("signatures cannot be verified: there is no program gpg")
    if home is not None and not home.is_dir():
        raise CommandError(f"signatures cannot be verified: gnupghome {home} is no directory")
    if keyring is not None and not keyring.is_file():
        raise CommandError(f"signatures cannot be verified: keyring {keyring} is no file")
    # Without --batch: with it, gpg ends at the first invalid signature and does not check the others.
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
    return parse_status(done.stdout.decode("utf-8", "replace"))


def parse_status(status: str) -> list[Signature]:
    """Return the OpenPGP signatures that the status lines of gpg's output describe."""
    found: list[Signature] = []
    for line in lines_of(status):
        word, *rest = line.removeprefix("[GNUPG:] ").split(" ") if line.startswith("[GNUPG:] ") else [""]
        if word == "NEWSIG":
            found.append(Signature("signature error"))
        elif word in _STATUS and rest:
            # NEWSIG begins a signature; old versions of gpg do not write it.
            before = found.pop() if found and not found[-1].key_id else Signature("")
            username = before.username if word == "ERRSIG" else " ".join(rest[1:])
            found.append(before._replace(status=_STATUS[word], key_id=rest[0], username=username))
        elif word == "VALIDSIG" and found and rest:
            found[-1] = found[-1]._replace(fingerprint=rest[9] if len(rest) > 9 else rest[0])
        elif word in _TRUST and found:
            found[-1] = found[-1]._replace(trust_level=_TRUST[word])
    return found


def verdict_of(
    signatures: Sequence[Signature], any_of: Sequence[str] = (), all_of: Sequence[str] = ()
) -> SignatureVerdict:
    """Return the SignatureVerdict that says if the signatures of a file are sufficient: one key of ``any_of`` and
    every key of ``all_of`` (fingerprints) must have signed; without names, any known key.
    """
    good = {each.fingerprint for each in signatures if each.good}
    if not (any_of or all_of):
        bad = any(each.status == _STATUS["BADSIG"] for each in signatures)
        if good and not bad:
            return SignatureVerdict(True, "The signature is verified.")
        return SignatureVerdict(False, f"The signature could not be verified.{_described(signatures)}")
    if any_of and not good & {_plain(each) for each in any_of}:
        why = "None of the public keys listed in signed_by_any provided a valid signature"
        return SignatureVerdict(False, why + _described(signatures))
    for each in all_of:
        if _plain(each) not in good:
            why = f"Public key {each} has not provided a valid signature, but was listed in signed_by_all"
            return SignatureVerdict(False, why + _described(signatures))
    return SignatureVerdict(True, "All required keys have provided a signature")


def _plain(fingerprint: str) -> str:
    """Return a key's fingerprint in the format of gpg's status lines: upper case, without blanks."""
    return fingerprint.replace(" ", "").upper().removeprefix("0X")


def _described(signatures: Sequence[Signature]) -> str:
    """Return the status, key and signer of each signature of a file in one text, for error messages."""
    if not signatures:
        return " (there is none)"
    descriptions = [f"{each.status} by {each.fingerprint or each.key_id or 'an unknown key'}" for each in signatures]
    return f" ({', '.join(descriptions)})"

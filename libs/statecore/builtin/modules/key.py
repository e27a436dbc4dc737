"""Fingerprints of the minion's own public key and of its master's: Salt's ``key`` execution module."""

from __future__ import annotations

import hashlib
from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of


def finger(ctx: Context, hash_type: str | None = None) -> str:
    """Return the fingerprint of the minion's public key, "" if it has no key yet.

    hash_type
        digest algorithm; default: the option ``hash_type``

    CLI Example:

        salt '*' key.finger
    """
    return _fingerprint(ctx, "minion.pub", hash_type)


def finger_master(ctx: Context, hash_type: str | None = None) -> str:
    """Return the fingerprint of the master's public key that the minion trusts, "" if it trusts none yet.

    hash_type
        digest algorithm; default: the option ``hash_type``

    CLI Example:

        salt '*' key.finger_master
    """
    return _fingerprint(ctx, "minion_master.pub", hash_type)


def _fingerprint(ctx: Context, name: str, hash_type: str | None) -> str:
    wanted = str(hash_type or ctx.opts.get("hash_type") or "sha256")
    # SHAKE digests need a length, which Salt's function does not have.
    if wanted not in hashlib.algorithms_guaranteed or wanted.startswith("shake"):
        raise InvocationError(
            f"there is no hash_type {wanted!r}; there are {', '.join(sorted(hashlib.algorithms_guaranteed))}"
        )
    place = Path(str(ctx.opts["pki_dir"])) / name
    try:
        lines = [line for line in lines_of(place.read_bytes(), keepends=True) if line.strip()]
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CommandError(f"{place} cannot be read: {error.strerror}") from error
    digest = hashlib.new(wanted, b"".join(lines[1:-1]).replace(b"\r\n", b"\n")).hexdigest()
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))

"""Replaces the CurveZMQ key of a role or an operator. Meanwhile the old and the new key are both valid.

1. Every directory that holds the public key gets the new one as a second line: servers admit both.
2. The role's or operator's own directory gets the new secret key, and the new public key becomes the first line: clients use
   it, and servers bind again.
3. The old public key is removed: servers admit it no longer.

The files show how far a rotation came, so the same command continues an interrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence

import zmq

from saltern.rotate.key_files import KeyFiles, RotationError, tell

#: The new secret key, until it is in use.
_NEXT = "curve.next"
_SECRET = "curve.secret"


def rotate_link_key(files: KeyFiles, name: str) -> None:
    """Replace the CurveZMQ key of the role or operator ``name``, or finish an interrupted replacement.

    Raises RotationError, OSError.
    """
    if not files.exists(f"{name}/{_SECRET}"):
        raise RotationError(
            f"{files.directory / name / _SECRET}: No such file; --keys names the directory of `saltern keygen --out`, "
            f"and {name} a role or operator in it"
        )
    old = _public(files, f"{name}/{_SECRET}")
    if files.exists(f"{name}/{_NEXT}") or not _is_half_done(files, name, old):
        new = _announce(files, name, old)
        files.bring()
        _use(files, name, old, new)
        files.bring()
    else:
        new = old
        tell(f"{name}: a rotation that was interrupted is finished")
    _publish(files, name, [new])
    files.bring()
    tell(f"{name}: the new key is {new.decode()}, the old one opens nothing any more")


def _announce(files: KeyFiles, name: str, old: bytes) -> bytes:
    """Carry out step 1 of the rotation of a CurveZMQ key: make the new key, and let servers admit the new public key
    beside the old one. Return the new public key.
    """
    if not files.exists(f"{name}/{_NEXT}"):
        files.write(f"{name}/{_NEXT}", zmq.curve_keypair()[1] + b"\n")
    new = _public(files, f"{name}/{_NEXT}")
    _publish(files, name, [old, new])
    tell(f"{name}: the new key is known beside the old one")
    return new


def _use(files: KeyFiles, name: str, old: bytes, new: bytes) -> None:
    """Carry out step 2 of the rotation of a CurveZMQ key: replace the secret key by the new one, and put the new
    public key before the old one in each copy.
    """
    secret = files.read(f"{name}/{_NEXT}")
    # Whoever connects between the two writes tries the other key when the first one fails.
    files.write(f"{name}/{_SECRET}", secret)
    _publish(files, name, [new, old])
    files.remove(f"{name}/{_NEXT}")
    tell(f"{name}: the new key is in use")


def _publish(files: KeyFiles, name: str, publics: Sequence[bytes]) -> None:
    content = b"".join(public + b"\n" for public in publics)
    for place in _places(files, name):
        if files.read(place) != content:
            files.write(place, content)


def _places(files: KeyFiles, name: str) -> list[str]:
    """Return the names ``<role>/known/<name>.pub`` of the files that hold the public key of ``name``."""
    return [place for place in files.names() if place.split("/")[1:] == ["known", f"{name}.pub"]]


def _is_half_done(files: KeyFiles, name: str, public: bytes) -> bool:
    """Return whether the rotation of a key was interrupted before step 3: the new public key is in use, and the old
    one is still admitted.
    """
    return any(len(found := files.read(place).split()) > 1 and found[0] == public for place in _places(files, name))


def _public(files: KeyFiles, name: str) -> bytes:
    try:
        return zmq.curve_public(files.read(name).strip())
    except (ValueError, zmq.ZMQError) as error:
        raise RotationError(f"{files.directory / name}: not a CurveZMQ key: {error}") from error

"""The eauth backend ``file``: a text file of users and passwords, Apache's htpasswd, or Apache's htdigest.

Settings are the keys of ``external_auth: file:`` that begin with ``^``, as in Salt: ``^filename``, ``^filetype`` (text, htpasswd,
htdigest), ``^realm``, ``^hashtype``, ``^field_separator``, ``^username_field``, ``^password_field``.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from pathlib import Path

from saltern.mworker.eauth.identity import EauthFault, Identity, missing

_DEFAULTS: Mapping[str, object] = {
    "filetype": "text",
    "hashtype": "plaintext",
    "field_separator": ":",
    "username_field": 1,
    "password_field": 2,
}


def check(settings: Mapping[str, object], user: str, password: str) -> Identity | None:
    """Check a user's password with the password file of the eauth backend ``file``. Return the Identity; None for a
    wrong password or an unknown user. Raises EauthFault if the file or a setting cannot be used.
    """
    rows = settings["external_auth"]
    given = rows.get("file") if isinstance(rows, Mapping) else None
    said = given if isinstance(given, Mapping) else {}
    own = {**_DEFAULTS, **{str(name)[1:]: value for name, value in said.items() if str(name).startswith("^")}}
    path = Path(str(own.get("filename") or ""))
    if not own.get("filename"):
        raise EauthFault("external_auth: file: ^filename names no file")
    kind = str(own["filetype"]).lower()
    if kind not in ("text", "htpasswd", "htdigest"):
        raise EauthFault(f"external_auth: file: ^filetype is text, htpasswd or htdigest, not {kind!r}")
    try:
        known = _of_text(path, own, user, password) if kind == "text" else _of_apache(path, own, user, password)
    except (OSError, UnicodeDecodeError) as error:
        raise EauthFault(f"external_auth: file: {path}: {error}") from error
    return Identity(user) if known else None


def _of_text(path: Path, own: Mapping[str, object], user: str, password: str) -> bool:
    try:
        name_at, word_at = (int(str(own[field])) - 1 for field in ("username_field", "password_field"))
    except ValueError as error:
        raise EauthFault(f"external_auth: file: ^username_field and ^password_field are numbers: {error}") from error
    if name_at < 0 or word_at < 0:
        raise EauthFault("external_auth: file: ^username_field and ^password_field count from 1")
    given = password
    if (kind := str(own["hashtype"])) != "plaintext":
        try:
            given = hashlib.new(kind, password.encode(), usedforsecurity=False).hexdigest()
        except (ValueError, TypeError) as error:
            raise EauthFault(f"external_auth: file: ^hashtype {kind!r} is no digest") from error
    found = None
    for line in path.read_text("utf-8").split("\n"):
        fields = line.strip().split(str(own["field_separator"]))
        if found is None and len(fields) > max(name_at, word_at) and fields[name_at] == user:
            found = fields[word_at]
    # An unknown user takes the same steps as a known one, here and below: the time of an answer tells no names.
    same = hmac.compare_digest((found or "").encode(), given.encode())
    return same and found is not None


def _of_apache(path: Path, own: Mapping[str, object], user: str, password: str) -> bool:
    try:
        from passlib.apache import HtdigestFile, HtpasswdFile
    except ImportError as error:
        raise missing("libpass", "file") from error
    if str(own["filetype"]).lower() == "htpasswd":
        plain = HtpasswdFile(str(path))
        name = _someone(user, plain.users())
        return name is not None and bool(plain.check_password(name, password)) and name == user
    if not own.get("realm"):
        raise EauthFault("external_auth: file: ^filetype htdigest needs ^realm")
    realm, digests = str(own["realm"]), HtdigestFile(str(path))
    name = _someone(user, digests.users(realm))
    return name is not None and bool(digests.check_password(name, realm, password)) and name == user


def _someone(user: str, known: Sequence[str]) -> str | None:
    """Return the user if ``known`` contains the name; else one of ``known``, always the same one for this name, so that
    the check of an unknown user computes a digest as that of a known user does. None if the file has no users.
    """
    if user in known or not known:
        return user if user in known else None
    return known[int.from_bytes(hashlib.sha256(user.encode("utf-8", "surrogatepass")).digest()[:8]) % len(known)]

"""SQL literals, names and password hashes of PostgreSQL. Quoted values are escaped, so they cannot inject SQL."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import stringprep
import unicodedata

from statecore.model.errors import InvocationError

#: Rounds of a new SCRAM verifier, the server's default.
_ROUNDS = 4096

_SCRAM = re.compile(r"SCRAM-SHA-256\$(\d+):([^$]+)\$")

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r"})

#: Characters prohibited by SASLprep (RFC 4013). A password with one of them is used unprepared.
_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)

METHODS = ("md5", "scram-sha-256")


def literal(value: object) -> str:
    """Return a text as SQL string literal of PostgreSQL, in the form E'...' that does not depend on the server's
    settings.

    Raises InvocationError for a null byte or invalid Unicode, which PostgreSQL cannot store.
    """
    text = str(value)
    if "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
        raise InvocationError(f"PostgreSQL cannot store the text {text!r}")
    return f"E'{text.translate(_ESCAPES)}'"


def identifier(name: object) -> str:
    """Return the name of a PostgreSQL object in double quotes, for SQL.

    Raises InvocationError for an empty name or one with control characters.
    """
    text = str(name)
    if not text or any(ord(each) < 32 or "\ud800" <= each <= "\udfff" for each in text):
        raise InvocationError(f"{text!r} is not a valid name")
    return '"' + text.replace('"', '""') + '"'


def need_method(encrypted: object) -> str:
    """Return PostgreSQL's method to hash passwords from the argument ``encrypted``: md5 (for True and None) or
    scram-sha-256. Raise InvocationError for any other value.
    """
    if encrypted is False:
        raise InvocationError("not supported: encrypted: False; no server keeps plain passwords since PostgreSQL 10")
    method = "md5" if encrypted in (None, True) else encrypted
    if method not in METHODS:
        raise InvocationError(f"Unknown password algorithm: {encrypted}; there are {', '.join(METHODS)}")
    return str(method)


def stored_hash(role: str, password: str, method: str) -> str:
    """Return the hash that a PostgreSQL server stores for the password of a role.

    A password that is a hash already is returned unchanged.
    """
    if method == "md5":
        return password if password.startswith("md5") else _md5(role, password)
    return password if password.startswith("SCRAM-SHA-256") else _scram(password, os.urandom(16), _ROUNDS)


def is_stored_hash(role: str, password: str, verifier: str, method: str) -> bool:
    """Return True if ``verifier``, the hash that a PostgreSQL server stores for a role, is of this password and this
    method.
    """
    if method == "md5":
        return hmac.compare_digest(stored_hash(role, password, method).encode(), verifier.encode())
    if password.startswith("SCRAM-SHA-256"):
        return hmac.compare_digest(password.encode(), verifier.encode())
    match = _SCRAM.match(verifier)
    if match is None:
        return False
    try:
        again = _scram(password, base64.b64decode(match[2]), int(match[1]))
    except ValueError:
        return False
    return hmac.compare_digest(again.encode(), verifier.encode())


def _md5(role: str, password: str) -> str:
    return "md5" + hashlib.md5(f"{password}{role}".encode()).hexdigest()


def _scram(password: str, salt: bytes, rounds: int) -> str:
    """Return the SCRAM verifier (RFC 5803) of a password: the text that PostgreSQL stores in ``pg_authid``."""
    salted = hashlib.pbkdf2_hmac("sha256", _prepared(password).encode(), salt, rounds)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    texts = [base64.b64encode(each).decode() for each in (salt, stored, server)]
    return f"SCRAM-SHA-256${rounds}:{texts[0]}${texts[1]}:{texts[2]}"


def _prepared(password: str) -> str:
    """Return a password prepared with SASLprep (RFC 4013), for its hash.

    Like the server, use it unprepared if it has prohibited characters.
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else "" if stringprep.in_table_b1(each) else each for each in password
    )
    text = unicodedata.normalize("NFKC", mapped)
    if not text or any(prohibited(each) for each in text for prohibited in _PROHIBITED):
        return password
    if any(stringprep.in_table_a1(each) for each in text):
        return password
    right = any(stringprep.in_table_d1(each) for each in text)
    mixed = right and any(stringprep.in_table_d2(each) for each in text)
    unframed = right and not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1]))
    return password if mixed or unframed else text

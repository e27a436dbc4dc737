"""Lines of authorized_keys and known_hosts files (sshd(8)): parse, write, match."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

#: Accepted name of a key type -> its name in the files.
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("r", "rsa", "ssh-rsa"), "ssh-rsa"),
    **dict.fromkeys(("d", "dsa", "dss", "ssh-dss"), "ssh-dss"),
    **dict.fromkeys(("e", "ecdsa", "ecdsa-sha2-nistp256"), "ecdsa-sha2-nistp256"),
    **dict.fromkeys(("ed25519", "ssh-ed25519"), "ssh-ed25519"),
    **{
        name: name
        for name in (
            "ecdsa-sha2-nistp521",
            "ecdsa-sha2-nistp384",
            "rsa-sha2-512",
            "rsa-sha2-256",
            "rsa-sha2-512-cert-v01@openssh.com",
            "rsa-sha2-256-cert-v01@openssh.com",
            "ssh-rsa-cert-v01@openssh.com",
            "ecdsa-sha2-nistp256-cert-v01@openssh.com",
            "ecdsa-sha2-nistp384-cert-v01@openssh.com",
            "ecdsa-sha2-nistp521-cert-v01@openssh.com",
            "sk-ecdsa-sha2-nistp256@openssh.com",
            "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
            "ssh-ed25519-cert-v01@openssh.com",
            "sk-ssh-ed25519@openssh.com",
            "sk-ssh-ed25519-cert-v01@openssh.com",
        )
    },
}

#: Options; then type, key and comment.
_LINE = re.compile(r"^(.*?)\s?((?:sk-)?(?:ssh-|ecds)[\w@.-]+\s.+)$")

#: Start of a hashed host name: ``|1|salt|HMAC-SHA1 of the name``, both in base64.
_HASHED = "|1|"


def key_type(enc: str) -> str:
    """Return the name of an SSH key type as authorized_keys and known_hosts have it: ``ssh-rsa`` for ``rsa``. Raises
    CommandError for an unknown type.
    """
    try:
        return _TYPES[enc]
    except KeyError:
        raise CommandError(f"Incorrect encryption key type '{enc}'.") from None


def fingerprint(key: str, hash_type: str | None = None) -> str | None:
    """Return the fingerprint of an SSH public key: its digest as pairs of hexadecimal digits with colons; None if the
    key is not base64.

    Raises CommandError for an unknown hash type.
    """
    name = (hash_type or "sha256").lower()
    if name not in hashlib.algorithms_guaranteed:
        raise CommandError(f"The fingerprint_hash_type {name} is not supported.")
    try:
        raw = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return None
    digits = hashlib.new(name, raw).hexdigest()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def authorized_line(key: str, enc: str, comment: str, options: Sequence[str] | None) -> str:
    """Return the line of authorized_keys for an SSH public key, its type, comment and options."""
    return f"{','.join(options) + ' ' if options else ''}{enc} {key} {comment}\n"


def split_line(line: str) -> tuple[list[str], str, str, str] | None:
    """Return (options, type, key, comment) of a line of authorized_keys; None for a comment, an empty line or a
    malformed one.
    """
    text = line.strip()
    found = _LINE.search(text) if text and not text.startswith("#") else None
    words = found.group(2).split() if found else []
    if found is None or len(words) < 2:
        return None
    return found.group(1).split(",") if found.group(1) else [], words[0], words[1], " ".join(words[2:])


def authorized(text: str, hash_type: str | None = None) -> dict[str, dict[str, object]]:
    """Map of each SSH public key in the text of authorized_keys to its enc (type), comment, options and fingerprint."""
    found: dict[str, dict[str, object]] = {}
    for line in lines_of(text):
        parts = split_line(line)
        if parts is None:
            continue
        options, enc, key, comment = parts
        digest = fingerprint(key, hash_type)
        if digest is not None:
            found[key] = {"enc": enc, "comment": comment, "options": options, "fingerprint": digest}
    return found


def with_key(text: str, key: str, line: str) -> str:
    """Return the text of authorized_keys with ``line`` in place of the key's line, or at the end."""
    lines = [each.strip() + "\n" for each in lines_of(text) if each.strip()]
    at = [number for number, each in enumerate(lines) if (split_line(each) or ("", "", ""))[2] == key]
    if not at:
        return f"{text}\n{line}" if text and not text.endswith("\n") else text + line
    return "".join(line if number in at else each for number, each in enumerate(lines))


def without_key(text: str, key: str) -> str:
    """Return the text of authorized_keys without the lines of an SSH public key."""
    lines = [each.strip() + "\n" for each in lines_of(text) if each.strip()]
    return "".join(each for each in lines if (split_line(each) or ("", "", ""))[2] != key)


def ssh_name(hostname: str, port: int | None) -> str:
    """Return a host's name as known_hosts has it: with the port unless the port is 22."""
    return hostname if port in (None, 0, 22) else f"[{hostname}]:{port}"


def known(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number from 0, words of the line) for the entries of known_hosts that match a name from ``ssh_name``."""
    for number, line in enumerate(lines_of(text)):
        words = line.split()
        if words and not words[0].startswith(("#", "@")) and len(words) > 2 and _names(words[0], name):
            yield number, words


def entries(lines: Iterable[Sequence[str]], hash_type: str | None = None) -> list[dict[str, str]]:
    """List of maps with hostname, key, enc (type) and fingerprint of the entries of known_hosts without a comment, as
    in Salt.
    """
    found = []
    for words in lines:
        if len(words) == 3 and (digest := fingerprint(words[2], hash_type)):
            found.append({"hostname": words[0], "key": words[2], "enc": words[1], "fingerprint": digest})
    return found


def hashed(text: str) -> str:
    """Return the text of known_hosts with every plain host name hashed. Patterns stay, because they cannot be hashed."""
    lines = []
    for line in lines_of(text, keepends=True):
        words = line.split(maxsplit=1)
        plain = len(words) == 2 and not words[0].startswith(("#", "@", "|"))
        if not plain or any(sign in words[0] for sign in "*?!"):
            lines.append(line)
            continue
        lines += [f"{_hashed_name(name)} {words[1]}" for name in words[0].split(",")]
    return "".join(lines)


def _hashed_name(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.new(salt, name.encode(), "sha1").digest()
    return f"{_HASHED}{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def _names(column: str, name: str) -> bool:
    if column.startswith(_HASHED):
        try:
            salt, digest = (base64.b64decode(part) for part in column.removeprefix(_HASHED).split("|"))
        except ValueError:
            return False
        return hmac.compare_digest(hmac.new(salt, name.lower().encode(), "sha1").digest(), digest)
    patterns = column.lower().split(",")
    if any(each.startswith("!") and _fits(name, each[1:]) for each in patterns):
        return False
    return any(_fits(name, each) for each in patterns)


def _fits(name: str, pattern: str) -> bool:
    # Brackets are part of a name with a port. ssh patterns have only * and ?.
    return fnmatch.fnmatchcase(name.lower(), pattern.replace("[", "[[]"))

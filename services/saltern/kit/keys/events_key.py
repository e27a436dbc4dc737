"""The key of events, by which events in Redis are authenticated. It is shared by the roles that keep events in Redis
(mworker, maintenance) and the role that acts on them (reactor).

``saltern keygen`` writes it as ``events.key`` into the directories of these roles. It is not derived from the master's
secret, so a reactor that has it can publish nothing in the master's name. ``events.key.old`` is the replaced key:
codes that were made with it are still accepted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from saltern.kit.config.master import ConfigError

#: Names of the files with the current key and with the one before.
EVENTS_KEY, OLD_EVENTS_KEY = "events.key", "events.key.old"

#: Roles that have the key.
EVENT_ROLES = ("mworker", "maintenance", "reactor")

#: Bytes of the key: as strong as the codes.
KEY_BYTES = 32

_MISSING = (
    "%s is missing: events in Redis get no code and are not checked here, so whoever writes to Redis can make reactors act."
    " Run `saltern keygen` again, which makes what is missing, and restart mworker, maintenance and reactor"
)


def event_mac(key: bytes) -> Callable[[str, bytes], bytes]:
    """Return a function mac(kind, record) that returns the authentication code of a record, as hexadecimal digits.

    ``key``: the key of events, KEY_BYTES bytes.
    """

    def mac(kind: str, record: bytes) -> bytes:
        # Keyed BLAKE2b (RFC 7693) takes a third of the time of an HMAC, whose hash OpenSSL looks up by its name in each call.
        return blake2b(kind.encode() + b"\0" + record, key=key, digest_size=32).hexdigest().encode()

    return mac


def load_event_macs(directory: Path, log: logging.Logger | None = None) -> list[Callable[[str, bytes], bytes]]:
    """Return one function mac(kind, record) for each key of events in a role's key directory: for ``events.key``, then
    for ``events.key.old`` if it exists.

    Such a function returns the authentication code of an event (``masterstore.event_codes``). Without ``events.key``
    the list is empty, and a warning about the consequence is logged to ``log``. Raises ConfigError for a malformed key
    file.
    """
    current = _read(directory / EVENTS_KEY)
    if current is None:
        if log is not None:
            log.warning(_MISSING, directory / EVENTS_KEY)
        return []
    before = _read(directory / OLD_EVENTS_KEY)
    return [event_mac(key) for key in (current, before) if key is not None]


def _read(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. `saltern keygen --out DIR` makes it") from error
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{path}: must hold {KEY_BYTES} bytes, holds {len(key)}; remove it to have a new one made")
    return key

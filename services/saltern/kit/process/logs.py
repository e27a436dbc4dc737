"""Logs of a role on stderr: one line or one JSON object for each record, with the role, and the JID and minion that it concerns.

Use ``log.info("...", extra={"jid": jid, "minion": minion_id})``; both are fields of their own in the JSON form.
"""

from __future__ import annotations

import json
import logging
import sys
import time

from saltern.kit.config.reading import ConfigError

#: Salt's level names. "quiet" silences everything.
LEVELS: dict[str, int] = {
    "quiet": logging.CRITICAL + 10,
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
    "all": logging.NOTSET,
    "garbage": logging.NOTSET,
    "profile": logging.INFO,
}

#: Further fields that a log record may have.
CONTEXT_FIELDS = ("jid", "minion", "cmd", "client")


def visible(text: str) -> str:
    """Return a text with control characters, and marks that change the direction of text, as escapes; line ends and tabs stay.

    Peers choose parts of what is logged, and terminals obey control characters.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in text)


class JsonFormatter(logging.Formatter):
    """Formats a log record as one JSON object: time (RFC 3339, UTC), level, role, message, JID, minion, exception."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """Return the log record as one line of JSON."""
        entry: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "role": self._role,
            "logger": record.name,
            "message": visible(record.getMessage()),
        }
        entry |= _context(record)
        if record.exc_info:
            entry["exception"] = visible(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Formats a log record for people: ``time role level message [jid=.. minion=..]``."""

    def __init__(self, role: str) -> None:
        super().__init__(f"%(asctime)s {role} [%(levelname)-8s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the log record as one line of text, followed by the traceback if it has one."""
        # A further line begins with a space, so that no text of a peer looks like a record of its own.
        text = visible(super().format(record)).replace("\n", "\n  ")
        context = " ".join(f"{name}={value}" for name, value in _context(record).items())
        return f"{text} [{context}]" if context else text


def configure(role: str, level: str, form: str) -> None:
    """Send the log of this process to stderr. ``level`` is one of LEVELS, ``form`` is text or json. Raises ConfigError."""
    if level not in LEVELS:
        raise ConfigError(f"log_level must be one of {', '.join(LEVELS)}, not '{level}'")
    if form not in ("text", "json"):
        raise ConfigError(f"log_format must be text or json, not '{form}'")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(role) if form == "json" else TextFormatter(role))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])


def _context(record: logging.LogRecord) -> dict[str, object]:
    found = {name: getattr(record, name, None) for name in CONTEXT_FIELDS}
    return {
        name: visible(value).replace("\n", "\\n") if isinstance(value, str) else value
        for name, value in found.items()
        if value is not None
    }

"""Logs of a process, on stderr and in the file of the option ``log_file``.

On stderr there is one line or one JSON object for each record, with the role, and the JID and minion that it concerns.

Use ``log.info("...", extra={"jid": jid, "minion": minion_id})``; both are fields of their own in the JSON form.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from saltern.kit.config.reading import ConfigError
from saltern.kit.config.state_options import StateOptions
from statecore.host.content import private_files
from statecore.model.lazy import lazy_module
from statecore.model.log_levels import GARBAGE, PROFILE, TRACE
from statecore.model.values import MASK

if TYPE_CHECKING:
    import socket
    from logging import handlers
else:
    # Only for a log file: most processes log to stderr.
    socket, handlers = lazy_module("socket"), lazy_module("logging.handlers")

#: Salt's level names. "quiet" silences everything.
LEVELS: dict[str, int] = {
    "quiet": logging.CRITICAL + 10,
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "profile": PROFILE,
    "trace": TRACE,
    "garbage": GARBAGE,
    "all": logging.NOTSET,
}

#: Salt's logger of ``log_granular_levels`` -> the loggers that say the same here. Other names are loggers as they stand.
_SALTS_LOGGERS: Mapping[str, tuple[str, ...]] = {
    "salt": ("saltern", "statecore", "masterstore"),
    "salt.state": ("statecore.engine", "statecore.compile", "statecore.runtime"),
    "salt.modules": ("statecore.builtin.modules",),
    "salt.states": ("statecore.builtin.states",),
    "salt.loaded.int.module": ("statecore.builtin.modules",),
    "salt.loaded.int.states": ("statecore.builtin.states",),
    "salt.loader": ("statecore.loader",),
    "salt.template": ("statecore.render",),
    "salt.renderers": ("statecore.render",),
    "salt.pillar": ("statecore.pillar", "statecore.runtime.ports"),
    "salt.fileserver": ("statecore.sources",),
    "salt.fileclient": ("statecore.sources", "saltern.minion"),
    "salt.minion": ("saltern.minion",),
    "salt.master": ("saltern.mworker",),
    "salt.utils.event": ("saltern.eventpublisher",),
}

#: Level -> number of its colour in the terminal, as Salt's.
_COLOURS: Mapping[int, str] = {
    logging.CRITICAL: "31",
    logging.ERROR: "31",
    logging.WARNING: "33",
    logging.INFO: "32",
    logging.DEBUG: "36",
    PROFILE: "36",
    TRACE: "35",
    GARBAGE: "34",
}

#: Top-level loggers of the libraries that roles, commands and minions use. They log what they receive, unread: paths with
#: tokens, headers, queries. Below the level warning they are silent unless ``log_granular_levels`` names the logger, and
#: the texts that look like tokens are hidden.
LIBRARIES = frozenset(
    {
        *("asyncio", "concurrent", "uvicorn", "websockets", "starlette", "httpx", "httpcore", "h11", "redis", "ldap3"),
        *("passlib", "libpass", "pygls", "opentelemetry", "grpc", "mako", "psycopg", "pymysql", "reclass", "urllib3"),
        *(
            "requests",
            "dateutil",
            "croniter",
            "lsprotocol",
            "jwt",
            "anyio",
            "cryptography",
            "zmq",
            "charset_normalizer",
        ),
        *("pyasn1", "jinja2", "packaging"),
    }
)

#: A text that may be a token or a key: 32 characters of hexadecimal digits or of base64, and the further parts of a JWT.
_LIKE_A_TOKEN = re.compile(r"[\w+/-]{32,}=*(?:\.[\w-]+)*", re.ASCII)

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

    def __init__(self, role: str, process: str = "") -> None:
        super().__init__()
        self._own = {"role": role, "process": process} if process else {"role": role}

    def format(self, record: logging.LogRecord) -> str:
        """Return the log record as one line of JSON."""
        entry: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            **self._own,
            "logger": record.name,
            "message": visible(record.getMessage()),
        }
        entry |= _context(record)
        if record.exc_info:
            entry["exception"] = visible(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Formats a log record for people: ``time role level message [jid=.. minion=..]``. ``colours``: the name of the
    level is coloured.
    """

    def __init__(self, role: str, *, colours: bool = False) -> None:
        super().__init__(f"%(asctime)s {role} [%(levelname)-8s] %(message)s")
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Return the log record as one line of text, followed by the traceback if it has one."""
        # A further line begins with a space, so that no text of a peer looks like a record of its own.
        text = visible(super().format(record)).replace("\n", "\n  ")
        context = " ".join(f"{name}={value}" for name, value in _context(record).items())
        if self._colours:
            level = f"[{record.levelname:<8}]"
            text = text.replace(level, _coloured(record.levelno, level), 1)
        if not context:
            return text
        first, end, rest = text.partition("\n")
        return f"{first} [{context}]{end}{rest}"


def _coloured(level: int, text: str) -> str:
    """Return a text between the terminal's escape sequences for the colour of a log level."""
    return f"\033[{_COLOURS.get(level, '0')}m{text}\033[0m"


class SaltFormatter(logging.Formatter):
    """Formats a log record by a format of Salt's options, such as ``log_fmt_console``.

    Besides the fields of Python's logging there are %(jid)s, %(minion_id)s, and Salt's names in brackets and colours
    (%(bracketlevel)s, %(colorlevel)s ...). Colours appear with ``colours`` only.
    """

    def __init__(self, option: str, form: str, dates: str, minion_id: str, *, colours: bool = False) -> None:
        try:
            super().__init__(form, dates)
        except ValueError as error:
            raise ConfigError(f"{option}: {form!r} is no format of log lines: {error}") from error
        self._minion_id = minion_id
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Return the log record as text; control characters are visible."""
        jid = getattr(record, "jid", "")
        fields = {
            "jid": f"[JID: {jid}]" if jid else "",
            "minion_id": self._minion_id,
            "bracketname": f"[{record.name:<17}]",
            "bracketlevel": f"[{record.levelname:<8}]",
            "bracketprocess": f"[{record.process:>5}]",
        }
        plain = {f"color{name.removeprefix('bracket')}": text for name, text in fields.items() if name.startswith("b")}
        given = {**fields, **plain, "colormsg": record.getMessage()}
        # Other formatters get the same record: what it did not have before is taken away again.
        before = {name: vars(record)[name] for name in given if name in vars(record)}
        vars(record).update(given)
        try:
            text = visible(super().format(record)).replace("\n", "\n  ")
        finally:
            for name in given:
                vars(record).pop(name, None)
            vars(record).update(before)
        if self._colours and "%(color" in str(self._fmt):
            text = text.replace(fields["bracketlevel"], _coloured(record.levelno, fields["bracketlevel"]), 1)
        return text


def configure(role: str, options: StateOptions, level: str | None = None, process: str = "") -> None:
    """Send the log of this process to stderr, and to ``log_file`` if the options name one.

    ``level`` is one of LEVELS and replaces the option ``log_level``. A log file that cannot be opened is a warning.
    ``process``: name of this process among several of the role, such as ``mworker-2``. Raises ConfigError for an unknown level or
    format.
    """
    for number, word in ((PROFILE, "PROFILE"), (TRACE, "TRACE"), (GARBAGE, "GARBAGE")):
        logging.addLevelName(number, word)
    console = _level("log_level", level or options.log_level)
    if options.log_format not in ("text", "json"):
        raise ConfigError(f"log_format must be text or json, not '{options.log_format}'")
    name = str(getattr(options, "id", ""))
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if options.log_fmt_console:
        dates = options.log_datefmt_console or options.log_datefmt
        form = SaltFormatter("log_fmt_console", options.log_fmt_console, dates, name, colours=_has_colours())
        handler.setFormatter(form)
    else:
        handler.setFormatter(_formatter(options.log_format, role, process))
    handler.setLevel(console)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(console)
    if options.log_file:
        _add_file(root, options, console, name)
    _set_granular_levels(root, options.log_granular_levels)
    for each in root.handlers:
        each.addFilter(_Libraries(options.log_granular_levels))


def tag_job(jid: str) -> None:
    """Write the JID of the job that this process runs into each of its log records that has no JID."""
    tag = _JobTag(jid)
    for handler in logging.getLogger().handlers:
        handler.filters[:] = [one for one in handler.filters if not isinstance(one, _JobTag)]
        handler.addFilter(tag)


class _JobTag(logging.Filter):
    """Log filter that passes all records and writes a JID into those without one."""

    def __init__(self, jid: str) -> None:
        super().__init__()
        self._jid = jid

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "jid", None) is None:
            record.jid = self._jid
        return True


class _Libraries(logging.Filter):
    """Log filter for records of LIBRARIES: drops those below the level warning, and hides what looks like a token.

    ``named``: loggers of the option ``log_granular_levels``. Their records pass at each level, with tokens hidden.
    """

    def __init__(self, named: Iterable[str]) -> None:
        super().__init__()
        self._named = tuple(named)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in LIBRARIES:
            return True
        asked = any(record.name == name or record.name.startswith(f"{name}.") for name in self._named)
        if record.levelno < logging.WARNING and not asked:
            return False
        record.msg, record.args = _LIKE_A_TOKEN.sub(MASK, record.getMessage()), ()
        return True


class _GranularLevels(logging.Filter):
    """Log filter for a handler: also passes records below the handler's level if their logger has a lower level in the
    option ``log_granular_levels``.
    """

    def __init__(self, level: int, loggers: Mapping[str, int]) -> None:
        super().__init__()
        self._level = level
        self._loggers = loggers

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= self._level:
            return True
        own = [name for name in self._loggers if record.name == name or record.name.startswith(f"{name}.")]
        return bool(own) and record.levelno >= self._loggers[max(own, key=len)]


def _set_granular_levels(root: logging.Logger, given: Mapping[str, str]) -> None:
    """Give single loggers the levels of the option ``log_granular_levels``, even if these are below the level of the
    handlers.

    Raises ConfigError for an unknown level.
    """
    levels: dict[str, int] = {}
    # The longer name is the more special one.
    for name in sorted(given, key=len):
        least = _level(f"log_granular_levels: {name}", given[name])
        levels |= dict.fromkeys((name, *_SALTS_LOGGERS.get(name, ())), least)
    for name, least in levels.items():
        logging.getLogger(name).setLevel(least)
    for handler in root.handlers:
        below = {name: least for name, least in levels.items() if least < handler.level}
        if below:
            handler.addFilter(_GranularLevels(handler.level, below))
            handler.setLevel(min(below.values()))


def _has_colours() -> bool:
    """Return True if stderr is a terminal that shows colours, and NO_COLOR (no-color.org) is not set."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb" and not os.environ.get("NO_COLOR")


def _formatter(form: str, role: str, process: str) -> logging.Formatter:
    if form == "json":
        return JsonFormatter(role, process)
    return TextFormatter(process or role, colours=_has_colours())


def _level(option: str, name: str) -> int:
    if name.lower() not in LEVELS:
        raise ConfigError(f"{option} must be one of {', '.join(LEVELS)}, not '{name}'")
    return LEVELS[name.lower()]


class _PrivateFile(logging.FileHandler):
    """Log handler whose new files are readable by their owner alone. A file that an administrator made keeps its mode."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=private_files.opener)


class _RotatingFile(_PrivateFile, handlers.RotatingFileHandler):
    """Log file that is renamed when it has a size."""


class _WatchedFile(_PrivateFile, handlers.WatchedFileHandler):
    """Log file that is opened again when another program renamed it."""


def _add_file(root: logging.Logger, options: StateOptions, console: int, name: str) -> None:
    level = _level("log_level_logfile", options.log_level_logfile) if options.log_level_logfile else console
    formatter = SaltFormatter("log_fmt_logfile", options.log_fmt_logfile, options.log_datefmt_logfile, name)
    try:
        handler = _file_handler(options)
    except (OSError, ValueError) as error:
        root.warning("log_file: %s cannot be written: %s; the log goes to stderr only", options.log_file, error)
        return
    handler.setFormatter(formatter)
    handler.setLevel(level)
    root.addHandler(handler)
    root.setLevel(min(console, level))


def _file_handler(options: StateOptions) -> logging.Handler:
    """Return the handler of ``log_file``: a file, or a syslog. Raise OSError or ValueError if it cannot be opened."""
    scheme, found, rest = options.log_file.partition("://")
    if not found:
        Path(options.log_file).parent.mkdir(parents=True, exist_ok=True)
        if options.log_rotate_max_bytes:
            return _RotatingFile(
                options.log_file,
                maxBytes=options.log_rotate_max_bytes,
                backupCount=options.log_rotate_backup_count,
                encoding="utf-8",
            )
        return _WatchedFile(options.log_file, encoding="utf-8")
    place, _, facility = rest.partition("/") if scheme != "file" else (rest, "", "")
    if scheme == "file":
        # file:///dev/log/LOG_DAEMON names a facility behind the socket.
        path, _, last = rest.rpartition("/")
        rest, facility = (path, last) if last.startswith("LOG_") else (rest, "")
        return handlers.SysLogHandler(rest, facility=_facility(facility))
    if scheme not in ("udp", "tcp"):
        raise ValueError(f"'{scheme}' is none of file, udp, tcp")
    host, _, port = place.partition(":")
    kind = socket.SOCK_DGRAM if scheme == "udp" else socket.SOCK_STREAM
    return handlers.SysLogHandler((host, int(port or 514)), facility=_facility(facility), socktype=kind)


def _facility(name: str) -> int:
    known: Mapping[str, int] = handlers.SysLogHandler.facility_names
    return known.get(name.removeprefix("LOG_").lower(), handlers.SysLogHandler.LOG_USER)


def _context(record: logging.LogRecord) -> dict[str, object]:
    found = {name: getattr(record, name, None) for name in CONTEXT_FIELDS}
    return {
        name: visible(value).replace("\n", "\\n") if isinstance(value, str) else value
        for name, value in found.items()
        if value is not None
    }

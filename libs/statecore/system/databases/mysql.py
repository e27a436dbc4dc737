"""SQL literals, names and grants of MySQL and MariaDB. Quoted values are escaped, so they cannot inject SQL."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from statecore.model.errors import InvocationError

#: Statement before any literal: makes backslash the escape character, whatever the server's sql_mode is.
PREAMBLE = "SET SESSION sql_mode = '';\n"

ALL = "ALL PRIVILEGES"

#: Arguments that each function of ``mysql`` takes, and so each state of MySQL.
CONNECTION_ARGUMENTS = frozenset(
    {"client_flags"}
    | {f"connection_{word}" for word in ("host", "port", "user", "pass", "db", "unix_socket", "charset")}
    | {f"connection_{word}" for word in ("default_file", "default_group", "conv", "use_unicode")}
)

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"})

#: Old name of a privilege -> the name that newer servers show.
_ALIASES = {
    "ALL": ALL,
    "REPLICATION CLIENT": "BINLOG MONITOR",
    "REPLICATION REPLICA": "REPLICATION SLAVE",
    "REPLICA MONITOR": "SLAVE MONITOR",
    "DELETE VERSIONING ROWS": "DELETE HISTORY",
}

_PRIVILEGE = re.compile(r"\s*([A-Za-z][A-Za-z_ ]*?)\s*(?:\(([^()]*)\))?\s*(?:,|$)")

#: A name without quotes or in backquotes; ``*`` means every name.
_RAW = re.compile(r"\*|`(?:[^`\0]|``)*`|[\w$%\\-]+")

_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|[(),.@*]|[^\s`'(),.@*]+")


@dataclass(frozen=True, slots=True)
class Grant:
    """The privileges of MySQL that are granted on one object.

    ``privileges`` holds (privilege, column or ""). Where servers have an old and a new name of a privilege, it is the
    new one.
    """

    privileges: frozenset[tuple[str, str]]
    #: Database and table; ``*`` means every one.
    database: str
    table: str
    grant_option: bool = False


def literal(value: object) -> str:
    """Return a text as SQL string literal of MySQL. Raises InvocationError if it is not valid Unicode."""
    text = str(value)
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise InvocationError(f"{text!r} is not valid text")
    return f"'{text.translate(_ESCAPES)}'"


def identifier(name: object, *, pattern: bool = False) -> str:
    """Return a MySQL identifier in backquotes.

    With ``pattern`` (a database in a GRANT), underscores are escaped so that they are not wildcards. Raises
    InvocationError for a character that MySQL does not allow in names.
    """
    text = str(name)
    if not text or any(ord(each) < 32 or "\ud800" <= each <= "\udfff" for each in text):
        raise InvocationError(f"{text!r} is not a valid name")
    quoted = text.replace("`", "``")
    return f"`{quoted.replace('_', chr(92) + '_') if pattern else quoted}`"


def account(user: str, host: str) -> str:
    """Return a quoted MySQL account, ``'user'@'host'``."""
    return f"{literal(user)}@{literal(host)}"


def word(argument: str, value: object) -> str:
    """Return a bare SQL word from an argument: a character set, a collation, a plugin. Raises InvocationError for any
    other text.
    """
    if not re.fullmatch(r"[A-Za-z0-9_]+", str(value)):
        raise InvocationError(f"{argument} is a word, not {value!r}")
    return str(value)


def native_hash(password: str) -> str:
    """Return the hash that MySQL's plugin mysql_native_password stores for a password."""
    return "*" + hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()


def privileges(text: object) -> frozenset[tuple[str, str]]:
    """Set of (privilege, column or "") in a text such as ``SELECT, INSERT (a, b)``.

    Raises InvocationError for a text that is empty or not a list of privileges.
    """
    found: set[tuple[str, str]] = set()
    rest = str(text).strip()
    while rest:
        match = _PRIVILEGE.match(rest)
        if match is None:
            raise InvocationError(f"grant: '{text}' is not a list of privileges")
        name = " ".join(match[1].upper().split())
        columns = [each.strip().strip("`") for each in (match[2] or "").split(",")] if match[2] else [""]
        found |= {(_ALIASES.get(name, name), column) for column in columns}
        rest = rest[match.end() :]
    if not found:
        raise InvocationError("grant is empty: name at least one privilege")
    return frozenset(found)


def granted_object(database: object, *, escape: bool = True) -> tuple[str, str, str]:
    """Return (database, table, both as quoted SQL) for the object of a grant: ``db.table``, ``db.*`` or ``*.*``.

    Without ``escape`` the database name is used as given, as a pattern. Raises InvocationError for any other text.
    """
    name, dot, table = str(database).rpartition(".")
    if not dot or not name or not table:
        raise InvocationError(f"database is 'database.table', with * for every one, not {database!r}")
    if not escape:
        if not (_RAW.fullmatch(name) and _RAW.fullmatch(table)):
            raise InvocationError(f"database: {database!r} can only be written with quotes (`)")
        return _bare(name), _bare(table), f"{name}.{table}"
    plain, own = name.strip("`"), table.strip("`")
    written = "*" if plain == "*" else identifier(plain, pattern=own == "*")
    return plain, own, f"{written}.{'*' if own == '*' else identifier(own)}"


def written(wanted: Iterable[tuple[str, str]]) -> str:
    """Return privileges, given as (privilege, column or ""), as the SQL text of a GRANT."""
    columns: dict[str, list[str]] = {}
    for name, column in sorted(wanted):
        columns.setdefault(name, []).extend([column] if column else [])
    return ", ".join(
        f"{name} ({', '.join(map(identifier, listed))})" if listed else name for name, listed in columns.items()
    )


def parsed(line: str) -> Grant | None:
    """Return the grant in one line of SHOW GRANTS; None for lines about other objects than tables (roles, proxies,
    routines).
    """
    if not line.upper().startswith("GRANT "):
        return None
    depth, on = 0, None
    tokens = list(_TOKEN.finditer(line, len("GRANT ")))
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0 and token[0].upper() == "ON":
            on = at
            break
    names = [token[0] for token in tokens[on + 1 :]] if on is not None else []
    if on is None or len(names) < 5 or names[1] != "." or names[3].upper() != "TO":
        return None
    granted = privileges(line[len("GRANT ") : tokens[on].start()])
    tail = " ".join(names[4:]).upper()
    return Grant(granted, _bare(names[0]), _bare(names[2]), "WITH" in tail and "GRANT OPTION" in tail)


def grants_cover(lines: Iterable[str], wanted: Grant, every: Iterable[str] = ()) -> bool:
    """Return True if an account's existing grants include the grant ``wanted``. ``lines`` is the account's output of
    SHOW GRANTS.

    ``every`` names all privileges, for servers that list them instead of ALL PRIVILEGES.
    """
    there = [grant for line in lines if (grant := parsed(line)) and (grant.database, grant.table) == _object(wanted)]
    granted = {each for grant in there for each in grant.privileges}
    if wanted.grant_option and not any(grant.grant_option for grant in there):
        return False
    if (ALL, "") in granted:
        return True
    if (ALL, "") in wanted.privileges:
        names = {(_ALIASES.get(name, name), "") for name in every}
        return bool(names) and names <= granted
    # A privilege on a table includes all its columns.
    return all(each in granted or (each[0], "") in granted for each in wanted.privileges) and bool(there)


def _object(grant: Grant) -> tuple[str, str]:
    return grant.database, grant.table


def _bare(name: str) -> str:
    """Return the name of a database or table in a grant without its quotes and without the backslashes that escape
    underscores.
    """
    plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
    return plain.replace("\\_", "_")

"""SDB driver ``sqlite3``: values in a SQLite database of the host, as MessagePack.

Settings of a profile: ``database`` (path), ``table`` (default ``sdb``), ``create_table`` (default True). Own statements
may replace those of the driver: ``create_statements``, ``get_query``, ``set_query``, ``delete_query``, with the
parameters ``:key`` and ``:value``.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping

import msgpack

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.sqlite_databases import opened

ALIASES = {"set": "set_"}


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Return the value that the profile's SQLite database has under a key; None if it has none. Raise CommandError if
    SQLite fails.
    """
    profile = profile or {}
    with _database(ctx, profile) as (connection, table):
        query = str(profile.get("get_query") or f"SELECT value FROM {table} WHERE key=:key")
        row = connection.execute(query, {"key": key}).fetchone()
    return msgpack.unpackb(row[0], raw=False) if row else None


def set_(ctx: Context, key: str, value: object, profile: Mapping[str, object] | None = None) -> bool:
    """Store a value under a key in the profile's SQLite database. Return True. Raise CommandError if SQLite fails."""
    profile = profile or {}
    with _database(ctx, profile) as (connection, table):
        query = str(profile.get("set_query") or f"INSERT OR REPLACE INTO {table} VALUES (:key, :value)")
        connection.execute(query, {"key": key, "value": msgpack.packb(value)})
    return True


def delete(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> bool:
    """Delete a key of the profile's SQLite database. Return True, also if the key does not exist. Raise CommandError if
    SQLite fails.
    """
    profile = profile or {}
    with _database(ctx, profile) as (connection, table):
        connection.execute(str(profile.get("delete_query") or f"DELETE FROM {table} WHERE key=:key"), {"key": key})
    return True


@contextlib.contextmanager
def _database(ctx: Context, profile: Mapping[str, object]) -> Iterator[tuple[sqlite3.Connection, str]]:
    """Yield (connection to the profile's database, quoted name of its table), and commit at the end. Raise CommandError
    if SQLite fails or the path is not absolute.
    """
    name = str(profile.get("database") or "")
    if not name.startswith("/"):
        raise CommandError(f"`database` of the SDB driver sqlite3 must be an absolute path, not {name!r}")
    table = str(profile.get("table") or "sdb")
    try:
        with opened(ctx.host.path(name)) as connection:
            _create(connection, profile, table)
            yield connection, _quoted(table)
    except (sqlite3.Error, OSError) as error:
        raise CommandError(f"{name}: {error}") from error


def _create(connection: sqlite3.Connection, profile: Mapping[str, object], table: str) -> None:
    own = profile.get("create_statements")
    statements = [str(each) for each in own] if isinstance(own, list) else []
    if not own and profile.get("create_table", True):
        statements = [
            f"CREATE TABLE IF NOT EXISTS {_quoted(table)} (key text, value blob)",
            f"CREATE UNIQUE INDEX IF NOT EXISTS {_quoted(table + '_idx')} ON {_quoted(table)} (key)",
        ]
    # Own statements have no IF NOT EXISTS: from the second time on they fail, as Salt expects.
    with contextlib.suppress(sqlite3.OperationalError):
        for statement in statements:
            connection.execute(statement)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

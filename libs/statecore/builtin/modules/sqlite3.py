"""SQLite databases of the host: Salt's ``sqlite3`` execution module.

``db`` is the path of a database, which is made if it is missing; without it, functions return False.
"""

from __future__ import annotations

import sqlite3

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.sqlite_databases import opened


def version(ctx: Context) -> str:
    """Return the version of the Python module sqlite3 (pysqlite) as text.

    CLI Example:

        salt '*' sqlite3.version
    """
    # Python 3.14 no longer has the number, which has not changed since 2006.
    return str(getattr(sqlite3, "version", "2.6.0"))


def sqlite_version(ctx: Context) -> str:
    """Return the version of the library SQLite as text.

    CLI Example:

        salt '*' sqlite3.sqlite_version
    """
    return sqlite3.sqlite_version


def modify(ctx: Context, db: str | None = None, sql: str | None = None) -> bool:
    """Run one SQL statement that changes a SQLite database. Return True, False without ``db``. Raise CommandError
    with SQLite's error.

    CLI Example:

        salt '*' sqlite3.modify /root/test.db 'CREATE TABLE test(id INT, testdata TEXT);'
    """
    return _rows(ctx, db, sql) is not False


def fetch(ctx: Context, db: str | None = None, sql: str | None = None) -> list[list[object]] | bool:
    """Run one SQL statement on a SQLite database. Return its rows, each a list of values; False without ``db``.
    Raise CommandError with SQLite's error.

    CLI Example:

        salt '*' sqlite3.fetch /root/test.db 'SELECT * FROM test;'
    """
    return _rows(ctx, db, sql)


def tables(ctx: Context, db: str | None = None) -> list[list[object]] | bool:
    """Return the names of the tables of a SQLite database: a list of rows, each a list with one name.

    CLI Example:

        salt '*' sqlite3.tables /root/test.db
    """
    return _rows(ctx, db, "SELECT name FROM sqlite_master WHERE type='table' ORDER BY name;")


def indices(ctx: Context, db: str | None = None) -> list[list[object]] | bool:
    """Return the names of the indexes of a SQLite database: a list of rows, each a list with one name.

    CLI Example:

        salt '*' sqlite3.indices /root/test.db
    """
    return _rows(ctx, db, "SELECT name FROM sqlite_master WHERE type='index' ORDER BY name;")


def indexes(ctx: Context, db: str | None = None) -> list[list[object]] | bool:
    """Return the names of the indexes of a SQLite database, as ``sqlite3.indices`` does.

    CLI Example:

        salt '*' sqlite3.indexes /root/test.db
    """
    return indices(ctx, db)


def _rows(ctx: Context, db: str | None, sql: str | None) -> list[list[object]] | bool:
    if db is None:
        return False
    try:
        with opened(ctx.host.path(db)) as connection:
            return [list(row) for row in connection.execute(str(sql or "")).fetchall()]
    except (sqlite3.Error, sqlite3.Warning, OSError) as error:
        raise CommandError(f"{db}: {error}") from error

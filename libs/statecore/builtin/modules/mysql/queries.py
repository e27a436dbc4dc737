"""Functions of the ``mysql`` module that run the caller's statements and ask the server about itself."""

from __future__ import annotations

import time
from pathlib import Path

from statecore.builtin.modules.mysql import client
from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.databases import mysql


def query(ctx: Context, database: str, query: str, **connection_args: object) -> dict[str, object]:
    """Run one SQL statement on the MySQL server. Return a map with ``query time``, and ``rows returned``, ``columns``
    and ``results``.

    A statement that returns no rows has ``rows affected`` instead.

    CLI Example:

        salt '*' mysql.query mydb "SELECT id,name,cash from users limit 3"
    """
    if not str(query).strip():
        raise InvocationError("the SQL statement is empty")
    started = time.monotonic()
    text = f"{str(query).strip().rstrip(';')}\n;\nSELECT ROW_COUNT() AS saltern_rows;\n"
    tables = client.run_statements(ctx, {**connection_args, "connection_db": database}, text)
    result: dict[str, object] = {"query time": _duration(time.monotonic() - started)}
    if len(tables) > 1:
        columns, rows = tables[0]
        return result | {"rows returned": len(rows), "columns": columns, "results": [list(row) for row in rows]}
    return result | {"rows affected": int(tables[-1][1][0][0] or 0)}


def file_query(
    ctx: Context, database: str, file_name: str, saltenv: str | None = None, **connection_args: object
) -> dict[str, object]:
    """Run the SQL statements of a file on the MySQL server. ``file_name`` is a path of the host, or ``salt://...``.

    Return a map with ``query time``, the total of ``rows returned``, and one entry of ``columns`` and ``results`` for
    each statement that returns rows. Raise CommandError if the file does not exist.

    CLI Example:

        salt '*' mysql.file_query mydb file_name=salt://sqlfile.sql
    """
    if "://" in file_name:
        cached = ctx.call("cp.cache_file", file_name, saltenv)
        data = Path(cached).read_bytes() if cached else None
    else:
        data = managed_file.read(ctx.host.path(file_name), file_name)
    if data is None:
        raise CommandError(f"File {file_name} does not exist")
    started = time.monotonic()
    tables = client.run_statements(
        ctx, {**connection_args, "connection_db": database}, data.decode("utf-8", "surrogateescape")
    )
    result: dict[str, object] = {"query time": _duration(time.monotonic() - started)}
    if not tables:
        return result
    results = [[list(row) for row in rows] for _, rows in tables]
    returned = sum(len(rows) for rows in results)
    return result | {"rows returned": returned, "columns": [list(columns) for columns, _ in tables], "results": results}


def version(ctx: Context, **connection_args: object) -> str:
    """Return the MySQL server's version as text."""
    return str(client.run_statement(ctx, connection_args, "SELECT VERSION()")[0][0])


def plugin_status(ctx: Context, name: str, **connection_args: object) -> str:
    """Return the status of a plugin of the MySQL server, such as ACTIVE or DISABLED; "" if the server does not have the
    plugin.
    """
    asked = f"SELECT PLUGIN_STATUS FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME = {mysql.literal(name)}"
    rows = client.run_statement(ctx, connection_args, asked)
    return str(rows[0][0]) if rows else ""


def verify_login(ctx: Context, user: str, password: str | None = None, **connection_args: object) -> bool:
    """Return whether the MySQL server accepts a user and password. Raise CommandError for any other fault."""
    login = {**connection_args, "connection_user": user, "connection_pass": password or ""}
    try:
        client.run_statement(ctx, login, "SELECT 1")
    except CommandError as error:
        # Access denied. Other errors do not say whether the login is valid.
        if str(error).startswith("MySQL Error 1045"):
            return False
        raise
    return True


def quote_identifier(ctx: Context, identifier: str, for_grants: bool = False) -> str:
    """Return a name quoted as an identifier for MySQL. With ``for_grants``, the wildcards ``_`` and ``%`` are escaped
    too.
    """
    return mysql.identifier(identifier, pattern=for_grants)


def _duration(seconds: float) -> dict[str, str]:
    human = f"{round(seconds * 1000, 1)}ms" if seconds < 0.2 else f"{round(seconds, 2)}s"
    return {"human": human, "raw": str(round(seconds, 5))}

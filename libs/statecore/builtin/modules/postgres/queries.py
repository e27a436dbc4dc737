"""Functions of ``postgres`` that run the caller's query, and return the PostgreSQL server's version."""

from __future__ import annotations

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context


def psql_query(
    ctx: Context,
    query: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
    write: bool = False,
) -> list[dict[str, str]]:
    """Run one SQL query and return its rows as maps of column to text, in which "" is NULL. Raise CommandError with the
    PostgreSQL server's message.

    ``write``: the query changes data and returns rows.

    CLI Example:

        salt '*' postgres.psql_query 'select * from pg_stat_activity'
    """
    # COPY accepts every statement that returns rows, also INSERT with RETURNING, so ``write`` changes nothing here.
    return client.rows(
        ctx, Connection(user, host, port, maintenance_db, password, runas), str(query).strip().rstrip(";")
    )


def version(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> str:
    """Return the PostgreSQL server's version as text."""
    to = Connection(user, host, port, maintenance_db, password, runas)
    return client.rows(ctx, to, "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'server_version'")[0][
        "setting"
    ]

"""Functions of ``postgres`` for the schemas of a PostgreSQL database."""

from __future__ import annotations

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.system.databases import postgres

_LIST = (
    'SELECT nspname AS "name", nspacl AS "acl", r.rolname AS "owner"'
    " FROM pg_namespace LEFT JOIN pg_roles r ON r.oid = nspowner"
)


def schema_list(
    ctx: Context,
    dbname: str,
    user: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> dict[str, dict[str, str]]:
    """Return the schemas of a PostgreSQL database: a map of name to owner and acl. ``user`` is the system user who runs
    psql.

    CLI Example:

        salt '*' postgres.schema_list dbname
    """
    found = client.rows(ctx, Connection(db_user, db_host, db_port, dbname, db_password, user), _LIST)
    return {row.pop("name"): row for row in found}


def schema_get(
    ctx: Context,
    dbname: str,
    name: str,
    user: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> dict[str, str] | None:
    """Return a map with owner and acl of a schema of a PostgreSQL database; None if there is none."""
    return schema_list(ctx, dbname, user, db_user, db_password, db_host, db_port).get(name)


def schema_exists(
    ctx: Context,
    dbname: str,
    name: str,
    user: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> bool:
    """Return whether a PostgreSQL database has a schema."""
    return schema_get(ctx, dbname, name, user, db_user, db_password, db_host, db_port) is not None


def schema_create(
    ctx: Context,
    dbname: str,
    name: str,
    owner: str | None = None,
    user: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> bool:
    """Create a schema in a PostgreSQL database. Return True. Raise CommandError if the server refuses."""
    whose = f" AUTHORIZATION {postgres.identifier(owner)}" if owner else ""
    to = Connection(db_user, db_host, db_port, dbname, db_password, user)
    client.execute(ctx, to, f"CREATE SCHEMA {postgres.identifier(name)}{whose};\n")
    return True


def schema_remove(
    ctx: Context,
    dbname: str,
    name: str,
    user: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> bool:
    """Remove an empty schema from a PostgreSQL database. Return True. Raise CommandError if the server refuses."""
    to = Connection(db_user, db_host, db_port, dbname, db_password, user)
    client.execute(ctx, to, f"DROP SCHEMA {postgres.identifier(name)};\n")
    return True

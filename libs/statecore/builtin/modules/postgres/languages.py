"""Functions of ``postgres`` for the procedural languages of a PostgreSQL database."""

from __future__ import annotations

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.system.databases import postgres

#: Query for a language and the extension that it is part of; such a language cannot be dropped by itself.
_BROUGHT_BY = """SELECT lanname AS name, extname AS extension FROM pg_language l
LEFT JOIN pg_depend d ON d.classid = 'pg_language'::regclass AND d.objid = l.oid AND d.deptype = 'e'
LEFT JOIN pg_extension e ON e.oid = d.refobjid WHERE lanname = {}"""


def language_list(
    ctx: Context,
    maintenance_db: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, str]:
    """Return the procedural languages of a PostgreSQL database: a map in which each language's name has its name as
    value.

    CLI Example:

        salt '*' postgres.language_list dbname
    """
    to = Connection(user, host, port, maintenance_db, password, runas)
    return {row["name"]: row["name"] for row in client.rows(ctx, to, 'SELECT lanname AS "name" FROM pg_language')}


def language_exists(
    ctx: Context,
    name: str,
    maintenance_db: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether a PostgreSQL database has a procedural language."""
    return name in language_list(ctx, maintenance_db, user, host, port, password, runas)


def language_create(
    ctx: Context,
    name: str,
    maintenance_db: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Create a procedural language in a PostgreSQL database. Return True; False if it exists. Raise CommandError if the
    server refuses.

    CLI Example:

        salt '*' postgres.language_create plpgsql dbname
    """
    if language_exists(ctx, name, maintenance_db, user, host, port, password, runas):
        return False
    to = Connection(user, host, port, maintenance_db, password, runas)
    client.execute(ctx, to, f"CREATE LANGUAGE {postgres.identifier(name)};\n")
    return True


def language_remove(
    ctx: Context,
    name: str,
    maintenance_db: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Remove a procedural language from a PostgreSQL database, with the extension of its name. Return True; False if
    there is none.

    Raise CommandError if the server refuses, for example because functions use the language.
    """
    to = Connection(user, host, port, maintenance_db, password, runas)
    found = client.rows(ctx, to, _BROUGHT_BY.format(postgres.literal(name)))
    if not found:
        return False
    what = "EXTENSION" if found[0]["extension"] == name else "LANGUAGE"
    client.execute(ctx, to, f"DROP {what} {postgres.identifier(name)};\n")
    return True

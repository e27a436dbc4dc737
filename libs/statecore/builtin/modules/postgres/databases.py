"""Functions of ``postgres`` that run the caller's query, and for the databases of a PostgreSQL server."""

from __future__ import annotations

import os

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.system.databases import postgres

_LIST = (
    'SELECT datname AS "Name", r.rolname AS "Owner", pg_encoding_to_char(encoding) AS "Encoding",'
    ' datcollate AS "Collate", datctype AS "Ctype", datacl AS "Access privileges", spcname AS "Tablespace"'
    " FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba JOIN pg_tablespace t ON t.oid = d.dattablespace"
)

#: Query whose rows are ALTER statements that give every object of a database to the role ``owner``.
_OWNED = """
SELECT format('ALTER SCHEMA %I OWNER TO %I', nspname, owner) FROM pg_namespace, whom
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
UNION ALL
SELECT format('ALTER %s %s OWNER TO %I', CASE relkind WHEN 'v' THEN 'VIEW'
    WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
    WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END, c.oid::regclass, owner)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace, whom
WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND nspname !~ '^pg_' AND nspname <> 'information_schema'
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = c.oid AND deptype IN ('a', 'i', 'e'))
UNION ALL
SELECT format('ALTER %s %s OWNER TO %I', CASE prokind WHEN 'a' THEN 'AGGREGATE' WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
    p.oid::regprocedure, owner)
FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace, whom
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = p.oid AND deptype IN ('i', 'e'))
"""


def db_list(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, dict[str, str]]:
    """Return the databases of a PostgreSQL server: a map of name to Owner, Encoding, Collate, Ctype, Access privileges
    and Tablespace.

    CLI Example:

        salt '*' postgres.db_list
    """
    found = client.rows(ctx, Connection(user, host, port, maintenance_db, password, runas), _LIST)
    return {row.pop("Name"): row for row in found}


def db_exists(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether a PostgreSQL server has a database."""
    return name in db_list(ctx, user, host, port, maintenance_db, password, runas)


def db_create(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    tablespace: str | None = None,
    encoding: str | None = None,
    lc_collate: str | None = None,
    lc_ctype: str | None = None,
    owner: str | None = None,
    template: str | None = None,
    runas: str | None = None,
) -> bool:
    """Create a PostgreSQL database. Return True. Raise CommandError if the server refuses.

    CLI Example:

        salt '*' postgres.db_create dbname owner=frank
    """
    parts = [f"CREATE DATABASE {postgres.identifier(name)} WITH"]
    for word, value in (("TABLESPACE", tablespace), ("OWNER", owner), ("TEMPLATE", template)):
        parts += [f"{word} = {postgres.identifier(value)}"] if value else []
    for word, value in (("ENCODING", encoding), ("LC_COLLATE", lc_collate), ("LC_CTYPE", lc_ctype)):
        parts += [f"{word} = {postgres.literal(value)}"] if value else []
    client.execute(
        ctx,
        Connection(user, host, port, maintenance_db, password, runas),
        " ".join(parts).removesuffix(" WITH") + ";\n",
    )
    return True


def db_alter(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    tablespace: str | None = None,
    owner: str | None = None,
    owner_recurse: bool = False,
    runas: str | None = None,
) -> bool:
    """Change the owner or the tablespace of a PostgreSQL database. Return True. Raise CommandError if the server
    refuses.

    ``owner_recurse``: give all objects in the database to the owner, too.
    """
    shown = postgres.identifier(name)
    to = Connection(user, host, port, maintenance_db, password, runas)
    if owner:
        client.execute(ctx, to, f"ALTER DATABASE {shown} OWNER TO {postgres.identifier(owner)};\n")
    if owner and owner_recurse:
        client.execute(ctx, Connection(user, host, port, name, password, runas), _given_to(owner))
    if tablespace:
        client.execute(ctx, to, f"ALTER DATABASE {shown} SET TABLESPACE {postgres.identifier(tablespace)};\n")
    return True


def owner_to(
    ctx: Context,
    dbname: str,
    ownername: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Make a role the owner of a PostgreSQL database and of all objects in it. Return True.

    Either all objects in the database change their owner or none. Raise CommandError if the server refuses.

    CLI Example:

        salt '*' postgres.owner_to dbname username
    """
    return db_alter(ctx, dbname, user, host, port, None, password, None, ownername, True, runas)


def db_remove(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """End all connections to a PostgreSQL database and drop it with its contents. Return True. Raise CommandError if
    the server refuses.
    """
    shown, text = postgres.identifier(name), postgres.literal(name)
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {text} AND pid <> pg_backend_pid();"
    statements = f"REVOKE CONNECT ON DATABASE {shown} FROM public;\n{end}\nDROP DATABASE {shown};\n"
    client.execute(ctx, Connection(user, host, port, maintenance_db, password, runas), statements)
    return True


def _given_to(owner: str) -> str:
    # Text between two such tags is not parsed by the server; a random tag cannot occur in a name.
    tag = f"$saltern_{os.urandom(8).hex()}$"
    query = f"WITH whom AS (SELECT {postgres.literal(owner)}::text AS owner) {_OWNED}"
    return f"DO {tag} DECLARE statement text; BEGIN FOR statement IN {query} LOOP EXECUTE statement; END LOOP; END {tag};\n"


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

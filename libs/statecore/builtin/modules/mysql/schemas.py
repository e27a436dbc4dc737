"""Functions of the ``mysql`` module for the databases of a MySQL server."""

from __future__ import annotations

from statecore.builtin.modules.mysql import client
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases import mysql

#: System databases of the server.
_OWN = ("mysql", "information_schema", "performance_schema", "sys")


def db_list(ctx: Context, **connection_args: object) -> list[str]:
    """Return the names of all databases of the MySQL server."""
    return [str(row[0]) for row in client.run_statement(ctx, connection_args, "SHOW DATABASES")]


def db_get(ctx: Context, name: str, **connection_args: object) -> dict[str, str]:
    """Return a map with ``character_set`` and ``collate`` of a MySQL database, {} if the database does not exist.

    CLI Example:

        salt '*' mysql.db_get test
    """
    asked = (
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM INFORMATION_SCHEMA.SCHEMATA"
        f" WHERE SCHEMA_NAME = {mysql.literal(name)}"
    )
    rows = client.run_statement(ctx, connection_args, asked)
    return {"character_set": str(rows[0][0]), "collate": str(rows[0][1])} if rows else {}


def db_exists(ctx: Context, name: str, **connection_args: object) -> bool:
    """Return whether the MySQL server has a database."""
    return bool(db_get(ctx, name, **connection_args))


def db_create(
    ctx: Context, name: str, character_set: str | None = None, collate: str | None = None, **connection_args: object
) -> bool:
    """Create a MySQL database. Return True; False if it exists. Raise CommandError if the server refuses.

    CLI Example:

        salt '*' mysql.db_create dbname utf8mb4 utf8mb4_general_ci
    """
    if db_exists(ctx, name, **connection_args):
        return False
    client.run_statement(
        ctx, connection_args, f"CREATE DATABASE {mysql.identifier(name)}{_written(character_set, collate)}"
    )
    return True


def alter_db(
    ctx: Context, name: str, character_set: str | None = None, collate: str | None = None, **connection_args: object
) -> bool:
    """Change the character set or the collation of a MySQL database. Return True. Raise CommandError if the server
    refuses.
    """
    client.run_statement(
        ctx, connection_args, f"ALTER DATABASE {mysql.identifier(name)}{_written(character_set, collate)}"
    )
    return True


def db_remove(ctx: Context, name: str, **connection_args: object) -> bool:
    """Drop a MySQL database with all its tables. Return True; False if it does not exist. Raise CommandError for the
    server's system databases.
    """
    if name in _OWN:
        raise CommandError(f"DB '{name}' may not be removed")
    if not db_exists(ctx, name, **connection_args):
        return False
    client.run_statement(ctx, connection_args, f"DROP DATABASE {mysql.identifier(name)}")
    return True


def _written(character_set: str | None, collate: str | None) -> str:
    named = f" CHARACTER SET {mysql.word('character_set', character_set)}" if character_set else ""
    return named + (f" COLLATE {mysql.word('collate', collate)}" if collate else "")

"""Databases."""

from __future__ import annotations

from typing import Any

from statecore.builtin.modules.mysql import client
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases import mysql

#: The server's own.
_OWN = ("mysql", "information_schema", "performance_schema", "sys")


def db_list(ctx: Context, **connection_args: Any) -> list[str]:
    """Names of all databases."""
    return [str(row[0]) for row in client.ask(ctx, connection_args, "SHOW DATABASES")]


def db_get(ctx: Context, name: str, **connection_args: Any) -> dict[str, str]:
    """``character_set`` and ``collate`` of a database, {} where there is none.

    CLI Example:

        salt '*' mysql.db_get test
    """
    asked = (
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM INFORMATION_SCHEMA.SCHEMATA"
        f" WHERE SCHEMA_NAME = {mysql.literal(name)}"
    )
    rows = client.ask(ctx, connection_args, asked)
    return {"character_set": str(rows[0][0]), "collate": str(rows[0][1])} if rows else {}


def db_exists(ctx: Context, name: str, **connection_args: Any) -> bool:
    """Whether there is a database."""
    return bool(db_get(ctx, name, **connection_args))


def db_create(
    ctx: Context, name: str, character_set: str | None = None, collate: str | None = None, **connection_args: Any
) -> bool:
    """Makes a database; False where there is one. Raises CommandError.

    CLI Example:

        salt '*' mysql.db_create dbname utf8mb4 utf8mb4_general_ci
    """
    if db_exists(ctx, name, **connection_args):
        return False
    client.ask(ctx, connection_args, f"CREATE DATABASE {mysql.identifier(name)}{_written(character_set, collate)}")
    return True


def alter_db(
    ctx: Context, name: str, character_set: str | None = None, collate: str | None = None, **connection_args: Any
) -> bool:
    """Gives a database another character set, or collation. Raises CommandError."""
    client.ask(ctx, connection_args, f"ALTER DATABASE {mysql.identifier(name)}{_written(character_set, collate)}")
    return True


def db_remove(ctx: Context, name: str, **connection_args: Any) -> bool:
    """Removes a database with all that is in it; False where there is none. Raises CommandError for the server's own."""
    if name in _OWN:
        raise CommandError(f"DB '{name}' may not be removed")
    if not db_exists(ctx, name, **connection_args):
        return False
    client.ask(ctx, connection_args, f"DROP DATABASE {mysql.identifier(name)}")
    return True


def _written(character_set: str | None, collate: str | None) -> str:
    named = f" CHARACTER SET {mysql.word('character_set', character_set)}" if character_set else ""
    return named + (f" COLLATE {mysql.word('collate', collate)}" if collate else "")

"""Functions of ``postgres`` for the extensions of a PostgreSQL database."""

from __future__ import annotations

import re

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases import postgres


def available_extensions(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, dict[str, str]]:
    """Return the extensions that a PostgreSQL server offers: a map of name to name, default_version, installed_version
    and comment.
    """
    found = client.rows(
        ctx, Connection(user, host, port, maintenance_db, password, runas), "SELECT * FROM pg_available_extensions()"
    )
    return {row["name"]: row for row in found}


def installed_extensions(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, dict[str, str]]:
    """Return the extensions that a PostgreSQL database has: a map of name to extversion, schema_name, extrelocatable
    and more.
    """
    query = "SELECT a.*, b.nspname AS schema_name FROM pg_extension a JOIN pg_namespace b ON a.extnamespace = b.oid"
    found = client.rows(ctx, Connection(user, host, port, maintenance_db, password, runas), query)
    return {row["extname"]: row for row in found}


def is_installed_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether a PostgreSQL database has an extension."""
    return name in installed_extensions(ctx, user, host, port, maintenance_db, password, runas)


def get_available_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, str] | None:
    """Return an extension that the PostgreSQL server offers, as a map with name, default_version, installed_version and
    comment. Return None if the server does not offer it.
    """
    return available_extensions(ctx, user, host, port, maintenance_db, password, runas).get(name)


def get_installed_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, str] | None:
    """Return an extension that the PostgreSQL database has, as a map with extversion, schema_name, extrelocatable and
    more. Return None if the database does not have it.
    """
    return installed_extensions(ctx, user, host, port, maintenance_db, password, runas).get(name)


def is_available_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether the PostgreSQL server offers an extension. Upper and lower case are equal."""
    found = available_extensions(ctx, user, host, port, maintenance_db, password, runas)
    return name.lower() in (each.lower() for each in found)


def create_metadata(
    ctx: Context,
    name: str,
    ext_version: str | None = None,
    schema: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> list[str]:
    """Return the state of an extension as a list of Salt's constants: EXTENSION NOT INSTALLED; or EXTENSION INSTALLED,
    followed by EXTENSION TO UPGRADE and EXTENSION TO MOVE if it needs that.
    """
    there = installed_extensions(ctx, user, host, port, maintenance_db, password, runas).get(name)
    if there is None:
        return ["EXTENSION NOT INSTALLED"]
    facts = ["EXTENSION INSTALLED"]
    if ext_version is not None and _version(there["extversion"]) < _version(ext_version):
        facts.append("EXTENSION TO UPGRADE")
    if schema is not None and there["extrelocatable"] == "t" and there["schema_name"] != schema:
        facts.append("EXTENSION TO MOVE")
    return facts


def create_extension(
    ctx: Context,
    name: str,
    if_not_exists: bool | None = None,
    schema: str | None = None,
    ext_version: str | None = None,
    from_version: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Install an extension in a PostgreSQL database, or move and upgrade the installed one. Return True. Raise
    CommandError if the server refuses.

    CLI Example:

        salt '*' postgres.create_extension adminpack
    """
    to = Connection(user, host, port, maintenance_db, password, runas)
    facts = create_metadata(ctx, name, ext_version, schema, user, host, port, maintenance_db, password, runas)
    shown = postgres.identifier(name)
    parts: list[str] = []
    if "EXTENSION NOT INSTALLED" in facts:
        if name not in available_extensions(ctx, user, host, port, maintenance_db, password, runas):
            raise CommandError(f"the server has no extension {name}")
        one = f"CREATE EXTENSION {'' if if_not_exists is False else 'IF NOT EXISTS '}{shown}"
        one += f" SCHEMA {postgres.identifier(schema)}" if schema else ""
        one += f" VERSION {postgres.literal(ext_version)}" if ext_version else ""
        parts.append(one + (f" FROM {postgres.literal(from_version)}" if from_version else ""))
    if "EXTENSION TO MOVE" in facts:
        parts.append(f"ALTER EXTENSION {shown} SET SCHEMA {postgres.identifier(schema)}")
    if "EXTENSION TO UPGRADE" in facts:
        parts.append(f"ALTER EXTENSION {shown} UPDATE TO {postgres.identifier(ext_version)}")
    if parts:
        client.execute(ctx, to, ";\n".join([*parts, ""]))
    return True


def drop_extension(
    ctx: Context,
    name: str,
    if_exists: bool | None = None,
    restrict: bool | None = None,
    cascade: bool | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Remove an extension from a PostgreSQL database, and the objects that depend on it. Return True.

    With ``restrict``, or with ``cascade=False``, an extension with dependents is not removed. Raise CommandError if the
    server refuses.
    """
    end = "RESTRICT" if restrict or cascade is False else "CASCADE"
    client.execute(
        ctx,
        Connection(user, host, port, maintenance_db, password, runas),
        f"DROP EXTENSION IF EXISTS {postgres.identifier(name)} {end};\n",
    )
    return True


def _version(text: str) -> list[tuple[bool, int, str]]:
    """Return a sort key for an extension's version: its numbers compare as numbers, and numbers are newer than
    words.
    """
    parts = re.findall(r"\d+|[A-Za-z]+", str(text))
    return [(each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in parts]

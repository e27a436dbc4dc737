"""Extensions of a database."""

from __future__ import annotations

import re
from typing import Any

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases import postgres


def available_extensions(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, dict[str, str]]:
    """Name -> default_version and comment of each extension that the server could have."""
    found = client.rows(
        ctx, Connection(user, host, port, maintenance_db, password, runas), "SELECT * FROM pg_available_extensions()"
    )
    return {row["name"]: row for row in found}


def installed_extensions(
    ctx: Context,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, dict[str, str]]:
    """Name -> extversion, schema_name, extrelocatable, … of each extension that the database has."""
    query = "SELECT a.*, b.nspname AS schema_name FROM pg_extension a JOIN pg_namespace b ON a.extnamespace = b.oid"
    found = client.rows(ctx, Connection(user, host, port, maintenance_db, password, runas), query)
    return {row["extname"]: row for row in found}


def is_installed_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Whether the database has an extension."""
    return name in installed_extensions(ctx, user, host, port, maintenance_db, password, runas)


def get_available_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, str] | None:
    """What the server tells of an extension that it could have; None where it could not."""
    return available_extensions(ctx, user, host, port, maintenance_db, password, runas).get(name)


def get_installed_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, str] | None:
    """What the database tells of an extension that it has; None where it has not."""
    return installed_extensions(ctx, user, host, port, maintenance_db, password, runas).get(name)


def is_available_extension(
    ctx: Context,
    name: str,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Whether the server could have an extension."""
    found = available_extensions(ctx, user, host, port, maintenance_db, password, runas)
    return name.lower() in (each.lower() for each in found)


def create_metadata(
    ctx: Context,
    name: str,
    ext_version: str | None = None,
    schema: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> list[str]:
    """What is to be done for an extension: EXTENSION NOT INSTALLED, EXTENSION INSTALLED, TO UPGRADE, TO MOVE."""
    there = installed_extensions(ctx, user, host, port, maintenance_db, password, runas).get(name)
    if there is None:
        return ["EXTENSION NOT INSTALLED"]
    told = ["EXTENSION INSTALLED"]
    if ext_version is not None and _version(there["extversion"]) < _version(ext_version):
        told.append("EXTENSION TO UPGRADE")
    if schema is not None and there["extrelocatable"] == "t" and there["schema_name"] != schema:
        told.append("EXTENSION TO MOVE")
    return told


def create_extension(
    ctx: Context,
    name: str,
    if_not_exists: bool | None = None,
    schema: str | None = None,
    ext_version: str | None = None,
    from_version: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Installs an extension, or moves and upgrades the one that is there. Raises CommandError.

    CLI Example:

        salt '*' postgres.create_extension adminpack
    """
    to = Connection(user, host, port, maintenance_db, password, runas)
    told = create_metadata(ctx, name, ext_version, schema, user, host, port, maintenance_db, password, runas)
    shown = postgres.identifier(name)
    parts: list[str] = []
    if "EXTENSION NOT INSTALLED" in told:
        if name not in available_extensions(ctx, user, host, port, maintenance_db, password, runas):
            raise CommandError(f"the server has no extension {name}")
        one = f"CREATE EXTENSION {'' if if_not_exists is False else 'IF NOT EXISTS '}{shown}"
        one += f" SCHEMA {postgres.identifier(schema)}" if schema else ""
        one += f" VERSION {postgres.literal(ext_version)}" if ext_version else ""
        parts.append(one + (f" FROM {postgres.literal(from_version)}" if from_version else ""))
    if "EXTENSION TO MOVE" in told:
        parts.append(f"ALTER EXTENSION {shown} SET SCHEMA {postgres.identifier(schema)}")
    if "EXTENSION TO UPGRADE" in told:
        parts.append(f"ALTER EXTENSION {shown} UPDATE TO {postgres.identifier(ext_version)}")
    if parts:
        client.say(ctx, to, ";\n".join([*parts, ""]))
    return True


def drop_extension(
    ctx: Context,
    name: str,
    if_exists: bool | None = None,
    restrict: bool | None = None,
    cascade: bool | None = None,
    user: str | None = None,
    host: str | None = None,
    port: Any = None,
    maintenance_db: str | None = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Removes an extension with what needs it; not with ``restrict``, or ``cascade: False``. Raises CommandError."""
    end = "RESTRICT" if restrict or cascade is False else "CASCADE"
    client.say(
        ctx,
        Connection(user, host, port, maintenance_db, password, runas),
        f"DROP EXTENSION IF EXISTS {postgres.identifier(name)} {end};\n",
    )
    return True


def _version(text: str) -> list[tuple[bool, int, str]]:
    """Numbers as numbers, words behind them."""
    parts = re.findall(r"\d+|[A-Za-z]+", str(text))
    return [(each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in parts]

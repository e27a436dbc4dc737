"""Salt's ``postgres_group`` states: PostgreSQL roles without login."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.types import Plan
from statecore.system.databases import roles


def available(ctx: Context) -> str | None:
    """Return None if the ``postgres`` execution module is available, else the reason as text."""
    return roles.module_missing(ctx)


def present(
    ctx: Context,
    name: str,
    createdb: bool | None = None,
    createroles: bool | None = None,
    encrypted: object = None,
    superuser: bool | None = None,
    inherit: bool | None = None,
    login: bool | None = None,
    replication: bool | None = None,
    password: str | None = None,
    refresh_password: bool | None = None,
    groups: object = None,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Create or change a PostgreSQL role without login. Arguments as in ``postgres_user.present``."""
    flags = {
        "createdb": createdb,
        "createroles": createroles,
        "superuser": superuser,
        "replication": replication,
        "inherit": inherit,
        "login": login,
    }
    return roles.present(
        ctx,
        "group",
        name,
        roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user),
        flags,
        encrypted=encrypted,
        password=password,
        refresh_password=refresh_password,
        groups=groups,
    )


def absent(
    ctx: Context,
    name: str,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Remove a PostgreSQL role without login. Nothing happens if it does not exist."""
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    return roles.absent(ctx, "group", name, to)

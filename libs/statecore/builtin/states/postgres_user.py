"""Salt's ``postgres_user`` states: PostgreSQL roles with login."""

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
    replication: bool | None = None,
    inherit: bool | None = None,
    login: bool | None = None,
    password: str | None = None,
    default_password: str | None = None,
    refresh_password: bool | None = None,
    valid_until: str | None = None,
    groups: object = None,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Create or change a PostgreSQL role with login.

    createdb, createroles, superuser, replication, inherit, login
        attributes of the role; attributes that are not given stay unchanged
    password, default_password
        the role's password; password of a new role only
    encrypted
        how the password is stored: md5 or scram-sha-256
    refresh_password
        True: set the password in each run without comparing it, for users that cannot read the stored password
    valid_until
        time when the password expires
    groups
        groups that the role is a member of; other memberships stay
    user
        system user that runs psql
    db_user, db_password, db_host, db_port, maintenance_db
        connection to the server
    """
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
        "user",
        name,
        roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user),
        flags,
        encrypted=encrypted,
        password=password,
        refresh_password=refresh_password,
        groups=groups,
        default_password=default_password,
        valid_until=valid_until,
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
    """Remove a PostgreSQL role with login. Nothing happens if it does not exist."""
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    return roles.absent(ctx, "user", name, to)

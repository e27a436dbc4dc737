"""Users of PostgreSQL (Salt's ``postgres_user`` state)."""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.model.types import Plan
from statecore.system.databases import roles


def available(ctx: Context) -> str | None:
    """None where the postgres module works."""
    return roles.module_missing(ctx)


def present(
    ctx: Context,
    name: str,
    createdb: bool | None = None,
    createroles: bool | None = None,
    encrypted: Any = None,
    superuser: bool | None = None,
    replication: bool | None = None,
    inherit: bool | None = None,
    login: bool | None = None,
    password: str | None = None,
    default_password: str | None = None,
    refresh_password: bool | None = None,
    valid_until: str | None = None,
    groups: Any = None,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: Any = None,
    db_user: str | None = None,
) -> Plan:
    """A role that may log in.

    createdb, createroles, superuser, replication, inherit, login
        what it may do; what is not named stays
    password, default_password, encrypted
        its password, or the one that it gets when it is made; kept as md5 or scram-sha-256
    refresh_password
        the password is set each time, not compared: for who may not read what is kept
    valid_until, groups
        when the password expires; groups that it is a member of, at least
    user, db_user, db_password, db_host, db_port, maintenance_db
        the system user who asks, and how the server is reached
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
    db_port: Any = None,
    db_user: str | None = None,
) -> Plan:
    """A role that is not there."""
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    return roles.absent(ctx, "user", name, to)

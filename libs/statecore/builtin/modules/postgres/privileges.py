"""Functions of ``postgres`` for privileges of roles on tables, schemas, databases and other objects, and for membership
in groups.
"""

from __future__ import annotations

from statecore.builtin.modules.postgres import client
from statecore.builtin.modules.postgres.client import Connection
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases import postgres_privileges as known
from statecore.system.databases.postgres_privileges import EVERY, GROUP


def privileges_list(
    ctx: Context,
    name: str,
    object_type: str,
    prepend: str = "public",
    maintenance_db: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> dict[str, dict[str, bool]] | dict[str, bool]:
    """Return the privileges on a PostgreSQL object: a map of role to a map of privilege to whether the role may grant
    it to others.

    For a group, return a map of member to whether it has the admin option. ``prepend`` is the schema of a table,
    sequence or function.

    CLI Example:

        salt '*' postgres.privileges_list table_name table maintenance_db=db_name
    """
    kind = known.kind_of(object_type)
    to = Connection(user, host, port, maintenance_db, password, runas)
    if kind == GROUP:
        return _members(ctx, to, name)
    return _of_role(client.rows(ctx, to, known.held_query(kind, name, prepend, defaults=False)))


def has_privileges(
    ctx: Context,
    name: str,
    object_name: str,
    object_type: str,
    privileges: object = None,
    grant_option: bool | None = None,
    prepend: str = "public",
    maintenance_db: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether a PostgreSQL role has all these privileges on an object, or is a member of a group.

    ``grant_option``: the role must also be allowed to grant them. An object_name of ALL means all tables, sequences or
    functions of the schema.

    CLI Example:

        salt '*' postgres.has_privileges user_name table_name table SELECT,INSERT maintenance_db=db_name
    """
    kind = known.kind_of(object_type)
    names = known.wanted(kind, privileges)
    to = Connection(user, host, port, maintenance_db, password, runas)
    if kind == GROUP:
        members = _members(ctx, to, object_name)
        return name in members and (members[name] or not grant_option)
    held = _held(ctx, to, kind, name, object_name, prepend)
    whole = _all(ctx, to, kind) if names == [EVERY] else names
    return all(each.get(one) or (one in each and not grant_option) for each in held.values() for one in whole)


def privileges_grant(
    ctx: Context,
    name: str,
    object_name: str,
    object_type: str,
    privileges: object = None,
    grant_option: bool | None = None,
    prepend: str = "public",
    maintenance_db: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Grant a PostgreSQL role privileges on an object, or make it a member of a group. Return True; False if the role
    has them already.

    The name ``public`` means all roles. Raise CommandError when the server refuses.

    CLI Example:

        salt '*' postgres.privileges_grant user_name table_name table SELECT,UPDATE maintenance_db=db_name
    """
    at = (prepend, maintenance_db, user, host, port, password, runas)
    if has_privileges(ctx, name, object_name, object_type, privileges, grant_option, *at):
        return False
    kind = known.kind_of(object_type)
    to = Connection(user, host, port, maintenance_db, password, runas)
    targets = [object_name] if kind == GROUP else list(_held(ctx, to, kind, name, object_name, prepend))
    text = known.grant(kind, known.wanted(kind, privileges), targets, name, option=bool(grant_option))
    client.execute(ctx, to, text)
    return True


def privileges_revoke(
    ctx: Context,
    name: str,
    object_name: str,
    object_type: str,
    privileges: object = None,
    prepend: str = "public",
    maintenance_db: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Revoke those of the privileges that a PostgreSQL role has, or its membership in a group. Return True; False if it
    has none.

    Raise CommandError if the server refuses.

    CLI Example:

        salt '*' postgres.privileges_revoke user_name table_name table SELECT,UPDATE maintenance_db=db_name
    """
    kind = known.kind_of(object_type)
    names = known.wanted(kind, privileges)
    to = Connection(user, host, port, maintenance_db, password, runas)
    if kind == GROUP:
        targets = [object_name] if name in _members(ctx, to, object_name) else []
    else:
        held = _held(ctx, to, kind, name, object_name, prepend)
        targets = [target for target, each in held.items() if each and (names == [EVERY] or set(names) & set(each))]
    if not targets:
        return False
    client.execute(ctx, to, known.revoke(kind, names, targets, name))
    return True


def holds_any_privilege(
    ctx: Context,
    name: str,
    object_name: str,
    object_type: str,
    privileges: object = None,
    prepend: str = "public",
    maintenance_db: str | None = None,
    user: str | None = None,
    host: str | None = None,
    port: object = None,
    password: str | None = None,
    runas: str | None = None,
) -> bool:
    """Return whether a PostgreSQL role has at least one of these privileges on an object, or is a member of a group."""
    kind = known.kind_of(object_type)
    names = known.wanted(kind, privileges)
    to = Connection(user, host, port, maintenance_db, password, runas)
    if kind == GROUP:
        return name in _members(ctx, to, object_name)
    held = _held(ctx, to, kind, name, object_name, prepend)
    return any(each and (names == [EVERY] or set(names) & set(each)) for each in held.values())


# ----------------------------------------------------------------------------------------------- helpers


def _members(ctx: Context, to: Connection, group: str) -> dict[str, bool]:
    return {row["role"]: row["admin"] == "t" for row in client.rows(ctx, to, known.members_query(group))}


def _all(ctx: Context, to: Connection, kind: str) -> list[str]:
    return [row["privilege"] for row in client.rows(ctx, to, known.all_query(kind))]


def _held(ctx: Context, to: Connection, kind: str, role: str, name: str, schema: str) -> dict[str, dict[str, bool]]:
    """Return the privileges of a role: a map of object to a map of privilege to whether the role may grant it to
    others.

    Objects are named as in SQL statements. Raise CommandError if no such object exists.
    """
    found: dict[str, dict[str, bool]] = {}
    for row in client.rows(ctx, to, known.held_query(kind, name, schema, defaults=True)):
        own = found.setdefault(row["target"], {})
        if row["role"] == role and row["privilege"]:
            own[row["privilege"]] = own.get(row["privilege"], False) or row["grantable"] == "t"
    if not found and name.upper() != EVERY:
        where = f" in the schema {schema}" if known.KINDS[kind].in_schema else ""
        raise CommandError(f"the database has no {kind} {name}{where}")
    return found


def _of_role(rows: list[dict[str, str]]) -> dict[str, dict[str, bool]]:
    found: dict[str, dict[str, bool]] = {}
    for row in rows:
        if row["privilege"]:
            own = found.setdefault(row["role"], {})
            own[row["privilege"]] = own.get(row["privilege"], False) or row["grantable"] == "t"
    return found

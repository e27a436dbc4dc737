"""Salt's ``postgres_privileges`` states: privileges of PostgreSQL roles."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import roles


def available(ctx: Context) -> str | None:
    """Return None if the ``postgres`` execution module is available, else the reason as text."""
    return roles.module_missing(ctx)


def present(
    ctx: Context,
    name: str,
    object_name: str,
    object_type: str,
    privileges: Sequence[str] | str | None = None,
    grant_option: bool | None = None,
    prepend: str = "public",
    maintenance_db: str | None = None,
    user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Grant a PostgreSQL role privileges on an object, or membership in a group.

    name
        the role; ``public``: all roles
    object_name
        the object; ``ALL``: all tables, sequences or functions that the schema contains now
    object_type
        table (also for views), sequence, function, schema, tablespace, language, database, or group
    privileges
        list such as SELECT and INSERT, or ALL; not used for a group
    grant_option
        True: the role may grant the privileges to others; for a group: it may add members
    prepend
        schema of the table, sequence or function
    """
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    call = {"privileges": privileges, "prepend": prepend, **to}
    try:
        existing = ctx.call(
            "postgres.has_privileges", name, object_name, object_type, grant_option=grant_option, **call
        )
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if existing:
        return Plan.unchanged("The requested privilege(s) are already set")
    shown = _shown(privileges) or object_name
    changes = {name: "Present"}

    def grant() -> Outcome:
        try:
            ctx.call("postgres.privileges_grant", name, object_name, object_type, grant_option=grant_option, **call)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to grant privilege(s): {shown} to {name} ({error})", ok=False)
        return Outcome(f"The privilege(s): {shown} have been granted to {name}", changes)

    would = f"The privilege(s): {shown} are set to be granted to {name}"
    return Plan.change(would, [Step(f"grant {shown} to {name}", grant)], changes)


def absent(
    ctx: Context,
    name: str,
    object_name: str,
    object_type: str,
    privileges: Sequence[str] | str | None = None,
    prepend: str = "public",
    maintenance_db: str | None = None,
    user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Revoke a PostgreSQL role's privileges on an object, or its membership in a group. Arguments as in
    ``postgres_privileges.present``.
    """
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    call = {"privileges": privileges, "prepend": prepend, **to}
    try:
        existing = ctx.call("postgres._holds_any_privilege", name, object_name, object_type, **call)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged("The requested privilege(s) are not set so cannot be revoked")
    shown = _shown(privileges) or object_name
    changes = {name: "Absent"}

    def revoke() -> Outcome:
        try:
            ctx.call("postgres.privileges_revoke", name, object_name, object_type, **call)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to revoke privilege(s): {shown} from {name} ({error})", ok=False)
        return Outcome(f"The privilege(s): {shown} have been revoked from {name}", changes)

    would = f"The privilege(s): {shown} are set to be revoked from {name}"
    return Plan.change(would, [Step(f"revoke {shown} from {name}", revoke)], changes)


def _shown(privileges: Sequence[str] | str | None) -> str:
    return privileges if isinstance(privileges, str) else ",".join(map(str, privileges or ()))

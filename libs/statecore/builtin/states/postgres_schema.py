"""Salt's ``postgres_schema`` states: schemas of a PostgreSQL database."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import roles


def available(ctx: Context) -> str | None:
    """Return None if the ``postgres`` execution module is available, else the reason as text."""
    return roles.module_missing(ctx)


def present(
    ctx: Context,
    dbname: str,
    name: str,
    owner: str | None = None,
    user: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> Plan:
    """Create a schema in a PostgreSQL database. An existing schema is not changed. ``owner``: owner of a new schema."""
    to = {"user": user, "db_user": db_user, "db_password": db_password, "db_host": db_host, "db_port": db_port}
    try:
        existing = ctx.call("postgres.schema_exists", dbname, name, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if existing:
        return Plan.unchanged(f"Schema {name} already exists in database {dbname}")
    changes = {name: "Present"}

    def work() -> Outcome:
        try:
            ctx.call("postgres.schema_create", dbname, name, owner=owner, **to)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to create schema {name} in database {dbname} ({error})", ok=False)
        return Outcome(f"Schema {name} has been created in database {dbname}", changes)

    would = f"Schema {name} is set to be created in database {dbname}."
    return Plan.change(would, [Step(f"create schema {name}", work)], changes)


def absent(
    ctx: Context,
    dbname: str,
    name: str,
    user: str | None = None,
    db_user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
) -> Plan:
    """Remove a schema from a PostgreSQL database. The state fails if the schema contains objects."""
    to = {"user": user, "db_user": db_user, "db_password": db_password, "db_host": db_host, "db_port": db_port}
    try:
        existing = ctx.call("postgres.schema_exists", dbname, name, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged(f"Schema {name} is not present in database {dbname}, so it cannot be removed")
    changes = {name: "Absent"}

    def work() -> Outcome:
        try:
            ctx.call("postgres.schema_remove", dbname, name, **to)
        except CommandError as error:
            return Outcome(f"Schema {name} failed to be removed ({error})", ok=False)
        return Outcome(f"Schema {name} has been removed from database {dbname}", changes)

    would = f"Schema {name} is set to be removed from database {dbname}"
    return Plan.change(would, [Step(f"remove schema {name}", work)], changes)

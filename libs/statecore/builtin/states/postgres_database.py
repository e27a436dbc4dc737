"""Salt's ``postgres_database`` states: databases of PostgreSQL."""

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
    name: str,
    tablespace: str | None = None,
    encoding: str | None = None,
    lc_collate: str | None = None,
    lc_ctype: str | None = None,
    owner: str | None = None,
    owner_recurse: bool = False,
    template: str | None = None,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Create a database of PostgreSQL, or change its owner and tablespace. Other differences cannot be changed and fail
    the state.

    encoding, lc_collate, lc_ctype, template
        used only for a new database
    owner_recurse
        True: a new owner also gets all objects of the database
    user
        system user that runs psql
    db_user, db_password, db_host, db_port, maintenance_db
        connection to the server
    """
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    try:
        existing = ctx.call("postgres.db_list", **to).get(name)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    fixed = {"encoding": encoding, "lc_collate": lc_collate, "lc_ctype": lc_ctype}
    if existing is None:
        made = {"tablespace": tablespace, **fixed, "owner": owner, "template": template}

        def create() -> Outcome:
            try:
                ctx.call("postgres.db_create", name, **made, **to)
            except (CommandError, InvocationError) as error:
                return Outcome(f"Failed to create database {name} ({error})", ok=False)
            return Outcome(f"The database {name} has been created", {name: "Present"})

        step = Step(f"create database {name}", create)
        return Plan.change(f"Database {name} is set to be created", [step], {name: "Present"})
    kept = {"encoding": existing["Encoding"], "lc_collate": existing["Collate"], "lc_ctype": existing["Ctype"]}
    if any(value and not _same(each, value, kept[each]) for each, value in fixed.items()):
        return Plan.failed(f"Database {name} has wrong parameters which couldn't be changed on fly.")
    other = {
        "tablespace": tablespace if tablespace and tablespace != existing["Tablespace"] else None,
        "owner": owner if owner and owner != existing["Owner"] else None,
    }
    if not any(other.values()):
        return Plan.unchanged(f"Database {name} is already present")
    changes = {name: "Parameters changed"}

    def alter() -> Outcome:
        try:
            ctx.call("postgres.db_alter", name, **other, owner_recurse=owner_recurse, **to)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to change parameters for database {name} ({error})", ok=False)
        return Outcome(f"Parameters for database {name} have been changed", changes)

    would = f"Database {name} exists, but parameters need to be changed"
    return Plan.change(would, [Step(f"alter database {name}", alter)], changes)


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
    """Remove a database of PostgreSQL, and close its connections. Nothing happens if it does not exist."""
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    try:
        existing = ctx.call("postgres.db_exists", name, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged(f"Database {name} is not present, so it cannot be removed")
    changes = {name: "Absent"}

    def remove() -> Outcome:
        try:
            ctx.call("postgres.db_remove", name, **to)
        except CommandError as error:
            return Outcome(f"Database {name} failed to be removed ({error})", ok=False)
        return Outcome(f"Database {name} has been removed", changes)

    return Plan.change(f"Database {name} is set to be removed", [Step(f"remove database {name}", remove)], changes)


def _same(what: str, wanted: str, existing: str) -> bool:
    return wanted.lower() == existing.lower() if what == "encoding" else wanted == existing

"""Salt's ``postgres_extension`` states: extensions of a PostgreSQL database."""

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
    if_not_exists: bool | None = None,
    schema: str | None = None,
    ext_version: str | None = None,
    from_version: str | None = None,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Install an extension in the database ``maintenance_db``, or upgrade it to ``ext_version``.

    schema
        schema of the extension's objects
    """
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    try:
        metadata = ctx.call("postgres.create_metadata", name, schema=schema, ext_version=ext_version, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if metadata == ["EXTENSION INSTALLED"]:
        return Plan.unchanged(f"Extension {name} is already present")
    verb, done = ("install", "installed") if "EXTENSION NOT INSTALLED" in metadata else ("upgrade", "upgraded")
    changes = {name: done.capitalize()}

    def work() -> Outcome:
        try:
            ctx.call(
                "postgres.create_extension",
                name,
                if_not_exists=if_not_exists,
                schema=schema,
                ext_version=ext_version,
                from_version=from_version,
                **to,
            )
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to {verb} extension {name} ({error})", ok=False)
        return Outcome(f"The extension {name} has been {done}", changes)

    return Plan.change(f"Extension {name} is set to be {done}", [Step(f"{verb} extension {name}", work)], changes)


def absent(
    ctx: Context,
    name: str,
    if_exists: bool | None = None,
    restrict: bool | None = None,
    cascade: bool | None = None,
    user: str | None = None,
    maintenance_db: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Remove an extension from a PostgreSQL database, with all objects that depend on it.

    ``restrict`` or ``cascade: False``: fail if there are such objects.
    """
    to = roles.connection(user, maintenance_db, db_password, db_host, db_port, db_user)
    try:
        existing = ctx.call("postgres.is_installed_extension", name, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged(f"Extension {name} is not present, so it cannot be removed")
    changes = {name: "Absent"}

    def work() -> Outcome:
        try:
            ctx.call("postgres.drop_extension", name, if_exists=if_exists, restrict=restrict, cascade=cascade, **to)
        except CommandError as error:
            return Outcome(f"Extension {name} failed to be removed ({error})", ok=False)
        return Outcome(f"Extension {name} has been removed", changes)

    return Plan.change(f"Extension {name} is set to be removed", [Step(f"remove extension {name}", work)], changes)

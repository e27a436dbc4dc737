"""Salt's ``postgres_language`` states: procedural languages of a PostgreSQL database."""

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
    maintenance_db: str,
    user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Install a procedural language in the database ``maintenance_db``, unless it is installed."""
    to = {"runas": user, "host": db_host, "user": db_user, "port": db_port, "password": db_password}
    try:
        existing = ctx.call("postgres.language_exists", name, maintenance_db, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if existing:
        return Plan.unchanged(f"Language {name} is already installed")
    changes = {name: "Present"}

    def install() -> Outcome:
        try:
            ctx.call("postgres.language_create", name, maintenance_db, **to)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to install language {name} ({error})", ok=False)
        return Outcome(f"Language {name} has been installed", changes)

    return Plan.change(f"Language {name} is set to be installed", [Step(f"install language {name}", install)], changes)


def absent(
    ctx: Context,
    name: str,
    maintenance_db: str,
    user: str | None = None,
    db_password: str | None = None,
    db_host: str | None = None,
    db_port: object = None,
    db_user: str | None = None,
) -> Plan:
    """Remove a procedural language from the database ``maintenance_db``.

    The state fails if functions use the language.
    """
    to = {"runas": user, "host": db_host, "user": db_user, "port": db_port, "password": db_password}
    try:
        existing = ctx.call("postgres.language_exists", name, maintenance_db, **to)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged(f"Language {name} is not present so it cannot be removed")
    changes = {name: "Absent"}

    def remove() -> Outcome:
        try:
            ctx.call("postgres.language_remove", name, maintenance_db, **to)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to remove language {name} ({error})", ok=False)
        return Outcome(f"Language {name} has been removed", changes)

    return Plan.change(f"Language {name} is set to be removed", [Step(f"remove language {name}", remove)], changes)

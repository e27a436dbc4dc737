"""Salt's ``mysql_database`` states: databases of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import mysql

#: Function -> arguments that its ``**connection_args`` takes.
OPTIONS: Mapping[str, frozenset[str]] = dict.fromkeys(("absent",), mysql.CONNECTION_ARGUMENTS)


def available(ctx: Context) -> str | None:
    """Return None if the ``mysql`` execution module is available, else the reason as text."""
    try:
        ctx.functions["mysql.query"]
    except NotAvailable as missing:
        return str(missing)
    return None


def present(
    ctx: Context, name: str, character_set: str | None = None, collate: str | None = None, **connection_args: object
) -> Plan:
    """Create a database of MySQL, or change its character set and collation.

    Connection arguments are as in the ``mysql`` module.
    """
    try:
        existing = ctx.call("mysql.db_get", name, **connection_args)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    wanted = {"character_set": character_set, "collate": collate}
    if not existing:
        change = {name: "Present"}

        def create() -> Outcome:
            if not ctx.call("mysql.db_create", name, **wanted, **connection_args):
                return Outcome(f"Database {name} is already present")
            return Outcome(f"The database {name} has been created", change)

        would = f"Database {name} is not present and needs to be created"
        return Plan.change(would, [Step(f"create database {name}", create)], change)
    different = {key: value for key, value in wanted.items() if value and value.lower() != existing[key].lower()}
    if not different:
        return Plan.unchanged(f"Database {name} is already present")
    words = {"character_set": "character set", "collate": "collate"}
    lines = [
        f"Database {words[key]} {value} != {existing[key]} needs to be updated" for key, value in different.items()
    ]
    changes = {key: {"before": existing[key], "now": value} for key, value in different.items()}

    def alter() -> Outcome:
        # Changing only the character set also sets its default collation.
        ctx.call("mysql.alter_db", name, **(wanted if character_set else {"collate": collate}), **connection_args)
        now = ctx.call("mysql.db_get", name, **connection_args)
        done = {key: {"before": existing[key], "now": now[key]} for key in now if now[key] != existing[key]}
        return Outcome("\n".join(lines), done)

    return Plan.change(
        "\n".join([*lines, f"Database {name} is going to be updated"]), [Step(f"alter database {name}", alter)], changes
    )


def absent(ctx: Context, name: str, **connection_args: object) -> Plan:
    """Remove a database of MySQL. Nothing happens if it does not exist."""
    try:
        existing = ctx.call("mysql.db_exists", name, **connection_args)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged(f"Database {name} is not present, so it cannot be removed")
    changes = {name: "Absent"}

    def remove() -> Outcome:
        try:
            ctx.call("mysql.db_remove", name, **connection_args)
        except CommandError as error:
            return Outcome(f"Unable to remove database {name} ({error})", ok=False)
        return Outcome(f"Database {name} has been removed", changes)

    would = f"Database {name} is present and needs to be removed"
    return Plan.change(would, [Step(f"remove database {name}", remove)], changes)

"""Salt's ``mysql_grants`` states: privileges of accounts of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import mysql

#: Function -> arguments that its ``**connection_args`` takes.
OPTIONS: Mapping[str, frozenset[str]] = dict.fromkeys(("present", "absent"), mysql.CONNECTION_ARGUMENTS)


def available(ctx: Context) -> str | None:
    """Return None if the ``mysql`` execution module is available, else the reason as text."""
    try:
        ctx.functions["mysql.query"]
    except NotAvailable as missing:
        return str(missing)
    return None


def present(
    ctx: Context,
    name: str,
    grant: str | None = None,
    database: str | None = None,
    user: str | None = None,
    host: str = "localhost",
    grant_option: bool = False,
    escape: bool = True,
    revoke_first: bool = False,
    ssl_option: object = False,
    **connection_args: object,
) -> Plan:
    """Grant privileges to the MySQL account ``user``@``host``. Nothing happens if the account has them.

    grant
        privileges, such as ``SELECT,INSERT (column)`` or ``ALL``
    database
        ``database.table``, ``database.*`` or ``*.*``
    grant_option
        True: the account may grant these privileges to others
    escape
        False: the database name is a pattern
    revoke_first
        True: revoke all other privileges on this object first
    ssl_option
        requirements for the connection: ``[{'SSL': True}, {'CIPHER': '…'}]``
    """
    try:
        what = _need(grant, database, user)
        if ctx.call("mysql.grant_exists", *what, host, grant_option, escape, **connection_args):
            return Plan.unchanged(f"Grant {grant} on {database} to {user}@{host} is already present")
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    changes = {name: "Present"}

    def add() -> Outcome:
        try:
            if revoke_first:
                _revoke_all(ctx, what[1:], host, escape, connection_args)
            given = ctx.call("mysql.grant_add", *what, host, grant_option, escape, ssl_option, **connection_args)
            why = "" if given else " (the server does not show it afterwards)"
        except (CommandError, InvocationError) as error:
            given, why = False, f" ({error})"
        if not given:
            return Outcome(f'Failed to execute: "GRANT {grant} ON {database} TO {user}@{host}"{why}', ok=False)
        return Outcome(f"Grant {grant} on {database} to {user}@{host} has been added", changes)

    return Plan.change(f"MySQL grant {name} is set to be created", [Step(f"grant {name}", add)], changes)


def absent(
    ctx: Context,
    name: str,
    grant: str | None = None,
    database: str | None = None,
    user: str | None = None,
    host: str = "localhost",
    grant_option: bool = False,
    escape: bool = True,
    **connection_args: object,
) -> Plan:
    """Revoke privileges from the MySQL account ``user``@``host``. Arguments as in ``mysql_grants.present``."""
    shown = f"grant {grant} on {database} for {user}@{host}"
    try:
        what = _need(grant, database, user)
        existing = ctx.call("mysql.grant_exists", *what, host, grant_option, escape, **connection_args)
    except InvocationError as error:
        return Plan.failed(str(error))
    except CommandError as error:
        return Plan.failed(f"Unable to determine if {shown} exists ({error})")
    if not existing:
        return Plan.unchanged(f"Grant {grant} on {database} to {user}@{host} is not present, so it cannot be revoked")
    changes = {name: "Absent"}

    def revoke() -> Outcome:
        try:
            ctx.call("mysql.grant_revoke", *what, host, grant_option, escape, **connection_args)
        except CommandError as error:
            return Outcome(f"Unable to revoke {shown} ({error})", ok=False)
        return Outcome(f"Grant {grant} on {database} for {user}@{host} has been revoked", changes)

    return Plan.change(f"MySQL grant {name} is set to be revoked", [Step(f"revoke {name}", revoke)], changes)


def _revoke_all(
    ctx: Context, what: tuple[str, str], host: str, escape: bool, connection_args: dict[str, object]
) -> None:
    try:
        ctx.call("mysql.grant_revoke", "ALL", *what, host, False, escape, **connection_args)
    except CommandError as error:
        # Error 1141: the account has no privileges to revoke.
        if not str(error).startswith("MySQL Error 1141"):
            raise


def _need(grant: object, database: object, user: object) -> tuple[str, str, str]:
    for argument, value in (("grant", grant), ("database", database), ("user", user)):
        if not value:
            raise InvocationError(f"{argument} is required: give grant, database and user")
    return str(grant), str(database), str(user)

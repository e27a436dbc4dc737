"""Salt's ``mysql_user`` states: accounts of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import mysql

_NATIVE = "mysql_native_password"

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
    host: str = "localhost",
    password: str | None = None,
    password_hash: str | None = None,
    allow_passwordless: bool = False,
    unix_socket: bool = False,
    password_column: str | None = None,
    auth_plugin: str = _NATIVE,
    **connection_args: object,
) -> Plan:
    """Create the MySQL account ``name``@``host``, or change its password.

    password, password_hash
        password, or its hash
    allow_passwordless, unix_socket
        True: an account without password; log in by the Unix socket's user
    password_column
        no effect: only servers that are no longer supported need it
    auth_plugin
        authentication plugin of the server
    """
    bare = not (password or password_hash)
    if bare and not (allow_passwordless or unix_socket):
        return Plan.failed("Either password or password_hash must be specified, unless allow_passwordless is True")
    # YAML may have read the password as a number.
    login = {
        "password": None if password is None else str(password),
        "password_hash": password_hash,
        "unix_socket": unix_socket,
        "auth_plugin": auth_plugin,
    }
    try:
        right = ctx.call("mysql.user_exists", name, host, passwordless=bare, **login, **connection_args)
        existing = right or ctx.call("mysql.user_exists", name, host, **connection_args)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if right:
        return Plan.unchanged(f"User {name}@{host} is already present{_as_wanted(bare, allow_passwordless, login)}")
    changes = {name: "Updated" if existing else "Present"}
    login |= {"allow_passwordless": allow_passwordless}
    if existing:
        return Plan.change(
            f"Password for user {name}@{host} is set to be {'cleared' if bare else 'changed'}",
            [
                Step(
                    f"change the password of {name}@{host}",
                    lambda: _change(ctx, name, host, login, connection_args, bare),
                )
            ],
            changes,
        )
    how = (" with passwordless login" if allow_passwordless else "") + (" using unix_socket" if unix_socket else "")

    def create() -> Outcome:
        try:
            ctx.call("mysql.user_create", name, host, **login, **connection_args)
        except (CommandError, InvocationError) as error:
            return Outcome(f"Failed to create user {name}@{host} ({error})", ok=False)
        return Outcome(f"The user {name}@{host} has been added{how}", changes)

    return Plan.change(f"User {name}@{host} is set to be added{how}", [Step(f"create {name}@{host}", create)], changes)


def absent(ctx: Context, name: str, host: str = "localhost", **connection_args: object) -> Plan:
    """Remove the account ``name``@``host`` of MySQL. Nothing happens if it does not exist."""
    try:
        existing = ctx.call("mysql.user_exists", name, host, **connection_args)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.unchanged(f"User {name}@{host} is not present, so it cannot be removed")
    changes = {name: "Absent"}

    def remove() -> Outcome:
        ctx.call("mysql.user_remove", name, host, **connection_args)
        return Outcome(f"User {name}@{host} has been removed", changes)

    return Plan.change(f"User {name}@{host} is set to be removed", [Step(f"remove {name}@{host}", remove)], changes)


def _as_wanted(bare: bool, allow_passwordless: bool, login: Mapping[str, object]) -> str:
    if bare:
        return " with passwordless login" if allow_passwordless else ""
    if login["auth_plugin"] != _NATIVE:
        return ". Unable to verify password."
    return " with the desired password" + (" hash" if not login["password"] else "")


def _change(
    ctx: Context, name: str, host: str, login: Mapping[str, object], connection_args: dict[str, object], bare: bool
) -> Outcome:
    try:
        ctx.call("mysql.user_chpass", name, host, **login, **connection_args)
    except (CommandError, InvocationError) as error:
        verb = "clear" if bare else "change"
        return Outcome(f"Failed to {verb} password for user {name}@{host} ({error})", ok=False)
    done = "cleared" if bare else "changed"
    return Outcome(f"Password for user {name}@{host} has been {done}", {name: "Updated"})

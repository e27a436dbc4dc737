"""Functions of the ``mysql`` module for the accounts of a MySQL server.

Passwords for the plugin mysql_native_password are hashed by the minion, so that the plain password is neither sent nor
logged.
"""

from __future__ import annotations

import re
from typing import Any

from statecore.builtin.modules.mysql import client
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.databases import mysql

_NATIVE = "mysql_native_password"

#: The plugins that authenticate by the local user of a socket: MariaDB's and MySQL's.
_SOCKET = ("unix_socket", "auth_socket")


def user_list(ctx: Context, **connection_args: object) -> list[dict[str, str]]:
    """Return a list of maps with ``User`` and ``Host``, one for each account of the MySQL server."""
    rows = client.run_statement(ctx, connection_args, "SELECT User, Host FROM mysql.user ORDER BY User, Host")
    return [{"User": str(user), "Host": str(host)} for user, host in rows]


def user_exists(
    ctx: Context,
    user: str,
    host: str = "localhost",
    password: str | None = None,
    password_hash: str | None = None,
    passwordless: bool = False,
    unix_socket: bool = False,
    password_column: str | None = None,
    auth_plugin: str = _NATIVE,
    **connection_args: object,
) -> bool:
    """Return whether a MySQL account exists and has this password, this password hash, or (``passwordless``) no
    password.

    Passwords of plugins other than mysql_native_password cannot be verified: only the plugin's name is compared.

    unix_socket
        True, with ``passwordless``: the account has to authenticate by its socket
    password_column
        accepted, without effect

    CLI Example:

        salt '*' mysql.user_exists frank localhost password=secret
    """
    found = _found(ctx, user, host, connection_args)
    if found is None:
        return False
    plugin, kept = found
    if passwordless:
        return plugin in _SOCKET if unix_socket else plugin in ("", _NATIVE) and not kept
    wanted = mysql.native_hash(str(password)) if password else password_hash
    if not wanted or auth_plugin != _NATIVE:
        return not wanted or plugin == auth_plugin
    return plugin in ("", _NATIVE) and kept.upper() == str(wanted).upper()


def user_create(
    ctx: Context,
    user: str,
    host: str = "localhost",
    password: str | None = None,
    password_hash: str | None = None,
    allow_passwordless: bool = False,
    unix_socket: bool = False,
    password_column: str | None = None,
    auth_plugin: str = _NATIVE,
    **connection_args: Any,
) -> bool:
    """Create a MySQL account. Return True; False if it exists. Raise CommandError if the server refuses.

    allow_passwordless
        True: the account may be created without a password
    unix_socket
        True: the account authenticates by its socket; only for the host ``localhost``

    CLI Example:

        salt '*' mysql.user_create frank localhost secret
    """
    if user_exists(ctx, user, host, **connection_args):
        return False
    known = _identified(
        ctx, host, password, password_hash, allow_passwordless, unix_socket, auth_plugin, connection_args
    )
    _say(ctx, f"CREATE USER {mysql.account(user, host)}{known}", password, password_hash, connection_args)
    return True


def user_chpass(
    ctx: Context,
    user: str,
    host: str = "localhost",
    password: str | None = None,
    password_hash: str | None = None,
    allow_passwordless: bool = False,
    unix_socket: bool = False,
    password_column: str | None = None,
    auth_plugin: str | None = None,
    **connection_args: object,
) -> bool:
    """Set, or with ``allow_passwordless`` remove, the password of a MySQL account. Return True; False if the account
    does not exist. Raise CommandError if the server refuses.

    CLI Example:

        salt '*' mysql.user_chpass frank localhost newpassword
    """
    found = _found(ctx, user, host, connection_args)
    if found is None:
        return False
    plugin = auth_plugin or (found[0] if found[0] and found[0] not in _SOCKET else _NATIVE)
    known = _identified(ctx, host, password, password_hash, allow_passwordless, unix_socket, plugin, connection_args)
    change = known or " IDENTIFIED BY ''"
    _say(ctx, f"ALTER USER {mysql.account(user, host)}{change}", password, password_hash, connection_args)
    return True


def user_remove(ctx: Context, user: str, host: str = "localhost", **connection_args: Any) -> bool:
    """Drop a MySQL account. Return True; False if it does not exist. Raise CommandError if the server refuses."""
    if not user_exists(ctx, user, host, **connection_args):
        return False
    client.run_statement(ctx, connection_args, f"DROP USER {mysql.account(user, host)}")
    return True


def _found(ctx: Context, user: str, host: str, connection: dict[str, object]) -> tuple[str, str] | None:
    """Return (authentication plugin, stored password hash) of a MySQL account, None if the account does not exist."""
    asked = (
        "SELECT plugin, authentication_string FROM mysql.user"
        f" WHERE User = {mysql.literal(user)} AND Host = {mysql.literal(host)}"
    )
    rows = client.run_statement(ctx, connection, asked)
    return (rows[0][0] or "", rows[0][1] or "") if rows else None


def _identified(
    ctx: Context,
    host: str,
    password: str | None,
    password_hash: str | None,
    allow_passwordless: bool,
    unix_socket: bool,
    auth_plugin: str,
    connection: dict[str, object],
) -> str:
    """Return the IDENTIFIED clause of a CREATE USER or ALTER USER statement, "" for no password. Raise InvocationError
    for missing, invalid or conflicting arguments, CommandError if the server does not answer.
    """
    maria = "MariaDB" in str(client.run_statement(ctx, connection, "SELECT VERSION()")[0][0])
    if not (password or password_hash):
        if unix_socket:
            if host != "localhost":
                raise InvocationError(
                    "unix_socket: only an account with the host localhost can authenticate by its socket"
                )
            return f" IDENTIFIED {'VIA unix_socket' if maria else 'WITH auth_socket'}"
        if not allow_passwordless:
            raise InvocationError("password or password_hash must be specified, unless allow_passwordless=True")
        return ""
    plugin = mysql.word("auth_plugin", auth_plugin)
    if plugin == _NATIVE:
        kept = mysql.native_hash(str(password)) if password else str(password_hash)
        if not re.fullmatch(r"\*[0-9A-Fa-f]{40}", kept):
            raise InvocationError("password_hash is what PASSWORD() returns: * and 40 hexadecimal digits")
        return f" IDENTIFIED {'VIA' if maria else 'WITH'} {plugin} {'USING' if maria else 'AS'} {mysql.literal(kept)}"
    if password:
        secret = mysql.literal(password)
        return (
            f" IDENTIFIED VIA {plugin} USING PASSWORD({secret})" if maria else f" IDENTIFIED WITH {plugin} BY {secret}"
        )
    return (
        f" IDENTIFIED {'VIA' if maria else 'WITH'} {plugin} {'USING' if maria else 'AS'} {mysql.literal(password_hash)}"
    )


def _say(
    ctx: Context, statement: str, password: str | None, password_hash: str | None, connection: dict[str, object]
) -> None:
    hashed = mysql.native_hash(str(password)) if password else None
    secrets = [str(each) for each in (password, password_hash, hashed) if each]
    try:
        client.run_statement(ctx, connection, statement, secrets=secrets)
    except CommandError as error:
        # The chained error would show a part of the statement, which may hold the password.
        raise CommandError(str(error)) from None

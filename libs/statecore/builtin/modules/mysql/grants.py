"""Functions of the ``mysql`` module for the privileges of MySQL accounts."""

from __future__ import annotations

from typing import Any, Literal

from statecore.builtin.modules.mysql import client
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.databases import mysql
from statecore.system.databases.mysql import Grant

#: Error of an account that has no grants or does not exist.
_NO_GRANTS = "MySQL Error 1141"

#: Requirement of ``ssl_option`` -> whether it takes a value.
_SSL = {"SSL": False, "X509": False, "CIPHER": True, "ISSUER": True, "SUBJECT": True}


def user_grants(
    ctx: Context, user: str, host: str = "localhost", **connection_args: object
) -> list[str] | Literal[False]:
    """Return the lines of SHOW GRANTS for a MySQL account, without passwords. Return False if the account does not
    exist.

    CLI Example:

        salt '*' mysql.user_grants frank localhost
    """
    try:
        rows = client.run_statement(ctx, connection_args, f"SHOW GRANTS FOR {mysql.account(user, host)}")
    except CommandError as error:
        if str(error).startswith(_NO_GRANTS):
            return False
        raise
    return [_without_password(str(row[0])) for row in rows]


def grant_exists(
    ctx: Context,
    grant: str,
    database: str,
    user: str,
    host: str = "localhost",
    grant_option: bool = False,
    escape: bool = True,
    **connection_args: Any,
) -> bool:
    """Return whether a MySQL account has all the privileges ``grant`` on a database or table.

    CLI Example:

        salt '*' mysql.grant_exists 'SELECT,INSERT,UPDATE' 'database.*' 'frank' 'localhost'
    """
    name, table, _ = mysql.granted_object(database, escape=escape)
    wanted = Grant(mysql.privileges(grant), name, table, bool(grant_option))
    lines = user_grants(ctx, user, host, **connection_args)
    if not lines:
        return False
    every: list[str] = []
    if (mysql.ALL, "") in wanted.privileges and (name, table) == ("*", "*"):
        # MySQL 8 shows all privileges by their names.
        rows = client.run_statement(ctx, connection_args, "SHOW PRIVILEGES")
        every = [str(row[0]).upper() for row in rows if str(row[0]).upper() not in ("GRANT OPTION", "PROXY", "USAGE")]
    return mysql.grants_cover(lines, wanted, every)


def grant_add(
    ctx: Context,
    grant: str,
    database: str,
    user: str,
    host: str = "localhost",
    grant_option: bool = False,
    escape: bool = True,
    ssl_option: object = False,
    **connection_args: object,
) -> bool:
    """Grant privileges to a MySQL account. Return whether the account then has them. Raise CommandError if the server
    refuses.

    ssl_option
        a list of requirements, such as ``[{SSL: True}, {CIPHER: name}]``

    CLI Example:

        salt '*' mysql.grant_add 'SELECT,INSERT,UPDATE' 'database.*' 'frank' 'localhost'
    """
    *_, target = mysql.granted_object(database, escape=escape)
    listed = mysql.written(mysql.privileges(grant))
    option = " WITH GRANT OPTION" if grant_option else ""
    account = mysql.account(user, host)
    client.run_statement(
        ctx, connection_args, f"GRANT {listed} ON {target} TO {account}{_required(ssl_option)}{option}"
    )
    return grant_exists(ctx, grant, database, user, host, grant_option, escape, **connection_args)


def grant_revoke(
    ctx: Context,
    grant: str,
    database: str,
    user: str,
    host: str = "localhost",
    grant_option: bool = False,
    escape: bool = True,
    **connection_args: object,
) -> bool:
    """Revoke privileges of a MySQL account. Return whether the account no longer has them. Raise CommandError if the
    server refuses.
    """
    *_, target = mysql.granted_object(database, escape=escape)
    listed = mysql.written(mysql.privileges(grant)) + (", GRANT OPTION" if grant_option else "")
    client.run_statement(ctx, connection_args, f"REVOKE {listed} ON {target} FROM {mysql.account(user, host)}")
    return not grant_exists(ctx, grant, database, user, host, False, escape, **connection_args)


def _required(options: object) -> str:
    """Return the REQUIRE clause of a GRANT statement for options such as ``[{'SSL': True}, {'CIPHER': '...'}]``, "" for
    none. Raise InvocationError for an unknown option.
    """
    if not options:
        return ""
    found = []
    for each in options if isinstance(options, list) else [options]:
        if not isinstance(each, dict):
            raise InvocationError(f"ssl_option is a list of maps, not {options!r}")
        for name, value in each.items():
            key = str(name).strip().upper()
            if key not in _SSL:
                raise InvocationError(f"Invalid SSL option : '{name}'")
            if value:
                found.append(f"{key} {mysql.literal(value)}" if _SSL[key] else key)
    return f" REQUIRE {' AND '.join(found)}" if found else ""


def _without_password(line: str) -> str:
    bare, identified, rest = line.partition(" IDENTIFIED ")
    return bare + (" WITH GRANT OPTION" if identified and "WITH GRANT OPTION" in rest else "")

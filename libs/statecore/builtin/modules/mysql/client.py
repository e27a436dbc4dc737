"""Calls of the MySQL client program: connection options, statements, and the rows of its XML output."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.databases import mysql

#: Connection argument -> (last part of Salt's option ``mysql.*``, option of the client program).
_CONNECTION: Mapping[str, tuple[str, str]] = {
    "connection_host": ("host", "host"),
    "connection_port": ("port", "port"),
    "connection_user": ("user", "user"),
    "connection_pass": ("pass", "password"),
    "connection_db": ("db", "database"),
    "connection_unix_socket": ("unix_socket", "socket"),
    "connection_charset": ("charset", "default-character-set"),
}

_FILE = ("connection_default_file", "connection_default_group")

#: Arguments that only make sense for the Python driver that Salt uses.
_REFUSED = ("connection_conv", "connection_use_unicode", "client_flags")

#: Seconds after which the client program is stopped.
_TIMEOUT = 300.0

_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"

_ERROR = re.compile(r"ERROR (\d+)(?: \(\w+\))?(?: at line \d+)?(?: in file: '[^']*')?: (.*)", re.DOTALL)

Row = Sequence[str | None]


def need_connection(given: Mapping[str, object]) -> None:
    """Raise InvocationError if ``given`` has an argument that is not a MySQL connection argument, or that the client
    program does not support.
    """
    known = {*_CONNECTION, *_FILE}
    plain = [name for name in given if not name.startswith("__")]
    if refused := [name for name in plain if name in _REFUSED and given[name]]:
        raise InvocationError(f"not supported: {', '.join(refused)}")
    if unknown := sorted(name for name in plain if name not in known and name not in _REFUSED):
        raise InvocationError(
            f"mysql takes no argument {', '.join(unknown)}; connection arguments are {', '.join(sorted(known))}"
        )


def run_statement(
    ctx: Context, given: Mapping[str, object], statement: str, *, secrets: Sequence[str | None] = ()
) -> list[Row]:
    """Run one SQL statement on the MySQL server and return its rows: each a sequence of texts, in which NULL is None.
    Values in the statement must be quoted by ``databases.mysql``.

    ``secrets`` are values to hide in errors. Raise CommandError with the server's reason.
    """
    tables = run_statements(ctx, given, mysql.PREAMBLE + statement + ";\n", secrets=secrets)
    return [] if not tables else tables[-1][1]


def run_statements(
    ctx: Context, given: Mapping[str, object], text: str, *, secrets: Sequence[str | None] = ()
) -> list[tuple[list[str], list[Row]]]:
    """Run SQL text on the MySQL server and return (column names, rows) of each statement that returns rows. A row is a
    sequence of texts, in which NULL is None. Raise CommandError with the server's message.

    ``secrets`` are values to hide in that message.
    """
    need_connection(given)
    program = "mariadb" if ctx.host.which("mariadb") else "mysql"
    name = f"/tmp/.saltern-mysql-{os.urandom(8).hex()}.cnf"
    real_path = ctx.host.path(name)
    settings, hidden = _settings(ctx, given)
    managed_file.replace(ctx.host, real_path, settings.encode(), Attributes(mode=0o600))
    try:
        done = ctx.host.run(
            [program, f"--defaults-file={name}", "--xml", "--binary-mode"], stdin=text, timeout=_TIMEOUT
        )
    finally:
        real_path.unlink(missing_ok=True)
    if done.retcode or done.timed_out:
        reason = (
            f"{program} was stopped after {_TIMEOUT:g} seconds"
            if done.timed_out
            else done.stderr.strip() or f"{program} ended with {done.retcode}"
        )
        raise CommandError(_without(_reason(reason), (*secrets, *hidden)))
    return [_table(each) for each in done.stdout.split("<?xml ")[1:]]


def _settings(ctx: Context, given: Mapping[str, object]) -> tuple[str, list[str]]:
    """Return (content of an option file for the MySQL client, secret values in it)."""
    file, group = (_setting(ctx, given, name, name.removeprefix("connection_")) for name in _FILE)
    lines, secret = _of_file(ctx, str(file), str(group or "client")) if file else ([], None)
    for argument, (option, client) in _CONNECTION.items():
        # If the call names an option file, the minion's configuration is ignored. Salt: salt/modules/mysql.py.
        value = given.get(argument) if file else _setting(ctx, given, argument, option)
        if value in (None, ""):
            continue
        if any(each in str(value) for each in "\0\r\n"):
            raise InvocationError(f"{argument} must not contain a line break")
        lines.append(f"{client}={_quoted(str(value))}")
        secret = str(value) if client == "password" else secret
    return "\n".join(["[client]", *lines, ""]), [secret] if secret else []


def _setting(ctx: Context, given: Mapping[str, object], argument: str, option: str) -> object:
    return given[argument] if given.get(argument) is not None else ctx.call("config.option", f"mysql.{option}", None)


def _of_file(ctx: Context, name: str, group: str) -> tuple[list[str], str | None]:
    """Return (lines of one group of a MySQL option file, the password in them or None)."""
    data = managed_file.read(ctx.host.path(name), name)
    if data is None:
        raise CommandError(f"connection_default_file: there is no file {name}")
    reader = configparser.ConfigParser(
        allow_no_value=True, strict=False, interpolation=None, comment_prefixes=("#", ";", "!")
    )
    try:
        reader.read_string(data.decode("utf-8", "replace"))
    except configparser.Error as error:
        raise CommandError(f"connection_default_file: {name}: {lines_of(error.message)[0]}") from error
    rows = reader.items(group) if reader.has_section(group) else []
    lines = [name if value is None else f"{name}={value}" for name, value in rows]
    return lines, next((value.strip("'\"") for name, value in rows if name == "password" and value), None)


def _quoted(value: str) -> str:
    """Return a value quoted for a MySQL option file, in which backslashes escape and quotes protect blanks and
    ``#``.
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _reason(stderr: str) -> str:
    found = _ERROR.search(stderr)
    return f"MySQL Error {found[1]}: {found[2].strip()}" if found else stderr


def _without(text: str, secrets: Sequence[str | None]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***").replace(mysql.literal(secret)[1:-1], "***")
    return text


def _table(text: str) -> tuple[list[str], list[Row]]:
    try:
        rows = [list(row) for row in ElementTree.fromstring("<?xml " + text).iter("row")]
    except ElementTree.ParseError as error:
        raise CommandError(f"the server's answer contains bytes that are not text: {error}") from error
    columns = [str(field.get("name")) for field in rows[0]] if rows else []
    return columns, [[None if field.get(_NIL) == "true" else field.text or "" for field in row] for row in rows]

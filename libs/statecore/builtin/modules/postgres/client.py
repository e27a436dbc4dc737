"""Functions that run psql with connection arguments, and parse its results. Helpers of the ``postgres`` execution
module.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

#: Default of ``postgres.timeout``: seconds that a statement may take.
_TIMEOUT = 300.0

#: System user who may connect to a server on the host itself.
_OWNER = "postgres"

_ERROR = re.compile(r"^psql:(?:<stdin>:\d+: )?(?:error: )?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection arguments of a ``postgres`` function: user, host, port, maintenance_db, password, runas. None means
    the value of the minion's options.
    """

    user: str | None = None
    host: str | None = None
    port: object = None
    maintenance_db: str | None = None
    password: str | None = None
    runas: str | None = None


def rows(ctx: Context, to: Connection, query: str) -> list[dict[str, str]]:
    """Return the rows of an SQL query as maps of column to text, in which "" is NULL. Raise CommandError with the
    PostgreSQL server's message.
    """
    asked = f"SET datestyle = 'ISO, MDY';\nCOPY ({query}) TO STDOUT WITH CSV HEADER;\n"
    return list(csv.DictReader(io.StringIO(execute(ctx, to, asked), newline="")))


def execute(ctx: Context, to: Connection, text: str, *, secrets: Sequence[str | None] = ()) -> str:
    """Run SQL statements on the PostgreSQL server and return psql's output.

    Raise CommandError with the server's message, in which passwords and ``secrets`` are replaced by ``***``. Raises
    InvocationError for invalid connection arguments.
    """
    user, host, port, database = (
        given or ctx.call("config.option", f"postgres.{name}", None)
        for name, given in (
            ("user", to.user),
            ("host", to.host),
            ("port", to.port),
            ("maintenance_db", to.maintenance_db),
        )
    )
    password = to.password if to.password is not None else ctx.call("config.option", "postgres.pass", None)
    _need(user=user, host=host, port=port, maintenance_db=database, password=password, runas=to.runas)
    runas = to.runas or (_OWNER if not host or str(host).startswith("/") else None)
    command = [_psql(ctx), "--no-psqlrc", "--no-password", "--quiet", "--set", "ON_ERROR_STOP=1"]
    for option, value in (
        ("username", user or runas),
        ("host", host),
        ("port", port),
        ("dbname", database or "postgres"),
    ):
        command += [f"--{option}", str(value)] if value else []
    env, file = _password_file(ctx, password, runas)
    timeout = float(ctx.call("config.option", "postgres.timeout", None) or _TIMEOUT)
    try:
        done = ctx.host.run(command, stdin=text, runas=runas, env=env, timeout=timeout)
    finally:
        if file is not None:
            file.unlink(missing_ok=True)
    if done.retcode or done.timed_out:
        message = "no answer in time" if done.timed_out else done.stderr.strip() or f"psql ended with {done.retcode}"
        # The rest of the message quotes the statement.
        reason = _ERROR.sub("", message.split("\nLINE ")[0]).strip()
        raise CommandError(_without(reason, [*secrets, password]))
    return done.stdout


def _need(**given: object) -> None:
    for name, value in given.items():
        if value is not None and (
            isinstance(value, bool | list | Mapping) or any(each in str(value) for each in "\0\r\n")
        ):
            raise InvocationError(f"{name} of a PostgreSQL connection must be text in one line")
    if given["port"] and not str(given["port"]).isdecimal():
        raise InvocationError(f"port is a number, not {given['port']!r}")
    for name in ("user", "host", "maintenance_db"):
        # psql reads a database name with "=" as a connection string.
        if name == "maintenance_db" and given[name] and ("=" in str(given[name]) or "://" in str(given[name])):
            raise InvocationError(f"maintenance_db is a name, not {given[name]!r}")


def _psql(ctx: Context) -> str:
    directory = ctx.call("config.option", "postgres.bins_dir", None)
    return f"{str(directory).rstrip('/')}/psql" if directory else "psql"


def _password_file(ctx: Context, password: object, runas: str | None) -> tuple[dict[str, str], Path | None]:
    """Write a password into a file that psql reads. Return (environment variables for psql, file to remove afterwards);
    ({}, None) without a password.
    """
    if password in (None, ""):
        return {}, None
    name = f"/tmp/.saltern-postgres-{os.urandom(8).hex()}"
    real_path = ctx.host.path(name)
    escaped = str(password).replace("\\", "\\\\").replace(":", "\\:")
    owner = runas if runas is not None and os.geteuid() == 0 else None
    managed_file.replace(ctx.host, real_path, f"*:*:*:*:{escaped}\n".encode(), Attributes(owner, None, 0o600))
    return {"PGPASSFILE": name}, real_path


def _without(text: str, secrets: Sequence[object]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(str(secret), "***")
    return text

"""Salt's ``mysql_query`` states (until Salt 3007): SQL statements for MySQL and MariaDB.

Statements are sent in each run, unless ``overwrite`` is False and their result is already stored. Connection
arguments are as in the
``mysql`` module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import mysql

_GRAIN = "grain"

#: Function -> arguments that its ``**connection_args`` takes.
OPTIONS: Mapping[str, frozenset[str]] = dict.fromkeys(("run", "run_file"), mysql.CONNECTION_ARGUMENTS)


def available(ctx: Context) -> str | None:
    """Return None if the ``mysql`` execution module is available, else the reason as text."""
    try:
        ctx.functions["mysql.query"]
    except NotAvailable as missing:
        return str(missing)
    return None


def run(
    ctx: Context,
    name: str,
    database: str,
    query: str,
    output: str | None = None,
    grain: str | None = None,
    key: str | None = None,
    overwrite: bool = True,
    check_db_exists: bool = True,
    client_flags: list[str] | None = None,
    **connection_args: object,
) -> Plan:
    """Send one SQL statement to the MySQL server.

    output
        where to store the result: ``grain``, or the path of a file. Default: only in the comment.
    grain, key
        name of the grain, and key in it
    overwrite
        False: send nothing if the file, grain or key already exists
    check_db_exists
        True: fail if the database does not exist
    """
    connection = {**connection_args, "client_flags": client_flags}
    return _plan(
        ctx,
        database,
        lambda: ctx.call("mysql.query", database, query, **connection),
        _SavedResult(output, grain, key, overwrite),
        connection,
        checked=check_db_exists,
    )


def run_file(
    ctx: Context,
    name: str,
    database: str,
    query_file: str | None = None,
    output: str | None = None,
    grain: str | None = None,
    key: str | None = None,
    overwrite: bool = True,
    saltenv: str | None = None,
    check_db_exists: bool = True,
    client_flags: list[str] | None = None,
    **connection_args: object,
) -> Plan:
    """Send the SQL statements of a file to the MySQL server. The file is a path of the host, or a ``salt://`` URL.

    Other arguments as in ``mysql_query.run``.
    """
    if not query_file:
        return Plan.failed("query_file is required: the path or salt:// URL of the SQL file")
    try:
        existing = (
            bool(ctx.call("cp.cache_file", query_file, saltenv)) if _is_url(query_file) else _is_file(ctx, query_file)
        )
    except (CommandError, HostError) as error:
        return Plan.failed(str(error))
    if not existing:
        return Plan.failed(f"File {query_file} does not exist")
    connection = {**connection_args, "client_flags": client_flags}
    return _plan(
        ctx,
        database,
        lambda: ctx.call("mysql.file_query", database, query_file, saltenv=saltenv, **connection),
        _SavedResult(output, grain, key, overwrite),
        connection,
        checked=check_db_exists,
    )


# ------------------------------------------------------------------------------------------------------------------------ parts


@dataclass(frozen=True, slots=True)
class _SavedResult:
    """The place where a ``mysql_query`` state stores the result of its statement: a file, a grain, or only the comment."""

    output: str | None
    grain: str | None
    key: str | None
    overwrite: bool

    def where(self) -> str:
        """Return the name of the file or grain that stores the result, for comments; "" if the result is only in the
        comment.
        """
        if self.output == _GRAIN:
            return f"grain: {self.grain}" + (f":{self.key}" if self.key is not None else "")
        return f"file: {self.output}" if self.output is not None else ""


def _is_url(name: str) -> bool:
    return "://" in name


def _is_file(ctx: Context, name: str) -> bool:
    return ctx.host.path(name).is_file()


def _plan(
    ctx: Context,
    database: str,
    ask: Callable[[], dict[str, object]],
    kept: _SavedResult,
    connection: Mapping[str, object],
    *,
    checked: bool,
) -> Plan:
    if kept.output == _GRAIN and kept.grain is None:
        return Plan.failed("Error: output type 'grain' needs the grain parameter")
    try:
        missing = checked and not ctx.call("mysql.db_exists", database, **connection)
        known = not kept.overwrite and _is_known(ctx, kept)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if known:
        place = kept.where().partition(": ")[2]
        return Plan.unchanged(
            f"No execution needed. {'Grain' if kept.output == _GRAIN else 'File'} {place} already set"
        )
    if missing and not ctx.test:
        return Plan.failed(f"Database {database} is not present")
    where = kept.where()
    changes = {"query": f"Executed. Output into {where.removeprefix('file: ')}" if where else "Executed"}

    def send() -> Outcome:
        try:
            result = _mapped(ask())
            _keep(ctx, kept, result)
        except (CommandError, InvocationError, HostError) as error:
            return Outcome(str(error), ok=False)
        return Outcome(str(result), changes)

    would = f"Query would execute, {f'storing result in {where}' if where else 'not storing result'}"
    return Plan.change(
        f"Database {database} is not present" if missing else would, [Step(f"query {database}", send)], changes
    )


def _is_known(ctx: Context, kept: _SavedResult) -> bool:
    if kept.output is None:
        return False
    if kept.output != _GRAIN:
        return _is_file(ctx, kept.output)
    value = ctx.call("grains.get", kept.grain, None)
    return value is not None if kept.key is None else isinstance(value, Mapping) and kept.key in value


def _mapped(result: dict[str, Any]) -> dict[str, object]:
    """Return the result of ``mysql.query`` or ``mysql.file_query`` with its key ``results`` changed to one list of
    rows. Each row is a map of column to value. A result without that key is returned unchanged.
    """
    if "results" not in result:
        return result
    tables = [(result["columns"], result["results"])]
    if result["columns"] and isinstance(result["columns"][0], list):
        tables = list(zip(result["columns"], result["results"], strict=True))
    rows = [dict(zip(columns, row, strict=True)) for columns, table in tables for row in table]
    return {**result, "results": rows}


def _keep(ctx: Context, kept: _SavedResult, result: dict[str, Any]) -> None:
    if kept.output == _GRAIN:
        value: object = result
        if kept.key is not None:
            before = ctx.call("grains.get", kept.grain, None)
            value = {**(before if isinstance(before, Mapping) else {}), kept.key: result}
        ctx.call("grains.setval", kept.grain, value)
    elif kept.output is not None:
        rows = result.get("results", [result])
        text = "".join(f"{column}:{value}\n" for row in rows for column, value in row.items())
        managed_file.replace(ctx.host, ctx.host.path(kept.output), text.encode(), Attributes())

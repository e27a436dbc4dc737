"""Tables of jobs, returns and events in SQL databases, as the returners of Salt lay them out: ``jids``, ``salt_returns`` and
``salt_events``.

The returners pgjsonb, postgres and mysql have the same tables; a ``Dialect`` holds what differs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from statecore.system.return_json import as_json, plain

TABLES = ("jids", "salt_returns", "salt_events")

#: Name in a listing of jobs -> field of the load, and the value of a load without it.
_LISTED: Mapping[str, tuple[str, object]] = {
    "Function": ("fun", "unknown-function"),
    "Arguments": ("arg", []),
    "Target": ("tgt", "unknown-target"),
    "Target-type": ("tgt_type", "list"),
    "User": ("user", "root"),
}


class Cursor(Protocol):
    """A cursor of Python's database interface (PEP 249)."""

    def execute(self, statement: Any, values: Any = (), /) -> object:
        """Run one SQL statement with these arguments."""

    def fetchall(self) -> Sequence[Sequence[Any]]:
        """Return all rows of the last SQL statement as a sequence of tuples."""


class Connection(Protocol):
    """A connection of Python's database interface (PEP 249)."""

    def cursor(self) -> Any:
        """Return a new Cursor, which runs SQL statements over this connection."""

    def commit(self) -> None:
        """Make the changes of the current database transaction permanent."""

    def close(self) -> None:
        """Close the database connection; changes that are not committed are lost."""


@dataclass(frozen=True)
class Dialect:
    """The differences between the SQL databases of the returners pgjsonb, postgres and mysql: quotation marks, parts
    of statements, and the conversion of columns that hold JSON.
    """

    #: Quotation mark of names of columns.
    quote: str
    #: End of the statement that stores a load, for a JID that is stored already.
    on_known: str
    #: Statement that creates the archive of a table; {0} is the table's name.
    archive: str
    #: Converts a value for a column that holds JSON.
    to_column: Callable[[object], object] = as_json
    #: Converts the value of a column that holds JSON.
    of_column: Callable[[Any], Any] = json.loads


@dataclass(frozen=True)
class JobTables:
    """The tables of jobs, returns and events in one SQL database. Each method opens a connection, runs one transaction
    and closes the connection.

    The methods raise the errors of the database's driver.
    """

    dialect: Dialect
    connect: Callable[[], Connection]

    def store_return(self, ret: Mapping[str, object]) -> None:
        """Add a minion's return of a job to the SQL table ``salt_returns``."""
        column = self.dialect.to_column
        row = {
            "fun": fun_of(ret),
            "jid": ret["jid"],
            "return": column(ret.get("return")),
            "id": ret["id"],
            "success": bool(ret.get("success")),
            "full_ret": column(ret),
        }
        with self._transaction() as cursor:
            self._insert(cursor, "salt_returns", row)

    def store_events(self, events: Sequence[Mapping[str, object]], master: str) -> None:
        """Add events, each a map of ``tag`` and ``data``, to the SQL table ``salt_events``, all or none. ``master`` is
        the master's id.
        """
        with self._transaction() as cursor:
            for event in events:
                row = {"tag": event.get("tag", ""), "data": self.dialect.to_column(event.get("data", ""))}
                self._insert(cursor, "salt_events", {**row, "master_id": master})

    def store_load(self, jid: str, load: Mapping[str, object]) -> None:
        """Add the load of a job to the table ``jids``. If its JID is stored already, the database's Dialect
        (``on_known``) decides if the load is replaced.
        """
        with self._transaction() as cursor:
            self._insert(cursor, "jids", {"jid": jid, "load": self.dialect.to_column(load)}, self.dialect.on_known)

    def load(self, jid: str) -> dict[str, Any]:
        """Return the load of a job from the SQL table ``jids``; {} for an unknown JID."""
        rows = self._rows(f"SELECT {self._name('load')} FROM jids WHERE jid = %s", jid)
        return dict(self.dialect.of_column(rows[0][0])) if rows else {}

    def returns(self, jid: str) -> dict[str, Any]:
        """Return {minion id: return} of a job from the SQL table ``salt_returns``, each return as the minion sent it."""
        rows = self._rows("SELECT id, full_ret FROM salt_returns WHERE jid = %s", jid)
        return {str(minion): self.dialect.of_column(ret) for minion, ret in rows}

    def last_returns(self, fun: str) -> dict[str, Any]:
        """Return {minion id: newest return of the execution function ``fun``} from the SQL table ``salt_returns``."""
        rows = self._rows("SELECT id, full_ret FROM salt_returns WHERE fun = %s ORDER BY alter_time, jid", fun)
        return {str(minion): self.dialect.of_column(ret) for minion, ret in rows}

    def jobs(self) -> dict[str, dict[str, object]]:
        """Return {JID: job} of all jobs in the SQL table ``jids``. A job is a map with Function, Arguments, Target,
        Target-type, User and StartTime.
        """
        rows = self._rows(f"SELECT jid, {self._name('load')} FROM jids")
        return {str(jid): listed(str(jid), self.dialect.of_column(load)) for jid, load in rows}

    def minions(self) -> list[str]:
        """Return the ids of all minions that have a return in the SQL table ``salt_returns``."""
        return [str(row[0]) for row in self._rows("SELECT DISTINCT id FROM salt_returns ORDER BY id")]

    def expire(self, seconds: int, *, archive: bool) -> None:
        """Delete jobs, returns and events older than ``seconds``. A job is kept as long as one of its returns is young.

        With ``archive`` they are first copied to the tables ``jids_archive``, ``salt_returns_archive`` and
        ``salt_events_archive``, which are created if they are missing.
        """
        old = f"alter_time < CURRENT_TIMESTAMP - INTERVAL '{int(seconds)}' SECOND"
        returned = "SELECT jid FROM salt_returns"
        # In this order: which jobs are old follows from the returns.
        conditions = {
            "jids": f"jid IN ({returned}) AND jid NOT IN ({returned} WHERE NOT ({old}))",
            "salt_returns": old,
            "salt_events": old,
        }
        with self._transaction() as cursor:
            if archive:
                for table in TABLES:
                    cursor.execute(self.dialect.archive.format(table))
            for table, condition in conditions.items():
                if archive:
                    cursor.execute(f"INSERT INTO {table}_archive SELECT * FROM {table} WHERE {condition}")
                cursor.execute(f"DELETE FROM {table} WHERE {condition}")

    def _insert(self, cursor: Cursor, table: str, row: Mapping[str, object], end: str = "") -> None:
        names = ", ".join(map(self._name, row))
        marks = ", ".join(["%s"] * len(row))
        cursor.execute(f"INSERT INTO {table} ({names}) VALUES ({marks}) {end}", tuple(row.values()))

    def _rows(self, statement: str, *values: object) -> Sequence[Sequence[Any]]:
        with self._transaction() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()

    def _name(self, column: str) -> str:
        return f"{self.dialect.quote}{column}{self.dialect.quote}"

    def _transaction(self) -> AbstractContextManager[Cursor]:
        return transaction(self.connect)


@contextlib.contextmanager
def transaction(connect: Callable[[], Connection]) -> Iterator[Any]:
    """Yield a cursor of a new database connection. After the block the transaction is committed; after an exception
    nothing is stored.
    """
    with contextlib.closing(connect()) as connection:
        yield connection.cursor()
        connection.commit()


def fun_of(ret: Mapping[str, object]) -> str:
    """Return the name of the function in a minion's return; several functions of one job are joined by commas."""
    fun = ret.get("fun", "")
    return ",".join(map(str, fun)) if isinstance(fun, list | tuple) else str(fun)


def listed(jid: str, load: Mapping[str, Any]) -> dict[str, object]:
    """Return a job as listings of jobs (``get_jids``) show it: a map with Function, Arguments, Target, Target-type,
    User and StartTime.
    """
    found = {name: plain(load.get(field, default)) for name, (field, default) in _LISTED.items()}
    metadata = {"Metadata": load["metadata"]} if "metadata" in load else {}
    return {**found, **metadata, "StartTime": _start_time(jid)}


def _start_time(jid: str) -> str:
    try:
        # The first 20 digits are the time, from the year to the microsecond.
        return f"{datetime.strptime(jid[:20], '%Y%m%d%H%M%S%f'):%Y, %b %d %H:%M:%S.%f}"
    except ValueError:
        return ""

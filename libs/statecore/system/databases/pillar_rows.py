"""Rows of SQL queries as pillar data, for the external pillars of databases (mysql, postgres, sqlite3).

The first fields of a row are the keys of nested maps, the last one is the value. ``depth`` is the number of keys; the names
of further fields are keys below them.

Salt: salt/pillar/sql_base.py.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.values import update
from statecore.system.databases.job_tables import Connection


class Cursor(Protocol):
    """Interface of a DB-API cursor, as far as SQL queries need it."""

    @property
    def description(self) -> Sequence[Sequence[Any]] | None:
        """The columns of the last query; the first item of each is its name."""
        ...

    def execute(self, query: str, parameters: tuple[str, ...]) -> object:
        """Run a query."""
        ...

    def fetchall(self) -> Sequence[Sequence[Any]]:
        """Return all rows of the last query."""
        ...


class _Query(NamedTuple):
    """One SQL query of the external pillar's configuration. ``root`` is the pillar key under which its data is placed,
    or None.
    """

    root: str | None
    text: str
    depth: int = 0
    #: A repeated key collects its values in a list, instead of keeping the last one.
    as_list: bool = False
    #: The only field holds a map, as JSON.
    as_json: bool = False
    #: Numbers of fields, from 1, below which the data is a list instead of a map.
    with_lists: frozenset[int] = frozenset()
    #: NULL does not replace an earlier value.
    ignore_null: bool = False


@dataclass(frozen=True)
class QueryPillar:
    """An external pillar that takes its data from the queries of one kind of SQL database."""

    #: Option with the connection's settings, a map: mysql, postgres or sqlite3.
    option: str
    #: Settings of a connection, where the option does not have them.
    defaults: Mapping[str, object]
    #: Opens a connection by its settings.
    connect: Callable[[Mapping[str, object]], Connection]
    #: Base class of the driver's errors.
    failure: type[Exception]
    #: Name of the database in errors.
    shown: str

    def ext_pillar(
        self, ctx: Context, minion_id: str, pillar: dict[str, object], *args: object, **kwargs: object
    ) -> dict[str, object]:
        """Return the pillar data of the queries. The parameter (``%s``, or ``?`` in SQLite) of each query is the minion's
        id. Data of later queries override those of earlier ones.

        args
            queries whose data stands at the top of the pillar
        kwargs
            queries by the key of pillar for their data

        Raises CommandError if a query has a wrong form, or if the database cannot be reached or refuses a query.
        """
        queries = list(_queries(args, kwargs))
        given = ctx.opts.get(self.option)
        settings = {**self.defaults, **(given if isinstance(given, Mapping) else {})}
        try:
            with contextlib.closing(self.connect(settings)) as connection:
                return _data_of_queries(connection.cursor(), minion_id, queries)
        except self.failure as error:
            raise CommandError(f"a query of {self.shown} failed: {error}") from error


def _data_of_queries(cursor: Cursor, minion_id: str, queries: Sequence[_Query]) -> dict[str, object]:
    """Run SQL queries, whose only parameter is the minion's id, and return their pillar data."""
    data: dict[str, object] = {}
    for query in queries:
        cursor.execute(query.text, (minion_id,))
        fields = [str(column[0]) for column in cursor.description or ()]
        if query.root:
            data[query.root] = {}
        focus = data[query.root] if query.root else data
        _Rows(query, fields, focus).add([[_plain(value) for value in row] for row in cursor.fetchall()])
    return data


def _queries(args: Sequence[object], kwargs: Mapping[str, object]) -> Iterator[_Query]:
    for root, given in [*((None, each) for each in args), *sorted(kwargs.items())]:
        if isinstance(given, str):
            query = _Query(root, given)
        elif isinstance(given, list | tuple):
            query = _Query(root, str(given[0] if given else ""), int(given[1]) if len(given) > 1 else 0)
        elif isinstance(given, Mapping):
            query = _of_map(root, given)
        else:
            raise CommandError(f"a query is a text, a list or a map with `query`, not {given!r}")
        if query.text:
            yield query


def _of_map(root: str | None, given: Mapping[str, Any]) -> _Query:
    known = {"query", *_Query._fields} - {"root", "text"}
    if unknown := sorted(set(map(str, given)) - known):
        raise CommandError(f"a query takes {', '.join(sorted(known))}, not {', '.join(unknown)}")
    lists = given.get("with_lists") or ()
    numbers = lists.split(",") if isinstance(lists, str) else lists
    return _Query(
        root,
        str(given.get("query") or ""),
        int(given.get("depth") or 0),
        bool(given.get("as_list")),
        bool(given.get("as_json")),
        frozenset(int(number) for number in numbers),
        bool(given.get("ignore_null")),
    )


class _Rows:
    """Adds the rows that one SQL query returned to the pillar data."""

    def __init__(self, query: _Query, fields: Sequence[str], data: Any) -> None:
        self._query = query
        self._fields = fields
        self._data = data
        most = len(fields) - 1
        self._depth = query.depth if 0 < query.depth <= most else most
        #: id of a map -> (the map, its keys whose values become lists), in the order in which they are met.
        self._listed: dict[int, tuple[dict[Any, Any], list[Any]]] = {}

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows to the pillar data. Later rows override earlier ones."""
        for row in rows:
            if self._query.as_json and len(self._fields) == 1:
                self._add_json(row[0])
            else:
                self._add_row(row)
        # The innermost maps first, because a list has no keys any more.
        for values, keys in reversed(self._listed.values()):
            for key in keys:
                found = values[key]
                values[key] = list(found.values()) if isinstance(found, dict) else [found]

    def _add_json(self, value: object) -> None:
        try:
            data = json.loads(value) if isinstance(value, str | bytes) else value
        except ValueError as error:
            raise CommandError(f"as_json: the field {self._fields[0]} is not JSON: {error}") from error
        if not isinstance(data, Mapping):
            raise CommandError(f"as_json: the field {self._fields[0]} must hold a map, not {type(data).__name__}")
        update(self._data, data, lists=self._query.as_list)

    def _add_row(self, row: Sequence[Any]) -> None:
        place: dict[Any, Any] = self._data
        for index in range(self._depth - 1):
            self._list_below(index + 1, place, row[index])
            place = self._inner(place, row[index])
        if self._depth == len(self._fields) - 1:
            # The last key is the last field but one; the only field of a row is both key and value.
            self._set(place, row[self._depth - 1], row[-1], listed=self._depth in self._query.with_lists)
            return
        key = row[self._depth - 1]
        inner = place.setdefault(key, {})
        self._list_below(self._depth, place, key)
        for index in range(self._depth, len(self._fields)):
            self._list_below(index + 1, inner, self._fields[index])
            self._set(inner, self._fields[index], row[index])

    def _inner(self, place: dict[Any, Any], key: object) -> dict[Any, Any]:
        """Return the map at ``place[key]``, into which the rest of a row is written. A missing map is created. Another
        value there is replaced; with ``as_list`` it becomes the first item of a list, to which the map is appended.
        """
        known = place.setdefault(key, {})
        if isinstance(known, dict):
            return known
        inner: dict[Any, Any] = {}
        if isinstance(known, list):
            known.append(inner)
        else:
            place[key] = [known, inner] if self._query.as_list else inner
        return inner

    def _set(self, place: dict[Any, Any], key: object, value: object, *, listed: bool = False) -> None:
        if listed or (self._query.as_list and key in place):
            known = place.get(key, [])
            place[key] = [*(known if isinstance(known, list) else [known]), value]
        elif value is not None or not self._query.ignore_null:
            place[key] = value

    def _list_below(self, number: int, place: dict[Any, Any], key: object) -> None:
        if number in self._query.with_lists:
            keys = self._listed.setdefault(id(place), (place, []))[1]
            if key not in keys:
                keys.append(key)


def _plain(value: object) -> object:
    """Convert a value from a database to one that pillar can contain, and return it."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | uuid.UUID):
        return str(value)
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value

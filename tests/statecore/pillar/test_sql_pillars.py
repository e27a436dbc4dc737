"""The external pillars of databases: the rows of SQLite beside real Salt, and the same rows of real servers."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from statecore.runtime.runtime import local_runtime
from tests.statecore.database_servers import mariadb, postgres

#: minion, a, b, c, d
ROWS: Sequence[tuple[Any, ...]] = (
    ("web1", "a", "b", "c", "1"),
    ("web1", "a", "b", "c", "2"),
    ("web1", "a", "b", "e", None),
    ("web1", "a", "z", "h", "4"),
    ("web1", "x", "y", "c", "5"),
    ("web1", "x", "y", None, "6"),
    ("db1", "other", "o", "o", "7"),
)

_ALL = "SELECT a, b, c, d FROM rows WHERE minion = ? AND c IS NOT NULL ORDER BY a, b, c, d"
_TWO = "SELECT a, d FROM rows WHERE minion = ? AND d IS NOT NULL ORDER BY d"
_NULLS = "SELECT a, d FROM rows WHERE minion = ? AND b = 'b' ORDER BY c"
_ONE = "SELECT b FROM rows WHERE minion = ? ORDER BY b"

#: Name -> (queries in a list, queries by key).
QUERIES: Mapping[str, tuple[list[Any], dict[str, Any]]] = {
    "text": ([_ALL], {}),
    "two fields": ([_TWO], {}),
    "one field": ([_ONE], {}),
    "list": ([[_ALL, 2]], {}),
    "depth 1": ([{"query": _ALL, "depth": 1}], {}),
    "depth 2": ([{"query": _ALL, "depth": 2}], {}),
    "depth 9": ([{"query": _ALL, "depth": 9}], {}),
    "as a list": ([{"query": _ALL, "as_list": True}], {}),
    "as a list of two": ([{"query": _TWO, "as_list": True}], {}),
    "as a list at depth 2": ([{"query": _ALL, "depth": 2, "as_list": True}], {}),
    "lists": ([{"query": _ALL, "with_lists": "1,3"}], {}),
    "lists as numbers": ([{"query": _ALL, "with_lists": [2]}], {}),
    "lists at depth 2": ([{"query": _ALL, "depth": 2, "with_lists": [1, 2]}], {}),
    "nulls": ([_NULLS], {}),
    "no nulls": ([{"query": _NULLS, "ignore_null": True}], {}),
    "by key": ([], {"z": _TWO, "a": {"query": _ALL, "depth": 1}}),
    "both": ([_TWO], {"top": _TWO}),
    "collision": ([_TWO, _ALL], {}),
    "collision as a list": ([_TWO, {"query": _ALL, "as_list": True}], {}),
    "no rows": (["SELECT a, b FROM rows WHERE minion = ? AND 1 = 0"], {}),
    "no query": (["", [], {"query": ""}], {}),
}

#: Queries whose only field is JSON; Salt's need a database that has that type.
_JSON = (
    'SELECT CASE d WHEN \'1\' THEN \'{"j": {"l": [1, 2]}}\' ELSE \'{"j": {"l": [2, 3], "n": 1}}\' END AS j FROM rows'
)
JSON: Mapping[str, tuple[dict[str, Any], Any]] = {
    "replaced": ({"as_json": True}, {"j": {"l": [2, 3], "n": 1}}),
    "joined": ({"as_json": True, "as_list": True}, {"j": {"l": [1, 2, 3], "n": 1}}),
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with the rows."""
    path = tmp_path_factory.mktemp("sqlite") / "odd?name #1.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE rows (minion TEXT, a TEXT, b TEXT, c TEXT, d TEXT)")
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", ROWS)
        connection.commit()
    return path


@pytest.fixture(scope="module")
def salts(oracle: Any, database: Path) -> dict[str, Any]:
    """Name -> Salt's data."""
    script = str(Path(__file__).parent / "salt_sql_pillars.py")
    told = oracle.run("python", script, stdin=json.dumps([str(database), list(QUERIES.values())]))
    return dict(zip(QUERIES, json.loads(told), strict=True))


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """compiled(name, args, kwargs, **opts): the pillar of web1 by one external pillar for each of args and kwargs."""

    def compile_pillar(name: str, args: list[Any], kwargs: dict[str, Any], **opts: Any) -> dict[str, Any]:
        wanted = [{name: each} for each in (args, kwargs) if each]
        roots = {"base": [str(tmp_path)]}
        runtime = local_runtime(
            {"id": "web1", "pillar_roots": roots, "cachedir": str(tmp_path / "cache"), "ext_pillar": wanted, **opts},
            grains={"id": "web1"},
        )
        return json.loads(json.dumps(dict(runtime.pillar)))

    return compile_pillar


@pytest.mark.oracle
@pytest.mark.parametrize("name", QUERIES)
def test_as_salt(name: str, salts: Mapping[str, Any], database: Path, compiled: Any) -> None:
    assert compiled("sqlite3", *QUERIES[name], sqlite3={"database": str(database)}) == salts[name]


@pytest.mark.parametrize("name", JSON)
def test_json(name: str, database: Path, compiled: Any) -> None:
    options, expected = JSON[name]
    query = {"query": f"{_JSON} WHERE minion = ? AND d IN ('1', '2') ORDER BY d", **options}
    assert compiled("sqlite3", [query], {}, sqlite3={"database": str(database)}) == expected


@pytest.mark.parametrize(
    ("args", "opts", "message"),
    [
        (["SELECT missing FROM rows WHERE minion = ?"], {}, "a query of SQLite failed: no such column: missing"),
        (["SELECT a FROM rows"], {}, "a query of SQLite failed: Incorrect number of bindings"),
        ([_ALL], {"database": "/nowhere/pillar.db"}, "a query of SQLite failed: unable to open database file"),
        ([5], {}, "a query is a text, a list or a map with `query`, not 5"),
        (
            [{"query": _ALL, "deep": 1}],
            {},
            "a query takes as_json, as_list, depth, ignore_null, query, with_lists, not deep",
        ),
        ([{"query": _ONE, "as_json": True}], {}, "as_json: the field b is not JSON"),
    ],
)
def test_faults(args: list[Any], opts: dict[str, Any], message: str, database: Path, compiled: Any) -> None:
    told = compiled("sqlite3", args, {}, sqlite3={"database": str(database), **opts})
    (error,) = told["_errors"]
    assert error.startswith(f"Failed to load ext_pillar sqlite3: {message}")


# ------------------------------------------------------------------------------------------------------- real servers


@pytest.fixture(scope="module")
def postgres_settings() -> Iterator[dict[str, Any]]:
    with postgres() as directory:
        with psycopg.connect(host=str(directory), user="postgres", dbname="postgres", autocommit=True) as connection:
            connection.execute("CREATE ROLE salt LOGIN PASSWORD 'sesame'")
            connection.execute("CREATE DATABASE salt OWNER salt")
        settings = {"host": str(directory), "pass": "sesame"}
        with psycopg.connect(host=str(directory), user="salt", password="sesame", dbname="salt") as connection:
            connection.execute("CREATE TABLE rows (minion TEXT, a TEXT, b TEXT, c TEXT, d TEXT)")
            connection.execute("CREATE TABLE types (minion TEXT, n NUMERIC, t TIMESTAMP, j JSONB, y BYTEA)")
            connection.execute("INSERT INTO types VALUES ('web1', 3, '2026-01-02 03:04:05', '{\"a\": [1]}', 'raw')")
            connection.cursor().executemany("INSERT INTO rows VALUES (%s, %s, %s, %s, %s)", ROWS)
        yield settings


@pytest.fixture(scope="module")
def mysql_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with mariadb(tmp_path_factory.mktemp("m")) as socket:
        with contextlib.closing(pymysql.connect(unix_socket=str(socket), user="root", autocommit=True)) as connection:
            cursor = connection.cursor()
            cursor.execute("CREATE DATABASE pillar")
            cursor.execute("CREATE USER salt@localhost IDENTIFIED BY 'sesame'")
            cursor.execute("GRANT SELECT ON pillar.* TO salt@localhost")
            cursor.execute("CREATE TABLE pillar.`rows` (minion TEXT, a TEXT, b TEXT, c TEXT, d TEXT)")
            cursor.executemany("INSERT INTO pillar.`rows` VALUES (%s, %s, %s, %s, %s)", ROWS)
        yield {"host": str(socket), "pass": "sesame", "db": "pillar"}


def _on_server(query: Any, quote: str) -> Any:
    """The same query with a server's parameter and its quotation marks."""
    return json.loads(json.dumps(query).replace("?", "%s").replace("FROM rows", f"FROM {quote}rows{quote}"))


@pytest.mark.parametrize("name", ["text", "depth 2", "as a list", "lists", "by key", "no nulls"])
@pytest.mark.parametrize("server", ["postgres", "mysql"])
def test_servers(server: str, name: str, database: Path, compiled: Any, request: pytest.FixtureRequest) -> None:
    settings = request.getfixturevalue(f"{server}_settings")
    args, kwargs = _on_server(QUERIES[name], "`" if server == "mysql" else "")
    own = compiled(server, args, kwargs, **{server: settings})
    assert own == compiled("sqlite3", *QUERIES[name], sqlite3={"database": str(database)})
    assert "_errors" not in own


def test_types_of_postgres(postgres_settings: dict[str, Any], compiled: Any) -> None:
    query = {"query": "SELECT minion, n, t, j FROM types WHERE minion = %s", "depth": 1}
    own = compiled("postgres", [query], {}, postgres=postgres_settings)
    assert own == {"web1": {"n": 3, "t": "2026-01-02 03:04:05", "j": {"a": [1]}}}
    whole = {"query": "SELECT j FROM types WHERE minion = %s", "as_json": True}
    assert compiled("postgres", [whole], {}, postgres=postgres_settings) == {"a": [1]}


@pytest.mark.parametrize("server", ["postgres", "mysql"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pass": "wrong"}, "at {host}"),
        ({"host": "127.0.0.1", "port": 1}, "at 127.0.0.1:1, database"),
    ],
)
def test_a_server_that_refuses(
    server: str, change: dict[str, Any], message: str, compiled: Any, request: pytest.FixtureRequest
) -> None:
    settings = {**request.getfixturevalue(f"{server}_settings"), **change}
    own = compiled(server, ["SELECT 1, %s"], {}, **{server: settings})
    (error,) = own["_errors"]
    assert message.format(**settings) in error
    assert "sesame" not in error

"""Returners with databases: what is stored is read again, in tables that docs/returners.md makes, on real servers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from statecore.model.errors import CommandError
from statecore.system.databases.job_tables import listed
from statecore.system.return_json import as_json, plain
from statecore.system.sqlite_databases import opened
from tests.statecore.database_servers import mariadb, postgres

PAGE = Path(__file__).parents[4] / "docs/returners.md"

#: The blocks of SQL on the page, in their order.
BLOCKS = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
TEXT_BLOCK = re.sub(r"CREATE INDEX idx_jids_jsonb[^;]*;", "", BLOCKS[0]).replace("jsonb", "text")

JID = "20260101000000123456"
RET: Mapping[str, Any] = {
    "id": "web1",
    "jid": JID,
    "fun": "test.ping",
    "fun_args": ["a"],
    "return": {"NUL": "a\0b", "bytes": b"\xff", "ümlaut": [1, None, True]},
    "retcode": 0,
    "success": True,
}
LOAD: Mapping[str, Any] = {"fun": "test.ping", "arg": ["a"], "tgt": "*", "tgt_type": "glob", "user": "root", "jid": JID}
LISTED = {
    "Function": "test.ping",
    "Arguments": ["a"],
    "Target": "*",
    "Target-type": "glob",
    "User": "root",
    "StartTime": "2026, Jan 01 00:00:00.123456",
}


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[Path]:
    with postgres() as directory:
        yield directory


@pytest.fixture(scope="module")
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with mariadb(tmp_path_factory.mktemp("m")) as socket:
        yield socket


class Site:
    """A minion or master whose returner has a database of its own."""

    def __init__(self, plain: Any, name: str, rows: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self.plain, self.name, self.rows = plain, name, rows
        plain.opts["id"] = "master1"

    def call(self, function: str, *args: Any) -> Any:
        served, name = self.plain.loader.function("returners", f"{self.name}.{function}", self.plain.context())
        return served.bound(name, self.plain.context())(*args)


def on_postgres(plain: Any, server: Path, name: str, tables: str, prefix: str, password: str) -> Iterator[Site]:
    where = {"host": str(server), "user": "postgres"}
    database = f"d_{name}_{plain.tree.parent.name}".lower().replace("-", "_")[:60]
    with psycopg.connect(**where, dbname="postgres", autocommit=True) as server_connection:
        server_connection.execute(f'CREATE DATABASE "{database}"')
    with psycopg.connect(**where, dbname=database, autocommit=True) as connection:
        connection.execute(tables)
        settings = {"host": str(server), "user": "postgres", "db": database, password: "x"}
        plain.opts |= {f"{prefix}.{key}": value for key, value in settings.items()}
        yield Site(plain, name, lambda statement: connection.execute(statement).fetchall())


@pytest.fixture
def site(request: pytest.FixtureRequest, plain: Any) -> Iterator[Site]:
    kind = request.param
    if kind == "sqlite3":
        plain.opts["sqlite3.database"] = "/returns.db"
        path = plain.context().host.path("/returns.db")
        with opened(path) as database:
            database.executescript(BLOCKS[3])

        def rows(statement: str) -> list[tuple[Any, ...]]:
            with opened(path) as reader:
                return list(reader.execute(statement))

        yield Site(plain, kind, rows)
    elif kind == "mysql":
        socket = request.getfixturevalue("mariadb_server")
        connection = pymysql.connect(unix_socket=str(socket), user="root", autocommit=True)
        with connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS salt")
            cursor.execute("CREATE DATABASE salt CHARACTER SET utf8mb4")
            cursor.execute("USE salt")
            for statement in filter(str.strip, BLOCKS[2].split(";")):
                cursor.execute(statement)
            plain.opts |= {"mysql": {"host": str(socket), "user": "root", "pass": "None"}}

            def asked(statement: str) -> list[tuple[Any, ...]]:
                cursor.execute(statement)
                return list(cursor.fetchall())

            yield Site(plain, kind, asked)
    else:
        server = request.getfixturevalue("postgres_server")
        prefix = "master_job_cache.postgres" if kind == "postgres_local_cache" else f"returner.{kind}"
        tables = {"pgjsonb": BLOCKS[0], "postgres": TEXT_BLOCK, "postgres_local_cache": BLOCKS[1]}[kind]
        password = "pass" if kind == "pgjsonb" else "passwd"
        yield from on_postgres(plain, server, kind, tables, prefix, password)


ALL = ["pgjsonb", "postgres", "mysql", "sqlite3", "postgres_local_cache"]
SAME_TABLES = ALL[:3]
WITH_EVENTS = [name for name in ALL if name != "sqlite3"]


@pytest.mark.parametrize("site", ALL, indirect=True)
def test_a_job_is_stored_and_read(site: Site) -> None:
    site.call("save_load", JID, LOAD, ["web1"])
    site.call("save_load", JID, LOAD)
    site.call("save_minions", JID, ["web1"])
    assert site.call("get_jids") == {JID: LISTED}
    assert site.call("get_load", JID)["fun"] == "test.ping"
    assert site.call("get_load", "20250101000000000000") == {}
    for minion in ("web1", "web2"):
        site.call("returner", {**RET, "id": minion})
    found = site.call("get_jid", JID)
    assert sorted(found) == ["web1", "web2"]
    expected = str(RET["return"]) if site.name == "postgres_local_cache" else plain(RET["return"])
    assert found["web1"]["return"] == expected
    assert site.call("get_jid", "20250101000000000000") == {}


@pytest.mark.parametrize("site", SAME_TABLES, indirect=True)
def test_rows_are_those_of_salt(site: Site) -> None:
    site.call("returner", {**RET, "fun": ["test.ping", "test.echo"]})
    name = {"mysql": "`return`"}.get(site.name, "return")
    ((fun, jid, minion, success, value, whole),) = site.rows(
        f"SELECT fun, jid, id, success, {name}, full_ret FROM salt_returns"
    )
    assert (fun, jid, minion) == ("test.ping,test.echo", JID, "web1")
    assert success == ("1" if site.name == "mysql" else "true")
    if site.name == "pgjsonb":
        assert (value, whole["fun_args"]) == (plain(RET["return"]), ["a"])
    else:
        assert value == as_json(RET["return"])


@pytest.mark.parametrize("site", [name for name in ALL if name != "postgres_local_cache"], indirect=True)
def test_the_newest_return_of_a_function(site: Site) -> None:
    for number, jid in enumerate((JID, "20260102000000000000")):
        site.call("returner", {**RET, "jid": jid, "return": number})
    newest = site.call("get_fun", "test.ping")["web1"]
    assert (newest if site.name == "sqlite3" else newest["return"]) == 1
    assert site.call("get_minions") == ["web1"]


@pytest.mark.parametrize("site", WITH_EVENTS, indirect=True)
def test_events(site: Site) -> None:
    site.call("event_return", [{"tag": "a/b", "data": {"n": 1, "b": b"x"}}, {"tag": "a/c", "data": {}}])
    rows = site.rows("SELECT tag, data, master_id FROM salt_events ORDER BY id")
    assert [(tag, master) for tag, _, master in rows] == [("a/b", "master1"), ("a/c", "master1")]
    data = {"n": 1, "b": "x"}
    assert rows[0][1] == (data if site.name == "pgjsonb" else as_json(data))


@pytest.mark.parametrize("site", ["pgjsonb", "mysql"], indirect=True)
@pytest.mark.parametrize("archive", [False, True])
def test_old_jobs_are_deleted(site: Site, archive: bool) -> None:
    old, split, young = JID, "20260102000000000000", "20260103000000000000"
    site.plain.opts |= {"keep_jobs_seconds": 3600, "archive_jobs": archive}
    for jid in (old, split, young):
        site.call("save_load", jid, {**LOAD, "jid": jid})
        site.call("returner", {**RET, "jid": jid})
    site.call("returner", {**RET, "jid": split, "id": "slow"})
    site.call("event_return", [{"tag": "old", "data": {}}, {"tag": "young", "data": {}}])
    then = "CURRENT_TIMESTAMP - INTERVAL '2' HOUR"
    set_old = [
        f"UPDATE salt_returns SET alter_time = {then} WHERE jid = '{old}' OR (jid = '{split}' AND id = 'web1')",
        f"UPDATE salt_events SET alter_time = {then} WHERE tag = 'old'",
    ]
    for statement in set_old:
        site.rows(f"{statement} RETURNING 1" if site.name == "pgjsonb" else statement)
    site.call("clean_old_jobs")
    site.call("clean_old_jobs")
    assert sorted(site.call("get_jids")) == [split, young]
    assert sorted(site.call("get_jid", split)) == ["slow"]
    assert site.rows("SELECT tag FROM salt_events") in ([("young",)], (("young",),))
    if archive:
        assert [row[0] for row in site.rows("SELECT jid FROM jids_archive")] == [old]
        assert len(site.rows("SELECT jid FROM salt_returns_archive")) == 2
        assert [row[0] for row in site.rows("SELECT tag FROM salt_events_archive")] == ["old"]


@pytest.mark.parametrize("site", ["pgjsonb"], indirect=True)
def test_events_of_a_batch_are_stored_together_or_not_at_all(site: Site) -> None:
    with pytest.raises(psycopg.Error):
        site.call("event_return", [{"tag": "good", "data": {}}, {"tag": "x" * 300, "data": {}}])
    assert site.rows("SELECT tag FROM salt_events") == []


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("pgjsonb", {"returner.pgjsonb.host": "127.0.0.1", "returner.pgjsonb.port": 1}, "PostgreSQL at 127.0.0.1:1"),
        ("postgres", {"returner.postgres": {"host": "127.0.0.1", "port": 1}}, "PostgreSQL at 127.0.0.1:1"),
        ("mysql", {"mysql.host": "127.0.0.1", "mysql.port": 1}, "MySQL at 127.0.0.1:1"),
        ("sqlite3", {}, "sqlite3.database"),
        ("sqlite3", {"sqlite3.database": "/no/such/file"}, "/no/such/file"),
    ],
)
def test_a_database_that_is_away_is_named(plain: Any, name: str, settings: dict[str, Any], words: str) -> None:
    plain.opts |= settings
    site = Site(plain, name, lambda _: [])
    with pytest.raises(CommandError, match=re.escape(words)):
        site.call("returner", dict(RET))


def test_a_missing_client_names_its_extra(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from statecore.runtime.runtime import local_runtime\n"
        "import logging; logging.basicConfig(level='ERROR')\n"
        f"runtime = local_runtime({{'id': 'a', 'cachedir': {str(tmp_path)!r}}}, pillar={{}}, grains={{}})\n"
        "runtime.deliver(['pgjsonb'], {'id': 'a', 'jid': '1', 'fun': 'test.ping'})"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr
    assert "Returner pgjsonb.returner could not be loaded" in told
    assert "saltern-statecore[postgres]" in told


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ({1: (1, 2)}, {"1": [1, 2]}),
        ({"a", "b"}, ["a", "b"]),
        (b"\xffa", "\\xffa"),
        ("a\0b", "a�b"),
        ("\udc80", "?"),
        (1.5, 1.5),
        (float("inf"), "inf"),
        (Path("/x"), "/x"),
    ],
)
def test_values_that_json_has_not(value: Any, made: Any) -> None:
    assert plain(value) == made


def test_a_jid_that_is_no_time_is_listed() -> None:
    assert listed("mine", {})["StartTime"] == ""
    assert listed(JID, {"metadata": {"a": 1}})["Metadata"] == {"a": 1}

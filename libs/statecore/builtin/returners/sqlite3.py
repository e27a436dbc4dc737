"""Returner ``sqlite3``: stores returns and jobs in a SQLite database that is a file of the host.

Settings: ``sqlite3.database`` (the path; required), ``sqlite3.timeout`` (seconds to wait for a locked database, default 5).
The tables are those of Salt 3007's returner; docs/returners.md has the statements that create them.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases.job_tables import fun_of, listed
from statecore.system.return_json import as_json
from statecore.system.returner_settings import settings_of
from statecore.system.sqlite_databases import opened

_DEFAULTS: Mapping[str, object] = {"database": None, "timeout": 5.0}


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Store one minion's return of a job in the SQLite database. Raises CommandError if the database cannot be used."""
    row = {
        "fun": fun_of(ret),
        "jid": ret["jid"],
        "id": ret["id"],
        "fun_args": str(ret["fun_args"]) if ret.get("fun_args") else None,
        "date": str(datetime.now()),
        "full_ret": as_json(ret.get("return")),
        "success": ret.get("success", ""),
    }
    with _database(ctx, ret) as database:
        names = ", ".join(row)
        database.execute(f"INSERT INTO salt_returns ({names}) VALUES (:{names.replace(', ', ', :')})", row)


def save_load(ctx: Context, jid: str, load: Mapping[str, object], minions: object = None) -> None:
    """Store the load of a job in the SQLite database. If this JID has a load already, that load is kept."""
    with _database(ctx) as database:
        database.execute("INSERT OR IGNORE INTO jids (jid, load) VALUES (?, ?)", (jid, as_json(load)))


def save_minions(ctx: Context, jid: str, minions: object, syndic_id: object = None) -> None:
    """Do nothing: the load that ``save_load`` stores in the SQLite database names the job's minions."""


def get_load(ctx: Context, jid: str) -> dict[str, object]:
    """Return the load of a job from the SQLite database; {} for an unknown JID."""
    rows = _rows(ctx, "SELECT load FROM jids WHERE jid = ?", jid)
    return dict(json.loads(rows[0][0])) if rows else {}


def get_jid(ctx: Context, jid: str) -> dict[str, dict[str, object]]:
    """Return {minion id: {"return": value}} of a job from the SQLite database."""
    rows = _rows(ctx, "SELECT id, full_ret FROM salt_returns WHERE jid = ?", jid)
    return {minion: {"return": json.loads(ret)} for minion, ret in rows}


def get_fun(ctx: Context, fun: str) -> dict[str, object]:
    """Return {minion id: value of its newest return of the execution function ``fun``} from the SQLite database."""
    rows = _rows(ctx, "SELECT id, full_ret FROM salt_returns WHERE fun = ? ORDER BY date", fun)
    return {minion: json.loads(ret) for minion, ret in rows}


def get_jids(ctx: Context) -> dict[str, dict[str, object]]:
    """Return {JID: job} of all jobs in the SQLite database. A job is a map with Function, Arguments, Target,
    Target-type, User and StartTime.
    """
    return {jid: listed(jid, json.loads(load)) for jid, load in _rows(ctx, "SELECT jid, load FROM jids")}


def get_minions(ctx: Context) -> list[str]:
    """Return the ids of all minions of which a return is stored in the SQLite database."""
    return [row[0] for row in _rows(ctx, "SELECT DISTINCT id FROM salt_returns ORDER BY id")]


def _rows(ctx: Context, statement: str, *values: object) -> list[Any]:
    with _database(ctx) as database:
        return database.execute(statement, values).fetchall()


@contextlib.contextmanager
def _database(ctx: Context, ret: Mapping[str, object] | None = None) -> Iterator[sqlite3.Connection]:
    settings = settings_of(ctx.functions["config.option"], "sqlite3", ret, _DEFAULTS)
    place = settings["database"]
    if not place:
        raise CommandError("the option sqlite3.database is not set: it is the path of the database")
    try:
        with opened(ctx.host.path(str(place)), float(str(settings["timeout"]))) as database:
            yield database
    except (sqlite3.Error, OSError, ValueError) as error:
        raise CommandError(f"the SQLite database {place}: {error}") from error

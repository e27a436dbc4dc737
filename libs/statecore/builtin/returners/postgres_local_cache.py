"""Returner ``postgres_local_cache``: the master's job cache in PostgreSQL, with a column for each field of a load.

Settings: ``master_job_cache.postgres.host`` (default localhost), ``port`` (5432), ``user``, ``passwd`` and ``db`` (all: salt).
The tables are those of Salt's returner; docs/returners.md has the statements that create them. The extra
``saltern-statecore[postgres]`` brings the client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.system.databases.job_tables import fun_of, listed, transaction
from statecore.system.databases.postgres_client import connected
from statecore.system.return_json import as_json, plain
from statecore.system.returner_settings import settings_of

_DEFAULTS: Mapping[str, object] = {
    "host": "localhost",
    "port": 5432,
    "user": "salt",
    "passwd": "salt",
    "db": "salt",
}

#: Column of ``jids`` -> field of the load. All columns but ``jid`` and ``arg`` hold the text of the value.
_COLUMNS: Mapping[str, str] = {
    "jid": "jid",
    "tgt_type": "tgt_type",
    "cmd": "cmd",
    "tgt": "tgt",
    "kwargs": "kwargs",
    "ret": "ret",
    "username": "user",
    "arg": "arg",
    "fun": "fun",
}


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Store one minion's return of a job in PostgreSQL (master's job cache): its result as text, exit code and
    success. Raises CommandError if the server does not answer, psycopg.Error if it refuses.
    """
    kept = {"return": str(ret.get("return")), **{name: ret[name] for name in ("retcode", "success") if name in ret}}
    row = (fun_of(ret), ret["jid"], as_json(kept), ret["id"], ret.get("success"))
    _write(ctx, "INSERT INTO salt_returns (fun, jid, return, id, success) VALUES (%s, %s, %s, %s, %s)", [row])


def event_return(ctx: Context, events: Sequence[Mapping[str, object]]) -> None:
    """Store events of the master, each a map of ``tag`` and ``data``, in PostgreSQL, all or none."""
    rows = [(event.get("tag", ""), as_json(event.get("data", "")), str(ctx.opts.get("id", ""))) for event in events]
    _write(ctx, "INSERT INTO salt_events (tag, data, master_id) VALUES (%s, %s, %s)", rows)


def save_load(ctx: Context, jid: str, load: Mapping[str, object], minions: object = None) -> None:
    """Store the load of a job in PostgreSQL (master's job cache). If this JID has a load already, that load is kept."""
    row = {column: str(plain(load.get(field))) for column, field in _COLUMNS.items()}
    row |= {"jid": str(jid), "arg": as_json(load.get("arg"))}
    marks = ", ".join(["%s"] * len(row))
    statement = f"INSERT INTO jids ({', '.join(row)}) VALUES ({marks}) ON CONFLICT (jid) DO NOTHING"
    _write(ctx, statement, [tuple(row.values())])


def save_minions(ctx: Context, jid: str, minions: object, syndic_id: object = None) -> None:
    """Do nothing: the tables of this job cache in PostgreSQL have no column for a job's minions."""


def get_load(ctx: Context, jid: str) -> dict[str, Any]:
    """Return the load of a job from the job cache in PostgreSQL, each field as text; {} for an unknown JID."""
    rows = _rows(ctx, f"SELECT {', '.join(_COLUMNS)} FROM jids WHERE jid = %s", str(jid))
    return dict(zip(_COLUMNS.values(), rows[0], strict=True)) if rows else {}


def get_jid(ctx: Context, jid: str) -> dict[str, Any]:
    """Return {minion id: {return, retcode, success}} of a job from the job cache in PostgreSQL."""
    return {
        minion: ret if isinstance(ret, dict) and "return" in ret else {"return": ret}
        for minion, text in _rows(ctx, "SELECT id, return FROM salt_returns WHERE jid = %s", str(jid))
        for ret in [json.loads(text)]
    }


def get_jids(ctx: Context) -> dict[str, dict[str, object]]:
    """Return {JID: job} of the jobs in PostgreSQL that are younger than ``keep_jobs_seconds``. A job is a map with
    Function, Arguments, Target, Target-type, User and StartTime.
    """
    seconds = int(ctx.opts.get("keep_jobs_seconds") or 0)
    young = f" WHERE started > NOW() - INTERVAL '{seconds}' SECOND" if seconds else ""
    loads = [
        dict(zip(_COLUMNS.values(), row, strict=True))
        for row in _rows(ctx, f"SELECT {', '.join(_COLUMNS)} FROM jids{young}")
    ]
    return {load["jid"]: listed(load["jid"], {**load, "arg": json.loads(load["arg"])}) for load in loads}


def clean_old_jobs(ctx: Context) -> None:
    """Do nothing, as in Salt: old jobs stay in PostgreSQL, and ``get_jids`` leaves them out."""


def _write(ctx: Context, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    settings = settings_of(ctx.functions["config.option"], "master_job_cache.postgres", None, _DEFAULTS)
    with transaction(lambda: connected(settings)) as cursor:
        for row in rows:
            cursor.execute(statement, row)


def _rows(ctx: Context, statement: str, *values: object) -> list[Any]:
    settings = settings_of(ctx.functions["config.option"], "master_job_cache.postgres", None, _DEFAULTS)
    with transaction(lambda: connected(settings)) as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())

"""Returner ``pgjsonb``: stores returns, jobs and events in PostgreSQL, in columns of type ``jsonb``.

Settings: ``returner.pgjsonb.host`` (default localhost), ``port`` (5432), ``user``, ``pass`` and ``db`` (all: salt),
``connect_timeout`` (10 seconds), ``sslmode``, ``sslcert``, ``sslkey``, ``sslrootcert``, ``sslcrl``. The tables are those of
Salt's returner; docs/returners.md has the statements that create them. The extra ``saltern-statecore[postgres]`` brings
the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg.types.json import Jsonb

from statecore.model.context import Context
from statecore.system.databases.job_tables import Dialect, JobTables
from statecore.system.databases.postgres_client import connected
from statecore.system.return_json import plain
from statecore.system.returner_settings import settings_of

_DIALECT = Dialect(
    quote='"',
    on_known="ON CONFLICT (jid) DO UPDATE SET load = EXCLUDED.load",
    archive="CREATE TABLE IF NOT EXISTS {0}_archive (LIKE {0})",
    to_column=lambda value: Jsonb(plain(value)),
    of_column=lambda value: value,
)

_DEFAULTS: Mapping[str, object] = {
    "host": "localhost",
    "port": 5432,
    "user": "salt",
    "pass": "salt",
    "db": "salt",
    **dict.fromkeys(("connect_timeout", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl")),
}


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Store one return of a job. Raises CommandError if PostgreSQL does not answer, psycopg.Error if it refuses."""
    _tables(ctx, ret).store_return(ret)


def event_return(ctx: Context, events: Sequence[Mapping[str, object]]) -> None:
    """Store events of the master, each a map of ``tag`` and ``data``."""
    _tables(ctx).store_events(events, str(ctx.opts.get("id", "")))


def save_load(ctx: Context, jid: str, load: Mapping[str, object], minions: object = None) -> None:
    """Store the load of a job. A load that is stored already is replaced."""
    _tables(ctx).store_load(jid, load)


def save_minions(ctx: Context, jid: str, minions: object, syndic_id: object = None) -> None:
    """Do nothing: the load names the minions."""


def get_load(ctx: Context, jid: str) -> dict[str, object]:
    """Return the load of a job; {} for an unknown JID."""
    return _tables(ctx).load(jid)


def get_jid(ctx: Context, jid: str) -> dict[str, object]:
    """Return a map of minion id to its return of a job."""
    return _tables(ctx).returns(jid)


def get_fun(ctx: Context, fun: str) -> dict[str, object]:
    """Return a map of minion id to its newest return of a function."""
    return _tables(ctx).last_returns(fun)


def get_jids(ctx: Context) -> dict[str, dict[str, object]]:
    """Return a map of JID to the listed form of the job, for all jobs."""
    return _tables(ctx).jobs()


def get_minions(ctx: Context) -> list[str]:
    """Return the ids of all minions that have a return."""
    return _tables(ctx).minions()


def clean_old_jobs(ctx: Context) -> None:
    """Delete what is older than ``keep_jobs_seconds``, with ``archive_jobs`` after it was copied to the archive tables."""
    seconds = int(ctx.opts.get("keep_jobs_seconds") or 0)
    if seconds > 0:
        _tables(ctx).expire(seconds, archive=bool(ctx.opts.get("archive_jobs")))


def _tables(ctx: Context, ret: Mapping[str, object] | None = None) -> JobTables:
    settings = settings_of(ctx.functions["config.option"], "returner.pgjsonb", ret, _DEFAULTS)
    return JobTables(_DIALECT, lambda: connected(settings))

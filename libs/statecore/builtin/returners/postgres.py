"""Returner ``postgres``: stores returns, jobs and events in PostgreSQL, as JSON in columns of text.

Settings: ``returner.postgres.host`` (default localhost), ``port`` (5432), ``user``, ``passwd`` and ``db`` (all: salt). The
tables are those of Salt's returner; docs/returners.md has the statements that create them. The extra
``saltern-statecore[postgres]`` brings the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.system.databases.job_tables import Dialect, JobTables
from statecore.system.databases.postgres_client import connected
from statecore.system.returner_settings import settings_of

_DIALECT = Dialect(
    quote='"',
    on_known="ON CONFLICT (jid) DO NOTHING",
    archive="CREATE TABLE IF NOT EXISTS {0}_archive (LIKE {0})",
)

_DEFAULTS: Mapping[str, object] = {
    "host": "localhost",
    "port": 5432,
    "user": "salt",
    "passwd": "salt",
    "db": "salt",
}


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Store one minion's return of a job in PostgreSQL (table ``salt_returns``). Raises CommandError if the server
    does not answer, psycopg.Error if it refuses.
    """
    _tables(ctx, ret).store_return(ret)


def event_return(ctx: Context, events: Sequence[Mapping[str, object]]) -> None:
    """Store events of the master, each a map of ``tag`` and ``data``, in PostgreSQL (table ``salt_events``), all or
    none. Raises CommandError if the server does not answer, psycopg.Error if it refuses.
    """
    _tables(ctx).store_events(events, str(ctx.opts.get("id", "")))


def save_load(ctx: Context, jid: str, load: Mapping[str, object], minions: object = None) -> None:
    """Store the load of a job in PostgreSQL (table ``jids``). If this JID has a load already, that load is kept."""
    _tables(ctx).store_load(jid, load)


def save_minions(ctx: Context, jid: str, minions: object, syndic_id: object = None) -> None:
    """Do nothing: the load that ``save_load`` stores in PostgreSQL names the job's minions."""


def get_load(ctx: Context, jid: str) -> dict[str, object]:
    """Return the load of a job from PostgreSQL (table ``jids``); {} for an unknown JID."""
    return _tables(ctx).load(jid)


def get_jid(ctx: Context, jid: str) -> dict[str, object]:
    """Return {minion id: return} of a job from PostgreSQL (table ``salt_returns``), each return as the minion sent it;
    {} for an unknown JID.
    """
    return _tables(ctx).returns(jid)


def get_fun(ctx: Context, fun: str) -> dict[str, object]:
    """Return {minion id: newest return of the execution function ``fun``} from PostgreSQL (table ``salt_returns``)."""
    return _tables(ctx).last_returns(fun)


def get_jids(ctx: Context) -> dict[str, dict[str, object]]:
    """Return {JID: job} of all jobs in PostgreSQL (table ``jids``). A job is a map with Function, Arguments, Target,
    Target-type, User and StartTime.
    """
    return _tables(ctx).jobs()


def get_minions(ctx: Context) -> list[str]:
    """Return the ids of all minions of which a return is stored in PostgreSQL (table ``salt_returns``)."""
    return _tables(ctx).minions()


def _tables(ctx: Context, ret: Mapping[str, object] | None = None) -> JobTables:
    settings = settings_of(ctx.functions["config.option"], "returner.postgres", ret, _DEFAULTS)
    return JobTables(_DIALECT, lambda: connected(settings))

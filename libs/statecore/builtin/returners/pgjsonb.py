"""Returner ``pgjsonb``: stores returns, jobs and events in PostgreSQL, in columns of type ``jsonb``.

Settings: ``returner.pgjsonb.host`` (default localhost), ``port`` (5432), ``user``, ``pass`` and ``db`` (all: salt),
``connect_timeout`` (10 seconds), ``sslmode``, ``sslcert``, ``sslkey``, ``sslrootcert``, ``sslcrl``. The tables are those of
Salt's returner; docs/returners.md has the statements that create them. The extra ``saltern-statecore[postgres]`` brings
the client.
"""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.types.json import Jsonb

from statecore.system.databases.job_tables import Dialect
from statecore.system.databases.postgres_client import connected
from statecore.system.databases.sql_returner import SqlReturner
from statecore.system.return_json import plain

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

_RETURNER = SqlReturner("returner.pgjsonb", _DEFAULTS, _DIALECT, connected)

returner = _RETURNER.returner
event_return = _RETURNER.event_return
save_load = _RETURNER.save_load
save_minions = _RETURNER.save_minions
get_load = _RETURNER.get_load
get_jid = _RETURNER.get_jid
get_fun = _RETURNER.get_fun
get_jids = _RETURNER.get_jids
get_minions = _RETURNER.get_minions
clean_old_jobs = _RETURNER.clean_old_jobs

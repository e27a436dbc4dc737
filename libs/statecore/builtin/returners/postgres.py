"""Returner ``postgres``: stores returns, jobs and events in PostgreSQL, as JSON in columns of text.

Settings: ``returner.postgres.host`` (default localhost), ``port`` (5432), ``user``, ``passwd`` and ``db`` (all: salt). The
tables are those of Salt's returner; docs/returners.md has the statements that create them. The extra
``saltern-statecore[postgres]`` brings the client.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.system.databases.job_tables import Dialect
from statecore.system.databases.postgres_client import connected
from statecore.system.databases.sql_returner import SqlReturner

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

_RETURNER = SqlReturner("returner.postgres", _DEFAULTS, _DIALECT, connected)

returner = _RETURNER.returner
event_return = _RETURNER.event_return
save_load = _RETURNER.save_load
save_minions = _RETURNER.save_minions
get_load = _RETURNER.get_load
get_jid = _RETURNER.get_jid
get_fun = _RETURNER.get_fun
get_jids = _RETURNER.get_jids
get_minions = _RETURNER.get_minions

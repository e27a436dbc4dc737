"""Returner ``mysql``: stores returns, jobs and events in MySQL or MariaDB.

Settings: ``mysql.host`` (default salt), ``port`` (3306), ``user``, ``pass`` and ``db`` (all: salt), ``ssl_ca``, ``ssl_cert``,
``ssl_key``; a ``host`` with a slash is the path of a socket. The tables are those of Salt's returner; docs/returners.md has
the statements that create them. The extra ``saltern-statecore[mysql]`` brings the client.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.system.databases.job_tables import Connection, Dialect
from statecore.system.databases.mysql_client import connected
from statecore.system.databases.sql_returner import SqlReturner

_DIALECT = Dialect(
    quote="`",
    on_known="ON DUPLICATE KEY UPDATE jid = jid",
    archive="CREATE TABLE IF NOT EXISTS {0}_archive LIKE {0}",
)

_DEFAULTS: Mapping[str, object] = {
    "host": "salt",
    "port": 3306,
    "user": "salt",
    "pass": "salt",
    "db": "salt",
    **dict.fromkeys(("ssl_ca", "ssl_cert", "ssl_key")),
}


def _connect(settings: Mapping[str, object]) -> Connection:
    # Configurations of stock minions switch settings off with the text None.
    return connected({name: None if str(value).lower() == "none" else value for name, value in settings.items()})


_RETURNER = SqlReturner("mysql", _DEFAULTS, _DIALECT, _connect)

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

"""External pillar ``mysql``: pillar data from queries of MySQL or MariaDB.

.. code-block:: yaml

    mysql:
      host: localhost     # or the path of a socket; this and the others are the defaults
      user: salt
      pass: salt
      db: salt
      port: 3306

    ext_pillar:
      - mysql:
          - SELECT field, value FROM pillars WHERE minion_id = %s
          - query: SELECT role, field, value FROM roles WHERE minion_id = %s
            depth: 2
            as_list: true

A query is a text, a list of text and depth, or a map: ``query``, ``depth``, ``as_list``, ``as_json``, ``with_lists``,
``ignore_null``. As a map of name to query, the data of each query is below its name. The
extra ``saltern-statecore[mysql]`` brings the client.
"""

from __future__ import annotations

from collections.abc import Mapping

import pymysql

from statecore.system.databases.job_tables import Connection
from statecore.system.databases.mysql_client import connected
from statecore.system.databases.pillar_rows import QueryPillar

_DEFAULTS: Mapping[str, object] = {"host": "localhost", "user": "salt", "pass": "salt", "db": "salt", "port": 3306}


def _connect(settings: Mapping[str, object]) -> Connection:
    tls = settings.get("ssl")
    names = {"ssl_ca": "ca", "ssl_cert": "cert", "ssl_key": "key"}
    more = {own: tls.get(name) for own, name in names.items()} if isinstance(tls, Mapping) else {}
    return connected({**settings, **more})


ext_pillar = QueryPillar("mysql", _DEFAULTS, _connect, pymysql.Error, "MySQL or MariaDB").ext_pillar

"""External pillar ``postgres``: pillar data from queries of PostgreSQL.

.. code-block:: yaml

    postgres:
      host: localhost     # or the directory of a socket; this and the others are the defaults
      user: salt
      pass: salt
      db: salt
      port: 5432

    ext_pillar:
      - postgres:
          - SELECT field, value FROM pillars WHERE minion_id = %s
          - query: SELECT role, field, value FROM roles WHERE minion_id = %s
            depth: 2
            as_list: true

A query is a text, a list of text and depth, or a map: ``query``, ``depth``, ``as_list``, ``as_json``, ``with_lists``,
``ignore_null``. As a map of name to query, the data of each query is below its name. The
extra ``saltern-statecore[postgres]`` brings the client.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from statecore.system.databases.pillar_rows import QueryPillar
from statecore.system.databases.postgres_client import connected

_DEFAULTS: Mapping[str, object] = {"host": "localhost", "user": "salt", "pass": "salt", "db": "salt", "port": 5432}

ext_pillar = QueryPillar("postgres", _DEFAULTS, connected, psycopg.Error, "PostgreSQL").ext_pillar

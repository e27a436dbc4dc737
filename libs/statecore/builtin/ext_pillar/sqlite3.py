"""External pillar ``sqlite3``: pillar data from queries of SQLite.

.. code-block:: yaml

    sqlite3:
      database: /var/lib/salt/pillar.db   # the default
      timeout: 5.0                        # seconds to wait for another process's lock

    ext_pillar:
      - sqlite3:
          - SELECT field, value FROM pillars WHERE minion_id = ?
          - query: SELECT role, field, value FROM roles WHERE minion_id = ?
            depth: 2
            as_list: true

A query is a text, a list of text and depth, or a map: ``query``, ``depth``, ``as_list``, ``as_json``, ``with_lists``,
``ignore_null``. As a map of name to query, the data of each query is below its name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from urllib.parse import quote

from statecore.model.values import to_float
from statecore.system.databases.pillar_rows import QueryPillar

_DEFAULTS: Mapping[str, object] = {"database": "/var/lib/salt/pillar.db", "timeout": 5.0}


def _connect(settings: Mapping[str, object]) -> sqlite3.Connection:
    # Read only: a database that does not exist is an error, and is not made.
    place = f"file:{quote(str(settings['database']))}?mode=ro"
    return sqlite3.connect(place, uri=True, timeout=to_float(settings["timeout"]))


ext_pillar = QueryPillar("sqlite3", _DEFAULTS, _connect, sqlite3.Error, "SQLite").ext_pillar

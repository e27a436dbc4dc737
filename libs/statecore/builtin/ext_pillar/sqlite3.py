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

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from functools import partial
from urllib.parse import quote

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.values import to_float
from statecore.system.databases.pillar_rows import Cursor, pillar_of_queries

_DEFAULTS: Mapping[str, object] = {"database": "/var/lib/salt/pillar.db", "timeout": 5.0}


def ext_pillar(
    ctx: Context, minion_id: str, pillar: dict[str, object], *args: object, **kwargs: object
) -> dict[str, object]:
    """Return the pillar data of the queries. The parameter ``?`` of each query is the minion's id.

    args
        queries whose data stands at the top of the pillar
    kwargs
        queries by the key of pillar for their data

    Raises CommandError if the database cannot be reached or refuses a query.
    """
    try:
        return pillar_of_queries(partial(_cursor, ctx), minion_id, args, kwargs)
    except sqlite3.Error as error:
        raise CommandError(f"a query of SQLite failed: {error}") from error


@contextlib.contextmanager
def _cursor(ctx: Context) -> Iterator[Cursor]:
    given = ctx.opts.get("sqlite3")
    settings = {**_DEFAULTS, **(given if isinstance(given, Mapping) else {})}
    # Read only: a database that does not exist is an error, and is not made.
    place = f"file:{quote(str(settings['database']))}?mode=ro"
    with contextlib.closing(sqlite3.connect(place, uri=True, timeout=to_float(settings["timeout"]))) as connection:
        yield connection.cursor()

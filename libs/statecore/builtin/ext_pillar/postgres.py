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

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial

import psycopg

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases.pillar_rows import Cursor, pillar_of_queries
from statecore.system.databases.postgres_client import connected

_DEFAULTS: Mapping[str, object] = {"host": "localhost", "user": "salt", "pass": "salt", "db": "salt", "port": 5432}


def ext_pillar(
    ctx: Context, minion_id: str, pillar: dict[str, object], *args: object, **kwargs: object
) -> dict[str, object]:
    """Return the pillar data of the queries. The parameter ``%s`` of each query is the minion's id.

    args
        queries whose data stands at the top of the pillar
    kwargs
        queries by the key of pillar for their data

    Raises CommandError if the database cannot be reached or refuses a query.
    """
    try:
        return pillar_of_queries(partial(_cursor, ctx), minion_id, args, kwargs)
    except psycopg.Error as error:
        raise CommandError(f"a query of PostgreSQL failed: {error}") from error


@contextlib.contextmanager
def _cursor(ctx: Context) -> Iterator[Cursor]:
    given = ctx.opts.get("postgres")
    settings = {**_DEFAULTS, **(given if isinstance(given, Mapping) else {})}
    with contextlib.closing(connected(settings)) as connection:
        yield connection.cursor()

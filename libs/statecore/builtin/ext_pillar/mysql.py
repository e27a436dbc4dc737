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

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial

import pymysql

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.databases.mysql_client import connected
from statecore.system.databases.pillar_rows import Cursor, pillar_of_queries

_DEFAULTS: Mapping[str, object] = {"host": "localhost", "user": "salt", "pass": "salt", "db": "salt", "port": 3306}


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
    except pymysql.Error as error:
        raise CommandError(f"a query of MySQL or MariaDB failed: {error}") from error


@contextlib.contextmanager
def _cursor(ctx: Context) -> Iterator[Cursor]:
    given = ctx.opts.get("mysql")
    settings = {**_DEFAULTS, **(given if isinstance(given, Mapping) else {})}
    tls = settings.get("ssl")
    names = {"ssl_ca": "ca", "ssl_cert": "cert", "ssl_key": "key"}
    more = {own: tls.get(name) for own, name in names.items()} if isinstance(tls, Mapping) else {}
    with contextlib.closing(connected({**settings, **more})) as connection:
        yield connection.cursor()

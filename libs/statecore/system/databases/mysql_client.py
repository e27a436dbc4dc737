"""Connections to MySQL and MariaDB for returners and external pillars, by PyMySQL (extra ``saltern-statecore[mysql]``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymysql

from statecore.model.errors import CommandError
from statecore.system.databases.job_tables import Connection

#: Seconds to wait for a server that does not answer.
_TIMEOUT = 10


def connected(settings: Mapping[str, Any]) -> Connection:
    """Return a new connection to the database that settings name: host (or path of a socket), port, user, pass, db,
    ssl_ca, ssl_cert, ssl_key.

    Raises CommandError, which names server and database, if it cannot be reached.
    """
    host = str(settings["host"])
    place = {"unix_socket": host} if host.startswith("/") else {"host": host, "port": int(settings["port"])}
    tls = {name: settings[name] for name in ("ssl_ca", "ssl_cert", "ssl_key") if settings.get(name)}
    try:
        connection: Connection = pymysql.connect(
            user=settings["user"],
            password=settings["pass"] or "",
            database=settings["db"],
            charset="utf8mb4",
            connect_timeout=_TIMEOUT,
            read_timeout=_TIMEOUT,
            write_timeout=_TIMEOUT,
            **place,
            **tls,
        )
    except (pymysql.Error, OSError) as error:
        raise CommandError(f"MySQL at {host}:{settings['port']}, database {settings['db']}: {error}") from error
    return connection

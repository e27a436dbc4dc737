"""Connections to PostgreSQL for returners and external pillars, by psycopg (extra ``saltern-statecore[postgres]``)."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from statecore.model.errors import CommandError
from statecore.system.databases.job_tables import Connection

#: Seconds to wait for a server that does not answer, unless the setting ``connect_timeout`` says otherwise.
_CONNECT_TIMEOUT = 10

#: Our name of a setting -> libpq's.
_PARAMETERS: Mapping[str, str] = {
    "host": "host",
    "port": "port",
    "db": "dbname",
    "user": "user",
    "pass": "password",
    "passwd": "password",
    **{name: name for name in ("connect_timeout", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl")},
}


def connected(settings: Mapping[str, object]) -> Connection:
    """Return a new connection to the PostgreSQL database that settings name: host, port, db, user, pass, sslmode and others.

    Raises CommandError, which names server and database, if it cannot be reached.
    """
    given = {_PARAMETERS[name]: value for name, value in settings.items() if value is not None and name in _PARAMETERS}
    parameters = {"connect_timeout": _CONNECT_TIMEOUT, **given}
    try:
        return psycopg.connect(
            psycopg.conninfo.make_conninfo("", **{key: str(value) for key, value in parameters.items()})
        )
    except psycopg.Error as error:
        where = f"{settings.get('host')}:{settings.get('port')}, database {settings.get('db')}"
        raise CommandError(f"PostgreSQL at {where}: {error}") from error

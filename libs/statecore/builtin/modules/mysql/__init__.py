"""MySQL and MariaDB (Salt's ``mysql`` module), by the client program of the host: ``mariadb`` or ``mysql``.

Connection arguments of every function: connection_host, connection_port, connection_user, connection_pass, connection_db,
connection_unix_socket, connection_charset, connection_default_file, connection_default_group; else ``mysql.host`` and its kin of
configuration and pillar. Secrets go through files that only the caller can read, never over a command line.
"""

from __future__ import annotations

from statecore.builtin.modules.mysql import grants, queries, schemas, users
from statecore.model.context import Context

#: The modules whose functions make up this one.
PARTS = (queries, users, grants, schemas)


def available(ctx: Context) -> str | None:
    """None where the host has a client."""
    if ctx.host.which("mariadb") or ctx.host.which("mysql"):
        return None
    return "the host has no client program of MySQL (mariadb, mysql): install mariadb-client"

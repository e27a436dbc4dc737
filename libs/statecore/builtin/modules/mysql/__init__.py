"""MySQL and MariaDB: Salt's ``mysql`` execution module, through the host's client program (``mariadb`` or
``mysql``).

Every function takes the connection arguments connection_host, connection_port, connection_user, connection_pass,
connection_db, connection_unix_socket, connection_charset, connection_default_file and connection_default_group. If an
argument is missing, the option ``mysql.host``, ``mysql.port`` and so on of the minion's configuration or pillar is
used. Secrets are passed to the client in a temporary file with mode 0600, never on a command line.
"""

from __future__ import annotations

from statecore.builtin.modules.mysql import grants, queries, schemas, users
from statecore.model.context import Context

#: The modules whose public functions together are the execution module ``mysql``.
PARTS = (queries, users, grants, schemas)


def available(ctx: Context) -> str | None:
    """Return None if the host has a MySQL client program; else return the reason as text."""
    if ctx.host.which("mariadb") or ctx.host.which("mysql"):
        return None
    return "the host has no client program of MySQL (mariadb, mysql): install mariadb-client"

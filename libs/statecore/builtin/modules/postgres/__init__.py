"""PostgreSQL, through the host's client program ``psql``: Salt's ``postgres`` execution module.

Every function has the connection arguments user, host, port, maintenance_db, password and runas. Their defaults are the
options ``postgres.user`` etc. of configuration and pillar. For a server on the host itself psql runs as the system user
``postgres``. Statements are passed on standard input, passwords in files that only psql's user can read; neither is on
a command line.
"""

from __future__ import annotations

from statecore.builtin.modules.postgres import (
    clusters,
    databases,
    directories,
    extensions,
    languages,
    privileges,
    roles,
    schemas,
    tablespaces,
)
from statecore.model.context import Context

#: The modules that define the functions of ``postgres``.
PARTS = (databases, roles, extensions, schemas, privileges, tablespaces, languages, directories, clusters)

holds_any_privilege = privileges.holds_any_privilege

#: Internal: the state calls it.
ALIASES = {"_holds_any_privilege": "holds_any_privilege"}


def available(ctx: Context) -> str | None:
    """Return None if the host has the program psql; else return the reason as text."""
    # Configuration may name another directory; that is checked when psql runs.
    if (
        ctx.host.which("psql")
        or ctx.host.which("pg_createcluster")
        or ctx.opts.get("postgres.bins_dir")
        or "postgres" in ctx.pillar
    ):
        return None
    return "the host has no psql: install postgresql-client"

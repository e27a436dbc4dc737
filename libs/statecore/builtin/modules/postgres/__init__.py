"""PostgreSQL (Salt's ``postgres`` module), by the host's ``psql``.

Connection arguments of every function: user, host, port, maintenance_db, password, runas; else ``postgres.user`` and its kin of
configuration and pillar. A server of the host itself is asked as the system user ``postgres``. Statements and secrets go through
standard input and files that only the caller can read, never over a command line.
"""

from __future__ import annotations

from statecore.builtin.modules.postgres import (
    databases,
    directories,
    extensions,
    languages,
    privileges,
    queries,
    roles,
    schemas,
    tablespaces,
)
from statecore.model.context import Context

#: The modules whose functions make up this one.
PARTS = (queries, databases, roles, extensions, schemas, privileges, tablespaces, languages, directories)


def available(ctx: Context) -> str | None:
    """None where the host has psql."""
    # Where it lies elsewhere, configuration says so: that is looked at when it is run.
    if ctx.host.which("psql") or ctx.opts.get("postgres.bins_dir") or "postgres" in ctx.pillar:
        return None
    return "the host has no psql: install postgresql-client"

"""Data directories of PostgreSQL (Salt's ``postgres_initdb`` state)."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import roles


def available(ctx: Context) -> str | None:
    """None where the postgres module works."""
    return roles.module_missing(ctx)


def present(
    ctx: Context,
    name: str,
    user: str | None = None,
    password: str | None = None,
    auth: str = "password",
    encoding: str = "UTF8",
    locale: str | None = None,
    runas: str | None = None,
    waldir: str | None = None,
    checksums: bool = False,
) -> Plan:
    """A directory that a server can start from; what is there is left as it is.

    name
        the directory; ``runas`` (postgres) must be able to make it, or own it
    user, password
        the first user of the server, who may do everything; ``auth: password`` takes a password
    auth
        how the server lets users in: password, md5, scram-sha-256, trust, peer
    waldir
        a directory of its own for the write-ahead log
    checksums
        the server checks what it reads
    """
    if not name.startswith("/"):
        return Plan.failed(f"{name} is not an absolute path")
    if ctx.call("postgres.datadir_exists", name):
        return Plan.unchanged(f"Postgres data directory {name} is already present")
    changes = {name: "Present"}

    def make() -> Outcome:
        try:
            ctx.call(
                "postgres.datadir_init",
                name,
                auth=auth,
                user=user,
                password=password,
                encoding=encoding,
                locale=locale,
                waldir=waldir,
                checksums=checksums,
                runas=runas,
            )
        except (CommandError, InvocationError, HostError) as error:
            return Outcome(f"Postgres data directory {name} initialization failed ({error})", ok=False)
        return Outcome(f"Postgres data directory {name} has been initialized", changes)

    would = f"Postgres data directory {name} is set to be initialized"
    return Plan.change(would, [Step(f"initialize {name}", make)], changes)

"""Salt's ``postgres_initdb`` state: data directories of PostgreSQL."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.databases import roles


def available(ctx: Context) -> str | None:
    """Return None if the ``postgres`` execution module is available, else the reason as text."""
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
    """Initialize a data directory for a PostgreSQL server. An existing data directory is not changed.

    name
        path of the directory. The user ``runas`` (default postgres) must be able to create it, or own it.
    user, password
        superuser of the new server; ``auth: password`` requires a password
    auth
        authentication method of the server: password, md5, scram-sha-256, trust or peer
    waldir
        separate directory for the write-ahead log
    checksums
        True: the server stores and checks checksums of its data pages
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

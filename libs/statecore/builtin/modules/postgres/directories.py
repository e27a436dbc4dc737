"""Functions of ``postgres`` for data directories, which the host's program initdb creates before a server runs."""

from __future__ import annotations

import os
from pathlib import Path

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError

#: Default owner of a data directory.
_OWNER = "postgres"

#: Debian's directory with the programs of each version.
_VERSIONS = "/usr/lib/postgresql"

#: Default of ``postgres.timeout``: seconds that initdb may take.
_TIMEOUT = 300.0


def datadir_exists(ctx: Context, name: str) -> bool:
    """Return whether a directory is the data directory of a PostgreSQL server.

    CLI Example:

        salt '*' postgres.datadir_exists '/var/lib/pgsql/data'
    """
    return all(ctx.host.path(f"{name}/{file}").is_file() for file in ("PG_VERSION", "postgresql.conf"))


def datadir_init(
    ctx: Context,
    name: str,
    auth: str = "password",
    user: str | None = None,
    password: str | None = None,
    encoding: str = "UTF8",
    locale: str | None = None,
    waldir: str | None = None,
    checksums: bool = False,
    runas: str | None = None,
) -> bool:
    """Create the data directory of a PostgreSQL server. Return True; False if it exists.

    ``auth`` is the server's authentication method. ``user`` and ``password`` are its first user. ``runas`` is the
    system user who owns the directory (default postgres). Raise CommandError with initdb's message.

    CLI Example:

        salt '*' postgres.datadir_init '/var/lib/pgsql/data'
    """
    if datadir_exists(ctx, name):
        return False
    owner = runas or _OWNER
    words = [
        _initdb(ctx),
        f"--pgdata={name}",
        f"--username={user or owner}",
        f"--auth={auth}",
        f"--encoding={encoding}",
    ]
    words += [f"--locale={locale}"] if locale is not None else []
    words += ["--waldir", waldir] if waldir is not None else []
    words += ["--data-checksums"] if checksums else []
    file: Path | None = None
    try:
        if password is not None:
            shown = f"/tmp/.saltern-postgres-{os.urandom(8).hex()}"
            file = ctx.host.path(shown)
            who = owner if os.geteuid() == 0 else None
            managed_file.replace(ctx.host, file, f"{password}\n".encode(), Attributes(who, None, 0o600))
            words.append(f"--pwfile={shown}")
        timeout = float(ctx.call("config.option", "postgres.timeout", None) or _TIMEOUT)
        done = ctx.host.run(words, runas=owner, cwd="/", timeout=timeout, env={"LC_ALL": "C.UTF-8"})
    finally:
        if file is not None:
            file.unlink(missing_ok=True)
    if done.retcode or done.timed_out:
        message = "no end in time" if done.timed_out else done.stderr.strip() or done.stdout.strip()
        raise CommandError(message.removeprefix("initdb: error: "))
    return True


def _initdb(ctx: Context) -> str:
    """Return the path of the program initdb: the configured path, else the one that is found in PATH, else Debian's
    newest version. Raise CommandError if there is none.
    """
    directory = ctx.call("config.option", "postgres.bins_dir", None)
    if directory:
        return f"{str(directory).rstrip('/')}/initdb"
    if found := ctx.host.which("initdb"):
        return found
    real_path = ctx.host.path(_VERSIONS)
    versions = [each.name for each in real_path.iterdir() if each.name.isdecimal()] if real_path.is_dir() else []
    for version in sorted(versions, key=int, reverse=True):
        if ctx.host.which(program := f"{_VERSIONS}/{version}/bin/initdb"):
            return program
    raise CommandError(
        "the host has no initdb: install postgresql, or set the option postgres.bins_dir to its directory"
    )

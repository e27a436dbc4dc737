"""Functions of ``postgres`` for the clusters of Debian (postgresql-common): servers with a version, a name and a port."""

from __future__ import annotations

import logging
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)


def cluster_create(
    ctx: Context,
    version: str | float,
    name: str = "main",
    port: int | None = None,
    locale: str | None = None,
    encoding: str | None = None,
    datadir: str | None = None,
    allow_group_access: bool | None = None,
    data_checksums: bool | None = None,
    wal_segsize: int | str | None = None,
) -> dict[str, Any] | bool:
    """Make a PostgreSQL cluster of Debian. Return a map with pid, retcode, stdout and stderr of pg_createcluster,
    False if it failed.

    datadir
        directory of its data
    allow_group_access, data_checksums, wal_segsize
        options of initdb

    CLI Example:

        salt '*' postgres.cluster_create 15 main port=5433
    """
    values = {"--port": port, "--locale": locale, "--encoding": encoding, "--datadir": datadir}
    words = [word for option, value in values.items() if value for word in (option, str(value))]
    initdb = ["--allow-group-access"] if allow_group_access is True else []
    initdb += ["--data-checksums"] if data_checksums is True else []
    initdb += ["--wal-segsize", str(wal_segsize)] if wal_segsize else []
    result = _run(ctx, "pg_createcluster", [*words, str(version), name, *(["--", *initdb] if initdb else [])])
    if result["retcode"]:
        log.error("Error creating a Postgresql cluster %s/%s: %s", version, name, result["stderr"])
        return False
    return result


def cluster_list(ctx: Context, verbose: bool = False) -> Any:
    """Return the names of the PostgreSQL clusters of Debian as ``version/name``; with ``verbose`` a map of each to a
    map with ``port``, ``status``, ``user``, ``datadir`` and ``log``.

    CLI Example:

        salt '*' postgres.cluster_list verbose=True
    """
    result = _run(ctx, "pg_lsclusters", ["--no-header"])
    if result["retcode"]:
        log.error("Error listing clusters: %s", result["stderr"])
    found = {}
    for line in lines_of(str(result["stdout"])):
        words = line.split(None, 6)
        if len(words) == 7:
            version, name, port, status, user, datadir, logfile = words
            found[f"{version}/{name}"] = {
                "port": int(port),
                "status": status,
                "user": user,
                "datadir": datadir,
                "log": logfile,
            }
    return found if verbose else list(found)


def cluster_exists(ctx: Context, version: str | float, name: str = "main") -> bool:
    """Return whether the host has a PostgreSQL cluster of this version and name.

    CLI Example:

        salt '*' postgres.cluster_exists 15 main
    """
    return f"{version}/{name}" in cluster_list(ctx)


def cluster_remove(ctx: Context, version: str | float, name: str = "main", stop: bool = False) -> dict[str, Any]:
    """Remove a PostgreSQL cluster of Debian with its data. Return a map with pid, retcode, stdout and stderr of
    pg_dropcluster, and the sentence ``changes`` if it succeeded.

    stop
        True: stop a cluster that runs; without it, pg_dropcluster fails

    CLI Example:

        salt '*' postgres.cluster_remove 15 main stop=True
    """
    result = _run(ctx, "pg_dropcluster", [*(["--stop"] if stop else []), str(version), name])
    if result["retcode"]:
        log.error("Error removing a Postgresql cluster %s/%s: %s", version, name, result["stderr"])
        return result
    return result | {"changes": f"Successfully removed cluster {version}/{name}"}


def _run(ctx: Context, program: str, words: list[str]) -> dict[str, Any]:
    found = ctx.host.which(program)
    if found is None:
        raise CommandError(f"the host has no program {program}: install postgresql-common")
    result: dict[str, Any] = ctx.call("cmd.run_all", [found, *words], python_shell=False, ignore_retcode=True)
    return result

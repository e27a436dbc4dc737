"""Salt's ``postgres_cluster`` states: clusters of PostgreSQL on Debian (postgresql-common)."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def present(
    ctx: Context,
    version: str | float,
    name: str,
    port: int | None = None,
    encoding: str | None = None,
    locale: str | None = None,
    datadir: str | None = None,
    allow_group_access: bool | None = None,
    data_checksums: bool | None = None,
    wal_segsize: int | str | None = None,
) -> Plan:
    """Create the cluster ``version/name`` of PostgreSQL. An existing cluster is not changed; the state fails if its
    port or data directory differs.

    version
        version of PostgreSQL, such as '15'
    port, encoding, locale, datadir
        port, encoding, locale and directory of data of a new cluster
    allow_group_access, data_checksums, wal_segsize
        options of initdb for a new cluster
    """
    full = f"{version}/{name}"
    try:
        known = ctx.call("postgres.cluster_list", verbose=True).get(full)
    except CommandError as error:
        return Plan.failed(str(error))
    if known is not None:
        if (port and int(port) != known["port"]) or (datadir and datadir != known["datadir"]):
            return Plan.failed(f"Cluster {full} has wrong parameters which couldn't be changed on fly.")
        return Plan.unchanged(f"Cluster {full} is already present")
    changes = {full: "Present"}
    given = {
        "port": port,
        "locale": locale,
        "encoding": encoding,
        "datadir": datadir,
        "allow_group_access": allow_group_access,
        "data_checksums": data_checksums,
        "wal_segsize": wal_segsize,
    }

    def work() -> Outcome:
        if not ctx.call("postgres.cluster_create", version, name, **given):
            return Outcome(f"Failed to create cluster {full}", ok=False)
        return Outcome(f"The cluster {full} has been created", changes)

    return Plan.change(f"Cluster {full} is set to be created", [Step(f"make the cluster {full}", work)], changes)


def absent(ctx: Context, version: str | float, name: str) -> Plan:
    """Stop the cluster ``version/name`` of PostgreSQL and remove it with its data. Nothing happens if it does not
    exist.

    version
        version of PostgreSQL, such as '15'
    """
    full = f"{version}/{name}"
    try:
        if not ctx.call("postgres.cluster_exists", version, name):
            return Plan.unchanged(f"Cluster {full} is not present, so it cannot be removed")
    except CommandError as error:
        return Plan.failed(str(error))
    changes = {name: "Absent"}

    def work() -> Outcome:
        answer = ctx.call("postgres.cluster_remove", version, name, True)
        if answer["retcode"]:
            return Outcome(f"Failed to remove cluster {full}: {answer['stderr']}", ok=False)
        return Outcome(f"Cluster {full} has been removed", changes)

    return Plan.change(f"Cluster {full} is set to be removed", [Step(f"remove the cluster {full}", work)], changes)

"""`make cluster` and its neighbours: python -m tests.cluster.run build | control | up | down | status"""

from __future__ import annotations

import sys

from tests.cluster import programs
from tests.cluster.cluster import Cluster, leftovers
from tests.cluster.node import tree
from tests.cluster.places import STATE, ClusterError


def _build() -> None:
    programs.build()
    tree()


def _up() -> None:
    cluster = Cluster()
    cluster.up()
    sys.stdout.write(f"{cluster.kubectl('get', 'nodes', '-o', 'wide')}\nkubectl of this cluster: {STATE}/kubectl\n")


def _status() -> None:
    cluster = Cluster()
    if cluster.answers():
        sys.stdout.write(cluster.kubectl("get", "nodes,pods", "--all-namespaces", "-o", "wide"))
        return
    sys.stdout.write("\n".join(["no cluster answers", *leftovers()]) + "\n")
    raise SystemExit(1)


_VERBS = {
    "build": _build,
    "control": lambda: Cluster().control(),
    "up": _up,
    "down": lambda: Cluster().down(),
    "status": _status,
}


def main() -> None:
    """Do what the first word says. Exit code 64: no such word; 1: it failed."""
    if len(sys.argv) != 2 or sys.argv[1] not in _VERBS:
        sys.stderr.write(f"{__doc__}\n")
        raise SystemExit(64)
    try:
        _VERBS[sys.argv[1]]()
    except ClusterError as error:
        sys.stderr.write(f"cluster: {error}\n")
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()

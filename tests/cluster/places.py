"""Where the cluster of `make cluster` keeps things, and how its processes are run."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

#: This checkout.
ROOT = Path(__file__).resolve().parents[2]

#: Sources of what is built: go.mod, and our two programs.
SOURCES = Path(__file__).resolve().parent

#: What is built once and kept: programs, images, the tree of a node.
CACHE = Path(os.environ.get("SALTERN_CLUSTER_CACHE", "/var/cache/saltern-cluster"))

#: What one cluster writes. `make cluster-down` removes it.
STATE = Path(os.environ.get("SALTERN_CLUSTER_DIR", "/var/tmp/saltern-cluster"))

#: Network namespace of the control plane; those of nodes have the node's name behind it.
NAME = "saltern-cluster"

#: Nodes, which are the hosts of the example's pillar.
NODES = ("web1", "web2")

#: Addresses: of nodes and the control plane, of pods by node, of Services.
API = "10.77.0.1"
ADDRESSES = {node: f"10.77.0.{11 + number}" for number, node in enumerate(NODES)}
POD_RANGES = {node: f"10.66.{1 + number}.0/24" for number, node in enumerate(NODES)}
PODS = "10.66.0.0/16"
SERVICES = "10.96.0.0/16"
DNS = "10.96.0.10"


class ClusterError(Exception):
    """A step of the cluster that failed; the text says which, and what it said."""


def run(
    words: Sequence[str | Path],
    *,
    stdin: str | None = None,
    seconds: float = 300,
    check: bool = True,
    cwd: Path | None = None,
) -> str:
    """stdout of a program. Raises ClusterError with both streams where it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=cwd,
    )
    if check and done.returncode:
        raise ClusterError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def until(condition: Callable[[], T | None], seconds: float, what: str, pause: float = 0.5) -> T:
    """The first true value of ``condition``. Raises ClusterError at the deadline, naming ``what`` and the last error."""
    deadline = time.monotonic() + seconds
    last: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if value := condition():
                return value
        except (ClusterError, OSError, subprocess.TimeoutExpired) as error:
            last = error
        time.sleep(pause)
    raise ClusterError(f"{what}: not within {seconds:g} seconds" + (f"; last: {last}" if last else ""))


def namespace(name: str = "") -> str:
    """Name of a network namespace: the control plane's, or a node's."""
    return f"{NAME}-{name}" if name else NAME


def inside(name: str, words: Sequence[str | Path]) -> list[str]:
    """A command, in a network namespace of the cluster."""
    return ["nsenter", f"--net=/run/netns/{namespace(name)}", *map(str, words)]

"""The cluster of the tests: the one that runs, or one that is started for them and ended after them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.ha import Ha
from tests.cluster.places import ClusterError

_USED = pytest.StashKey[list[Cluster]]()

#: Namespaces of the manifests.
NAMESPACES = ("saltern", "saltern-minions")


@pytest.fixture(scope="session")
def api(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A control plane: an API to apply to. What was not there before ends with the tests, unless SALTERN_KEEP_CLUSTER is set."""
    if os.geteuid() != 0:
        pytest.skip("only root starts a cluster")
    made = Cluster()
    request.session.stash[_USED] = [made]
    found = made.answers()
    try:
        made.control()
        yield made
    finally:
        if not found and not os.environ.get("SALTERN_KEEP_CLUSTER"):
            made.down()


@pytest.fixture(scope="session")
def cluster(api: Cluster) -> Cluster:
    """Nodes that are ready, with this checkout's images; no overlay is applied."""
    api.up()
    return api


@pytest.fixture(scope="session")
def ha(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Ha:
    """overlays/ha, its minions accepted."""
    made = Ha(cluster, tmp_path_factory.mktemp("overlay"))
    made.install()
    return made


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test shows the pods, and what the newest events say."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for made in item.session.stash.get(_USED, []):
            report.sections.append(("cluster", _seen(made)))


def _seen(cluster: Cluster) -> str:
    parts = []
    for words in (("get", "pods", "-A", "-o", "wide"), ("get", "events", "-A", "--sort-by=.lastTimestamp")):
        try:
            parts.append("\n".join(cluster.kubectl(*words, seconds=60).splitlines()[-60:]))
        except (ClusterError, OSError, subprocess.TimeoutExpired) as error:
            parts.append(str(error))
    return "\n\n".join(parts)

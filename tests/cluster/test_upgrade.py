"""From an earlier version to this one and back, by the commands of docs/operations/kubernetes.md, while jobs are given."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from tests.cluster import images
from tests.cluster.cluster import Cluster
from tests.cluster.lab import Lab
from tests.cluster.places import NODES, SOURCES, ClusterError, until
from tests.k8s.rendered import K8S
from tests.k8s_run.traffic import Traffic
from tests.roles.versions import is_present, last_release

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]

#: Where the earlier version is named.
BEFORE = SOURCES / "before"


class Upgraded(Lab):
    """overlays/lab of an earlier commit, with the images of that commit."""

    def __init__(self, cluster: Cluster, directory: Path, commit: str) -> None:
        super().__init__(cluster)
        self.tag = images.earlier(commit)
        images.unpack(commit, directory)
        self.before = directory / "k8s/overlays/lab"
        manifest = self.before / "kustomization.yaml"
        manifest.write_text(re.sub(r"newTag: dev\b", f"newTag: {self.tag}", manifest.read_text("utf-8")))

    def install(self) -> None:
        """The earlier version, from nothing."""
        self.cluster.empty_for(f"lab {self.tag}")
        self.cluster.import_project(self.tag)
        self.cluster.kubectl("apply", "-k", str(self.before))
        self.accept()

    def change(self, overlay: Path) -> None:
        """What the page says of an upgrade: apply, wait for the workers, then for all; the minions follow by themselves."""
        # A Job cannot be changed: a run that is over makes way, as for a new key.
        self.cluster.kubectl("-n", "saltern", "delete", "job", "saltern-keygen", "--ignore-not-found")
        self.cluster.kubectl("apply", "-k", str(overlay))
        self.cluster.kubectl(
            "-n", "saltern", "rollout", "status", "deploy/saltern-mworker", "--timeout=10m", seconds=630
        )
        self.await_rolled()
        rollout = ("rollout", "status", "ds/saltern-minion", "--timeout=10m")
        self.cluster.kubectl("-n", "saltern-minions", *rollout, seconds=630)

    def tags(self) -> set[str]:
        """Tags of this project's images that run."""
        found = [
            one["image"]
            for space in ("saltern", "saltern-minions")
            for pod in self.cluster.pods(space)
            if pod["status"]["phase"] == "Running"
            for one in pod["spec"]["containers"]
        ]
        return {image.rpartition(":")[2] for image in found}


@pytest.fixture(scope="module")
def upgraded(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Upgraded:
    """The earlier version, its minions accepted."""
    commit = last_release(BEFORE)
    if not is_present(commit):
        pytest.skip(f"commit {commit} of {BEFORE} is not in this clone")
    made = Upgraded(cluster, tmp_path_factory.mktemp("before"), commit)
    made.install()
    return made


def test_no_job_is_lost_on_the_way_there_and_back(upgraded: Upgraded, capsys: pytest.CaptureFixture[str]) -> None:
    assert upgraded.tags() == {upgraded.tag}
    for node in NODES:
        upgraded.cluster.nodes[node].path("/var/tmp/ran").unlink(missing_ok=True)
    rows = []
    with Traffic(upgraded.command, NODES, until) as traffic:
        traffic.await_more(3)
        for name, overlay, tag in (
            ("to this version", K8S / "overlays/lab", "dev"),
            ("back", upgraded.before, upgraded.tag),
        ):
            begun, refused = time.monotonic(), len(traffic.accounts.refused)
            upgraded.change(overlay)
            took = time.monotonic() - begun
            until(lambda tag=tag: upgraded.tags() == {tag}, 120, f"every pod is of {tag}")  # type: ignore[misc]
            traffic.await_more(3)
            more = len(traffic.accounts.refused) - refused
            rows.append(f"| {name} | {took:.0f} | {traffic.longest_pause(begun):.1f} | {more} |")
    faults: list[str] = []

    def settled() -> bool:
        jids = list(traffic.accounts.acknowledged.values())
        faults[:] = traffic.faults(upgraded.returned(jids), upgraded.ran())
        return not faults

    try:
        until(settled, 400, "every acknowledged job has run once and has its results")
    except ClusterError:
        pytest.fail(f"{traffic.given()} jobs acknowledged:\n" + "\n".join(faults))
    head = "| Upgrade | Takes, s | Longest time between two jobs, s | Commands without a JID |\n|---|---|---|---|\n"
    with capsys.disabled():
        sys.stdout.write("\n" + head + "\n".join(rows) + f"\n\n{traffic.given()} jobs acknowledged\n")

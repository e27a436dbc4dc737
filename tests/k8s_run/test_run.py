"""overlays/lab on podman, with real images: what an operator does first; then no job is lost, while pods roll and Redis is killed.

What it shows: that the manifests' pods start with their commands, users, files and Secrets, find each other by the names of
Services, become ready by their probes, and lose nothing when they are replaced as a Deployment replaces them. What it does not
show is in ``fields.py``: scheduling, network policies, rights of ServiceAccounts, the node's own process 1.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable

import pytest

from tests.k8s_run.adapter import NODES
from tests.k8s_run.cluster import Cluster, until
from tests.k8s_run.traffic import ASK, Traffic

pytestmark = [pytest.mark.k8srun, pytest.mark.timeout(3600)]


def test_every_pod_of_the_overlay_is_there(cluster: Cluster) -> None:
    running = json.loads(cluster.podman("pod", "ps", "--format", "json"))
    mine = {
        pod["Name"]: pod["Status"]
        for pod in running
        if pod["Name"] in {one for found in cluster.pods.values() for one in found}
    }
    assert mine == {pod: "Running" for workload in cluster.workloads.values() for pod in workload.pods}


def test_the_cage_of_the_manifests_is_that_of_the_processes(cluster: Cluster) -> None:
    for name in ("saltern-publisher", "saltern-reqserver", "saltern-mworker", "saltern-redis", "saltern-front"):
        (pod, *_) = cluster.pods[name]
        security = cluster.workloads[name].spec["securityContext"]
        text = cluster.podman("exec", cluster.container(pod), "cat", "/proc/self/status", "/proc/self/mounts")
        status = dict(re.findall(r"^(\w+):\s+(.*)$", text, re.MULTILINE))
        assert set(status["Uid"].split()) == {str(security["runAsUser"])}, name
        assert {int(status[key], 16) for key in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")} == {0}, name
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), name
        assert re.search(r"^overlay / overlay ro,", text, re.MULTILINE), name


def test_two_minions_sign_in(cluster: Cluster) -> None:
    def waiting() -> bool:
        return bool(sorted(json.loads(cluster.cli("salt-key", "-L", "--out", "json"))["minions_pre"]) == list(NODES))

    until(waiting, 180, "both minions' keys wait for acceptance")
    cluster.cli("salt-key", "-yA")
    cluster.await_ready()
    assert cluster.salt("*", "test.ping") == dict.fromkeys(NODES, True)


def test_the_examples_highstate(cluster: Cluster) -> None:
    runs = cluster.salt("-t", "300", "*", "state.apply", seconds=400)
    assert sorted(runs) == list(NODES)
    for minion, run in runs.items():
        assert isinstance(run, dict), (minion, run)
        assert {tag: result["comment"] for tag, result in run.items() if result["result"] is not True} == {}, minion
        assert "nginx" in {result["__id__"] for result in run.values()}
    for node, title in (("web1", "The shop"), ("web2", "The blog")):
        assert title in (cluster.node(node) / "var/www/html/index.html").read_text()


def test_a_pod_whose_configuration_is_no_good_says_so_and_stays(cluster: Cluster) -> None:
    """As the kubelet asks: /readyz at the pod's address, for as long as the manifest says."""
    (key,) = [
        (kind, name) for kind, name in cluster.contents if kind == "ConfigMap" and name.startswith("saltern-master-")
    ]
    broken = {**cluster.contents, key: {**cluster.contents[key], "60-mine.conf": b"file_roots: 5\n"}}
    workload, pod = cluster.workloads["saltern-mworker"], "saltern-mworker-broken"
    cluster.play(workload, pod, broken)
    try:
        until(
            lambda: "60-mine.conf, line 1: option 'file_roots' must be" in cluster.unready(pod),
            120,
            "/readyz says what is wrong",
        )
    finally:
        cluster.stop(workload, pod)


def returned(cluster: Cluster, jids: list[str]) -> dict[str, dict[str, str]]:
    """Results that the job cache has, by JID and minion."""
    container = cluster.container(cluster.pods["saltern-mworker"][0])
    words = ["exec", "--interactive", container, "python3", "-c", ASK]
    found: dict[str, dict[str, str]] = json.loads(cluster.podman(*words, stdin=json.dumps(jids)))
    return found


def ran(cluster: Cluster) -> dict[str, list[int]]:
    """Numbers of the jobs that left them, by host."""
    return {node: [int(line) for line in (cluster.node(node) / "var/tmp/ran").read_text().split()] for node in NODES}


DISTURBANCES: dict[str, Callable[[Cluster], None]] = {
    "mworkers are rolled": lambda cluster: cluster.roll("saltern-mworker"),
    "the publisher is rolled": lambda cluster: cluster.roll("saltern-publisher"),
    "the reqserver is rolled": lambda cluster: cluster.roll("saltern-reqserver"),
    "the event publisher is rolled": lambda cluster: cluster.roll("saltern-eventpublisher"),
    "Redis is killed": lambda cluster: cluster.crash("saltern-redis-0"),
    "a worker is killed": lambda cluster: cluster.crash(cluster.pods["saltern-mworker"][0]),
}


def test_no_job_is_lost(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    took: dict[str, float] = {}
    with Traffic(cluster.command, NODES, until) as traffic:
        traffic.await_more(3)
        for name, disturb in DISTURBANCES.items():
            begun = time.monotonic()
            disturb(cluster)
            traffic.await_more(3)
            took[name] = time.monotonic() - begun
    accounts = traffic.accounts
    faults: list[str] = []

    def settled() -> bool:
        faults[:] = accounts.faults(returned(cluster, list(accounts.acknowledged.values())), ran(cluster))
        return not faults

    begun = time.monotonic()
    try:
        until(settled, 180, "every acknowledged job has its results")
    except pytest.fail.Exception:
        pytest.fail(
            f"{len(accounts.acknowledged)} jobs acknowledged, {len(accounts.refused)} refused:\n" + "\n".join(faults)
        )
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(accounts.acknowledged)} jobs acknowledged, each has run once and returned on {len(NODES)} minions, the last "
            f"{time.monotonic() - begun:.1f} s after the end; {len(accounts.refused)} commands got no JID: {accounts.refused}\n"
            "until three more jobs were given: "
            + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items())
            + "\n"
        )
    cluster.await_ready()

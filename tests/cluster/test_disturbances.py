"""What a cluster does to pods, while jobs are given: none is lost, none runs twice, and the pauses are measured."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import pytest

from tests.cluster.cluster import PATIENCE, Cluster
from tests.cluster.lab import ROLES, SPACES, Lab
from tests.cluster.node import tree
from tests.cluster.places import NODES, ClusterError, until
from tests.cluster.programs import build
from tests.k8s_run.traffic import ASK, Traffic

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def lab(cluster: Cluster) -> Lab:
    """overlays/lab, its minions accepted."""
    made = Lab(cluster)
    made.install()
    return made


def _restart(name: str) -> Callable[[Lab], None]:
    def restart(lab: Lab) -> None:
        lab.cluster.kubectl("-n", "saltern", "rollout", "restart", name)
        lab.await_rolled(name)

    return restart


def _node_of(lab: Lab, component: str) -> str:
    node: str = lab.cluster.pods("saltern", component=component)[0]["spec"]["nodeName"]
    return node


def _kill(component: str) -> Callable[[Lab], None]:
    """Kill a role's process with -9; the kubelet starts the container again."""

    def kill(lab: Lab) -> None:
        (pod, *_) = lab.cluster.pods("saltern", component=component)
        (status,) = pod["status"]["containerStatuses"]
        name, before = pod["metadata"]["name"], status["restartCount"]
        container = status["containerID"].removeprefix("containerd://")
        node = lab.cluster.nodes[pod["spec"]["nodeName"]]
        # Its columns: the container, the number of its first process, the state.
        tasks = dict(line.split()[:2] for line in node.run("ctr", "-n", "k8s.io", "task", "list").splitlines())
        node.run("kill", "-9", tasks[container])

        def again() -> bool:
            (now,) = lab.cluster.get("pod", name, namespace="saltern")["status"]["containerStatuses"]
            return bool(now["restartCount"] > before and now["ready"])

        until(again, PATIENCE, f"{name} started again", pause=1)

    return kill


def _move_redis(lab: Lab) -> None:
    """Another node for Redis: its volume is one that every node sees."""
    here = _node_of(lab, "redis")
    lab.cluster.kubectl("cordon", here)
    try:
        lab.cluster.kubectl("-n", "saltern", "delete", "pod", "saltern-redis-0", seconds=200)
        until(lambda: not lab.cluster.unready("saltern"), PATIENCE, "Redis is ready elsewhere", pause=1)
        assert _node_of(lab, "redis") != here
    finally:
        lab.cluster.kubectl("uncordon", here)


def _drain(lab: Lab) -> None:
    """The node of the reqserver, by the usual command; its pods come up on the other one."""
    node = _node_of(lab, "reqserver")
    try:
        words = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=600s")
        lab.cluster.kubectl(*words, seconds=630)
        left = [one for one in lab.cluster.pods("saltern") if one["spec"].get("nodeName") == node]
        assert left == []
        until(lambda: not lab.cluster.unready("saltern"), PATIENCE, "every pod is ready elsewhere", pause=1)
    finally:
        lab.cluster.kubectl("uncordon", node)


def _power_cut(lab: Lab) -> None:
    """The reqserver's node without a word, and back as a machine that boots."""
    node = lab.cluster.nodes[_node_of(lab, "reqserver")]
    node.stop(cleanly=False)
    node.start(build(), tree())
    until(lambda: not lab.cluster.unready("kube-system", *SPACES), PATIENCE, "every pod is ready again", pause=1)


def _new_key(lab: Lab) -> None:
    """Another key for the reactor, by the commands of docs/operations/secrets.md."""

    def secret() -> str:
        found: str = lab.cluster.get("secret", "saltern-keys-reactor", namespace="saltern")["data"]["curve.secret"]
        return found

    before = secret()
    lab.cluster.kubectl("-n", "saltern", "delete", "secret", "saltern-keys-reactor")
    lab.cluster.kubectl("-n", "saltern", "delete", "job", "saltern-keygen", "--ignore-not-found")
    lab.cluster.kubectl("apply", "-k", "k8s/overlays/lab")
    wait = ("wait", "--for=condition=complete", "--timeout=2m", "job/saltern-keygen")
    lab.cluster.kubectl("-n", "saltern", *wait, seconds=150)
    assert secret() != before
    _restart("deployment/saltern-reactor")(lab)


DISTURBANCES: dict[str, Callable[[Lab], None]] = {
    **{f"{role}: rollout": _restart(f"deployment/saltern-{role}") for role in (*ROLES, "front", "cli")},
    "mworker: kill -9": _kill("mworker"),
    "publisher: kill -9": _kill("publisher"),
    "reqserver: kill -9": _kill("reqserver"),
    "redis: kill -9": _kill("redis"),
    "redis: moved to another node": _move_redis,
    "reactor: another key": _new_key,
    "drain of the reqserver's node": _drain,
    "power cut of the reqserver's node": _power_cut,
}


def test_no_job_is_lost(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[str, float, float, int]] = []
    for node in NODES:
        lab.cluster.nodes[node].path("/var/tmp/ran").unlink(missing_ok=True)
    with Traffic(lab.command, NODES, until) as traffic:
        traffic.await_more(3)
        for name, disturb in DISTURBANCES.items():
            begun, refused = time.monotonic(), len(traffic.accounts.refused)
            disturb(lab)
            took = time.monotonic() - begun
            traffic.await_more(3)
            pause = traffic.longest_pause(begun)
            rows.append((name, took, pause, len(traffic.accounts.refused) - refused))
    faults: list[str] = []

    def settled() -> bool:
        faults[:] = traffic.faults(_returned(lab, list(traffic.accounts.acknowledged.values())), _ran(lab))
        return not faults

    try:
        until(settled, 400, "every acknowledged job has run once and has its results")
    except ClusterError:
        pytest.fail(f"{traffic.given()} jobs acknowledged:\n" + "\n".join(faults))
    with capsys.disabled():
        sys.stdout.write(_table(rows, traffic))


def _table(rows: list[tuple[str, float, float, int]], traffic: Traffic) -> str:
    lines = [
        "",
        "| What happens | Takes, s | Longest time between two jobs, s | Commands without a JID |",
        "|---|---|---|---|",
    ]
    lines += [f"| {name} | {took:.0f} | {pause:.1f} | {refused} |" for name, took, pause, refused in rows]
    lines.append(
        f"\n{traffic.given()} jobs acknowledged, each has run once and returned on {len(NODES)} nodes; "
        f"{len(traffic.accounts.refused)} commands got no JID"
    )
    return "\n".join(lines) + "\n"


def _returned(lab: Lab, jids: list[str]) -> dict[str, list[str]]:
    """Minions whose results the job cache has, by JID."""
    words = ("-n", "saltern", "exec", "-i", "deploy/saltern-mworker", "--", "python3", "-c", ASK)
    found: dict[str, list[str]] = json.loads(lab.cluster.kubectl(*words, stdin=json.dumps(jids)))
    return found


def _ran(lab: Lab) -> dict[str, list[int]]:
    """Numbers of the jobs that left them, by node."""
    return {
        node: [int(line) for line in lab.cluster.nodes[node].path("/var/tmp/ran").read_text().split()] for node in NODES
    }

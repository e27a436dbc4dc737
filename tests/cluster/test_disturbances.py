"""What a cluster does to pods, while jobs are given: none is lost, none runs twice, and the pauses are measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from tests.cluster.cluster import PATIENCE, Cluster
from tests.cluster.lab import ROLES, SPACES, Lab
from tests.cluster.node import tree
from tests.cluster.places import NODES, ClusterError, until
from tests.cluster.programs import build
from tests.k8s_run.traffic import Traffic

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
    return lambda lab: lab.kill(component)


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


def _run_keygen(lab: Lab, *deleted: str) -> None:
    """Have the Job make Secrets that are deleted, as docs/operations/secrets.md says."""
    for name in deleted:
        lab.cluster.kubectl("-n", "saltern", "delete", "secret", name)
    lab.cluster.kubectl("-n", "saltern", "delete", "job", "saltern-keygen", "--ignore-not-found")
    lab.cluster.kubectl("apply", "-k", "k8s/overlays/lab")
    wait = ("wait", "--for=condition=complete", "--timeout=2m", "job/saltern-keygen")
    lab.cluster.kubectl("-n", "saltern", *wait, seconds=150)


def _new_key(lab: Lab) -> None:
    """Another key for the reactor, by the commands of docs/operations/secrets.md."""

    def secret() -> str:
        found: str = lab.cluster.get("secret", "saltern-keys-reactor", namespace="saltern")["data"]["curve.secret"]
        return found

    before = secret()
    _run_keygen(lab, "saltern-keys-reactor")
    assert secret() != before
    _restart("deployment/saltern-reactor")(lab)


def _missing_secret(lab: Lab) -> None:
    """A worker's pod is replaced while its Secret is gone: the cluster says which, others work on, the Job makes it again."""
    lab.cluster.kubectl("-n", "saltern", "delete", "secret", "saltern-keys-mworker")
    (first, *_) = lab.cluster.pods("saltern", component="mworker")
    lab.cluster.kubectl("-n", "saltern", "delete", "pod", first["metadata"]["name"], seconds=200)

    def named() -> bool:
        events = lab.cluster.get("events", "--field-selector=reason=FailedMount", namespace="saltern")["items"]
        return any('secret "saltern-keys-mworker" not found' in one["message"] for one in events)

    until(named, PATIENCE, "the events name the Secret", pause=1)
    _run_keygen(lab)
    until(lambda: not lab.cluster.unready("saltern"), PATIENCE, "the worker is ready", pause=1)


def _new_password(lab: Lab) -> None:
    """Another password of Redis, by the commands of docs/operations/secrets.md."""
    _run_keygen(lab, "saltern-redis")
    _restart("statefulset/saltern-redis")(lab)


def _full_volume(lab: Lab) -> None:
    """Redis' volume has no byte left; who publishes is refused in one line, and all goes on when there is room again."""
    fill = "dd if=/dev/zero of=/data/filler bs=64k 2>/dev/null; test -f /data/filler"
    lab.cluster.exec("saltern-redis-0", "sh", "-c", fill)
    try:
        until(lambda: "no space" in _refusal(lab).lower(), 120, "a command is refused, and says why", pause=0.5)
    finally:
        lab.cluster.exec("saltern-redis-0", "rm", "/data/filler")
    until(lambda: not lab.cluster.unready("saltern"), PATIENCE, "every pod is ready again", pause=1)


def _refusal(lab: Lab) -> str:
    """What a command says that publishes."""
    return lab.cluster.tried("-n", "saltern", "exec", "deploy/saltern-cli", "--", "salt", "--async", "*", "test.ping")[
        1
    ]


_POWER_CUT = "power cut of the reqserver's node"

DISTURBANCES: dict[str, Callable[[Lab], None]] = {
    **{f"{role}: rollout": _restart(f"deployment/saltern-{role}") for role in (*ROLES, "front", "cli")},
    "mworker: kill -9": _kill("mworker"),
    "publisher: kill -9": _kill("publisher"),
    "reqserver: kill -9": _kill("reqserver"),
    "redis: kill -9": _kill("redis"),
    "redis: moved to another node": _move_redis,
    "reactor: another key": _new_key,
    "mworker: a pod without its Secret": _missing_secret,
    "redis: another password": _new_password,
    "redis: its volume is full": _full_volume,
    "drain of the reqserver's node": _drain,
    _POWER_CUT: _power_cut,
}


_HEAD = "| What happens | Takes, s | Longest time between two jobs, s | Commands without a JID | Jobs |\n|---|---|---|---|---|"


@pytest.mark.parametrize("name", DISTURBANCES)
def test_no_job_is_lost(name: str, lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Each acknowledged job has run once on every node, and its results are in the job cache. Prints a row of the page's table."""
    for node in NODES:
        lab.cluster.nodes[node].path("/var/tmp/ran").unlink(missing_ok=True)
    with Traffic(lab.command, NODES, until) as traffic:
        traffic.await_more(3)
        begun = time.monotonic()
        DISTURBANCES[name](lab)
        took = time.monotonic() - begun
        traffic.await_more(3)
        pause = traffic.longest_pause(begun)
    refused = traffic.accounts.refused
    with capsys.disabled():
        head = f"\n{_HEAD}" if name == next(iter(DISTURBANCES)) else ""
        sys.stdout.write(f"{head}\n| {name} | {took:.0f} | {pause:.1f} | {len(refused)} | {traffic.given()} |\n")
        sys.stdout.writelines(f"  {said.strip()}\n" for said in sorted(set(refused.values())))
    faults: list[str] = []

    def settled() -> bool:
        returned = lab.returned(list(traffic.accounts.acknowledged.values()))
        faults[:] = traffic.faults(returned, lab.ran(), power_cut=name == _POWER_CUT)
        return not faults

    try:
        until(settled, 400, "every acknowledged job has run once and has its results")
    except ClusterError:
        pytest.fail(f"{traffic.given()} jobs acknowledged:\n" + "\n".join(faults))

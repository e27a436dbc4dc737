"""NetworkPolicies on a real network: every link of the house works, every other one is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.lab import Lab
from tests.cluster.places import until
from tests.k8s.policies import ALLOWED

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

#: Ports of each server that somebody may reach, and that of health and metrics.
PORTS: Mapping[str, tuple[int, ...]] = {
    "publisher": (4505, 8080),
    "reqserver": (4506, 4507, 4516, 8080),
    "eventpublisher": (4512, 4513, 8080),
    "mworker": (8080,),
    "reactor": (8080,),
    "maintenance": (8080,),
    "front": (4505, 4506),
    "redis": (6379,),
}

#: Who asks: the roles of the lab, and two that are nobody.
CLIENTS = (
    "publisher",
    "reqserver",
    "mworker",
    "eventpublisher",
    "reactor",
    "maintenance",
    "front",
    "cli",
    "redis",
    "minion",
)
NOBODIES = ("a pod without labels in saltern", "a pod of another namespace")

#: Tries addresses for three seconds each, all at once. bash: the images of Redis and the front have no Python.
ASK = """
for target; do
    (
        if timeout 3 bash -c "exec 3<>/dev/tcp/${target/:/\\/}" 2>/dev/null; then echo "$target open"
        elif [ $? = 124 ]; then echo "$target silent"
        else echo "$target refused"
        fi
    ) &
done
wait
"""


@pytest.fixture(scope="module")
def lab(cluster: Cluster) -> Lab:
    """overlays/lab, its minions accepted."""
    made = Lab(cluster)
    made.install()
    return made


@pytest.fixture(scope="module")
def nobodies(lab: Lab) -> Any:
    """Two pods that nobody knows: their addresses of `kubectl exec`."""
    places = dict(zip(NOBODIES, ("saltern", "default"), strict=True))
    for space in places.values():
        lab.cluster.apply(_nobody(space))
    for space in places.values():
        lab.cluster.kubectl("-n", space, "wait", "--for=condition=Ready", "--timeout=200s", "pod/nobody")
    yield places
    for space in places.values():
        lab.cluster.kubectl("-n", space, "delete", "pod", "nobody", "--grace-period=1", "--wait=false")


def _nobody(namespace: str) -> dict[str, Any]:
    caged = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "nobody", "namespace": namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {"name": "c", "image": "saltern/cli:dev", "command": ["sleep", "3600"], "securityContext": caged}
            ],
        },
    }


@pytest.fixture(scope="module")
def addresses(lab: Lab) -> dict[str, str]:
    """One pod's address for each server."""
    return {server: lab.cluster.pods("saltern", component=server)[0]["status"]["podIP"] for server in PORTS}


def _asked(lab: Lab, namespace: str, pod: str, targets: list[str]) -> dict[str, str]:
    said = lab.cluster.exec(pod, "bash", "-c", ASK, "bash", *targets, namespace=namespace)
    return dict(line.split() for line in said.splitlines())


def _targets(addresses: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    return {f"{addresses[server]}:{port}": (server, port) for server, ports in PORTS.items() for port in ports}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_role_reaches_what_it_may_and_nothing_else(client: str, lab: Lab, addresses: dict[str, str]) -> None:
    namespace = "saltern-minions" if client == "minion" else "saltern"
    # A server asks itself past every policy.
    (pod, *_) = lab.cluster.pods(namespace, component=client)
    own = pod["status"]["podIP"]
    targets = {key: value for key, value in _targets(addresses).items() if not key.startswith(f"{own}:")}
    found = _asked(lab, namespace, pod["metadata"]["name"], list(targets))
    wrong = {}
    for target, (server, port) in targets.items():
        wanted = "open" if (client, server, port) in ALLOWED else "silent"
        # Minions are anywhere: the front's two ports are open to all.
        if server == "front" and client == "minion":
            wanted = "open"
        if found[target] != wanted:
            wrong[f"{server}:{port}"] = f"{found[target]}, not {wanted}"
    assert wrong == {}


@pytest.mark.parametrize("name", NOBODIES)
def test_nobody_reaches_but_the_front(name: str, lab: Lab, nobodies: dict[str, str], addresses: dict[str, str]) -> None:
    namespace = nobodies[name]
    # Within saltern nothing leaves a pod without labels; elsewhere there is no policy, and the front is for minions anywhere.
    openings = {("front", 4505), ("front", 4506)} if namespace == "default" else set()
    targets = _targets(addresses)
    found = _asked(lab, namespace, "nobody", list(targets))
    assert {targets[target] for target, state in found.items() if state == "open"} == openings
    assert {targets[target] for target, state in found.items() if state == "silent"} == set(targets.values()) - openings


def test_names_are_for_all_and_the_api_for_the_job_of_keys(lab: Lab) -> None:
    """The cluster's API is closed to roles; the name server is open."""
    (pod, *_) = lab.cluster.pods("saltern", component="mworker")
    name = pod["metadata"]["name"]
    assert _asked(lab, "saltern", name, ["10.96.0.1:443", "10.96.0.10:53"]) == {
        "10.96.0.1:443": "silent",
        "10.96.0.10:53": "open",
    }
    assert lab.cluster.exec(name, "getent", "hosts", "saltern-reqserver").split()


def test_a_policy_that_is_gone_closes_the_link_and_back(lab: Lab, addresses: dict[str, str]) -> None:
    """The rules follow the API: without the policy of operators, their toolbox is cut off."""
    (pod, *_) = lab.cluster.pods("saltern", component="cli")
    target = f"{addresses['reqserver']}:4507"

    def state() -> str:
        return _asked(lab, "saltern", pod["metadata"]["name"], [target])[target]

    assert state() == "open"
    lab.cluster.kubectl("-n", "saltern", "delete", "networkpolicy", "cli")
    try:
        until(lambda: state() == "silent", 60, "the link is closed")
    finally:
        lab.cluster.kubectl("apply", "-k", "k8s/overlays/lab")
    until(lambda: state() == "open", 60, "the link is open again")

"""overlays/lab as docs/operations/kubernetes.md installs it: the first minutes of an operator, on a real cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.lab import ROLES, SPACES, Lab
from tests.cluster.places import ADDRESSES, NODES, inside, run, until
from tests.k8s.rendered import K8S, Object

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def lab(cluster: Cluster) -> Lab:
    """overlays/lab as it is after its first minutes, its minions accepted."""
    made = Lab(cluster)
    made.install(fresh=True)
    return made


def test_every_pod_is_ready(lab: Lab) -> None:
    assert lab.cluster.unready(*SPACES) == {}
    deployments = lab.cluster.get("deployments", namespace="saltern")["items"]
    assert {one["metadata"]["name"] for one in deployments} == {f"saltern-{name}" for name in (*ROLES, "front", "cli")}
    for one in deployments:
        assert one["status"].get("readyReplicas") == one["spec"]["replicas"], one["metadata"]["name"]


def test_nobody_was_started_twice(lab: Lab) -> None:
    """Roles wait for each other: none is ended by its probes at an install."""
    restarts = {
        f"{pod['metadata']['name']}/{one['name']}": one["restartCount"]
        for space in SPACES
        for pod in lab.cluster.pods(space)
        for one in pod["status"]["containerStatuses"]
        if one["restartCount"]
    }
    assert restarts == {}


def test_the_key_job_made_secrets_once(lab: Lab) -> None:
    secrets = {one["metadata"]["name"] for one in lab.cluster.get("secrets", namespace="saltern")["items"]}
    assert {f"saltern-keys-{role}" for role in (*ROLES, "cli")} | {"saltern-redis"} <= secrets


def test_the_cage_of_the_manifests_is_that_of_the_processes(lab: Lab) -> None:
    for component in (*ROLES, "front", "redis", "cli"):
        (pod, *_) = lab.cluster.pods("saltern", component=component)
        security = pod["spec"]["securityContext"]
        text = lab.cluster.exec(pod["metadata"]["name"], "cat", "/proc/self/status", "/proc/self/mounts")
        status = dict(re.findall(r"^(\w+):\s+(.*)$", text, re.MULTILINE))
        assert set(status["Uid"].split()) == {str(security["runAsUser"])}, component
        assert {int(status[key], 16) for key in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")} == {0}, component
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), component
        assert re.search(r"^overlay / overlay ro,", text, re.MULTILINE), component


def test_minions_manage_their_nodes(lab: Lab) -> None:
    assert lab.cluster.salt("*", "test.ping") == dict.fromkeys(NODES, True)
    assert lab.cluster.salt("*", "cmd.run", "cat /etc/hostname; hostname") == {
        node: f"{node}\n{node}" for node in NODES
    }
    assert lab.cluster.salt("*", "service.status", "kubelet") == dict.fromkeys(NODES, True)
    lab.cluster.salt("web1", "file.write", "/etc/written", "by a minion")
    assert lab.cluster.nodes["web1"].path("/etc/written").read_text().strip() == "by a minion"
    assert not lab.cluster.nodes["web2"].path("/etc/written").exists()
    assert not Path("/etc/written").exists()


def test_labels_of_nodes_are_grains(lab: Lab) -> None:
    found = lab.cluster.salt("-G", "kubernetes:labels:kubernetes.io/os:linux", "test.ping")
    assert found == dict.fromkeys(NODES, True)


def test_the_examples_highstate(lab: Lab) -> None:
    runs = lab.cluster.salt("-t", "600", "*", "state.apply", seconds=900)
    assert sorted(runs) == sorted(NODES)
    for node, found in runs.items():
        assert isinstance(found, dict), (node, found)
        assert {tag: one["comment"] for tag, one in found.items() if one["result"] is not True} == {}, node
    for node, title in (("web1", "The shop"), ("web2", "The blog")):
        page = run(inside("", ["curl", "-s", "--max-time", "20", f"http://{ADDRESSES[node]}/"]))
        assert title in page


def test_salt_as_a_job(lab: Lab) -> None:
    """The three commands that k8s/jobs/salt/kustomization.yaml prints."""
    lab.cluster.kubectl("create", "-k", "k8s/jobs/salt")
    try:
        lab.cluster.kubectl(
            "-n", "saltern", "wait", "--for=condition=complete", "--timeout=1h", "job/salt", seconds=1200
        )
        said = lab.cluster.kubectl("-n", "saltern", "logs", "job/salt")
    finally:
        lab.cluster.kubectl("delete", "-k", "k8s/jobs/salt")
    for node in NODES:
        assert re.search(rf"^{node}:$", said, re.MULTILINE), said
    assert re.findall(r"^Failed: +(\d+)$", said, re.MULTILINE) == ["0"] * len(NODES)


@pytest.fixture
def mine(lab: Lab, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes an overlay of one's own on the lab's, as the page shows it, from one file of options; it is undone at the end."""

    def overlay(options: str) -> Path:
        (tmp_path / "60-mine.conf").write_text(options)
        made = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(K8S.resolve() / "overlays/lab", tmp_path.resolve())],
            "configMapGenerator": [
                {"name": "saltern-master", "namespace": "saltern", "behavior": "merge", "files": ["60-mine.conf"]}
            ],
        }
        (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(made))
        return tmp_path

    yield overlay
    lab.cluster.kubectl("apply", "-k", "k8s/overlays/lab")
    lab.await_rolled()


def test_a_changed_configuration_rolls_who_reads_it(lab: Lab, mine: Callable[[str], Path]) -> None:
    before = lab.pods()
    lab.cluster.kubectl("apply", "-k", str(mine("presence_events: true\n")))
    lab.await_rolled()
    after = lab.pods()
    assert {name for name in before if not before[name] & after[name]} == {*ROLES, "cli"}
    assert {name for name in before if before[name] == after[name]} == {"front", "redis", "minion"}
    assert "60-mine.conf" in lab.cluster.exec("deploy/saltern-maintenance", "ls", "/etc/salt/master.d").split()
    assert lab.cluster.salt("*", "test.ping") == dict.fromkeys(NODES, True)


def test_a_wrong_configuration_is_named_and_takes_no_worker_down(lab: Lab, mine: Callable[[str], Path]) -> None:
    # Of the workers alone: of the roles that are never two at once, the one that runs ends first.
    objects = yaml.safe_load_all(lab.cluster.kubectl("kustomize", str(mine("file_roots: 5\n"))))
    chosen = [one for one in objects if one["kind"] == "ConfigMap" or _is_workers(one)]
    before = lab.pods()["mworker"]
    lab.cluster.apply(*chosen)

    def named() -> bool:
        """Whether `kubectl describe pod` says it: the kubelet keeps the last words of a container that ended."""
        ended = [
            one["lastState"].get("terminated", {})
            for pod in lab.cluster.pods("saltern", component="mworker")
            for one in pod["status"]["containerStatuses"]
        ]
        words = "60-mine.conf, line 1: option 'file_roots' must be"
        return any(one.get("exitCode") == 78 and words in one["message"] for one in ended)

    until(named, 300, "the new worker's end names file, line and option")
    assert before <= lab.pods()["mworker"]
    assert lab.cluster.salt("*", "test.ping") == dict.fromkeys(NODES, True)


def _is_workers(one: Object) -> bool:
    return (one["kind"], one["metadata"]["name"]) == ("Deployment", "saltern-mworker")

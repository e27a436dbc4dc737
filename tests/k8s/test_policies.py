"""Every overlay keeps the house's policies; and each policy complains of a manifest that is broken on purpose."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.policies import POLICIES, matches
from tests.k8s.rendered import IMAGES, K8S, OVERLAYS, Object, Pod, composed, kustomized, objects, of_kind, overlay, pods

Break = Callable[[list[Object]], Any]

#: The only image of others.
GIT_SYNC = "registry.k8s.io/git-sync/git-sync"


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("name", OVERLAYS)
def test_overlays_keep_the_policies(name: str, policy: str) -> None:
    assert list(POLICIES[policy](overlay(name))) == []


def test_every_overlay_runs_every_role() -> None:
    for name in OVERLAYS:
        running = {pod.component for pod in pods(overlay(name))}
        assert running >= {
            *("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance"),
            *("front", "cli", "minion", "keygen"),
        }


def find(found: list[Object], kind: str, name: str) -> Object:
    """By its name, or by the beginning of one that ends with a hash."""
    named = [one for one in found if one["kind"] == kind and one["metadata"]["name"].startswith(name)]
    (one,) = [one for one in named if one["metadata"]["name"] == name] or named
    return one


def pod(found: list[Object], name: str, kind: str = "Deployment") -> Any:
    return find(found, kind, f"saltern-{name}")["spec"]["template"]["spec"]


def container(found: list[Object], name: str, kind: str = "Deployment") -> Any:
    return pod(found, name, kind)["containers"][0]


def policy_of(found: list[Object], name: str) -> Any:
    (one,) = [
        one
        for one in found
        if one["kind"] == "NetworkPolicy"
        and (one["metadata"]["name"], one["metadata"]["namespace"]) == (name, "saltern")
    ]
    return one["spec"]


def config(found: list[Object], text: str) -> None:
    find(found, "ConfigMap", "saltern-master")["data"]["10-base.conf"] += text


def repool(found: list[Object], old: str, new: str) -> None:
    files = find(found, "ConfigMap", "saltern-master")["data"]
    files["45-worker-pools.conf"] = files["45-worker-pools.conf"].replace(old, new, 1)


def remove(found: list[Object], kind: str, name: str) -> None:
    found.remove(find(found, kind, name))


def drop(holder: Any, key: Any) -> None:
    del holder[key]


def unset(holder: Any, variable: str) -> None:
    holder["env"] = [row for row in holder["env"] if row["name"] != variable]


def default_deny(found: list[Object]) -> None:
    policy_of(found, "default-deny")["ingress"] = [{}]


#: policy, overlay, how the manifest is broken, what is said.
BROKEN: tuple[tuple[str, str, Break, str], ...] = (
    (
        "non_root",
        "lab",
        lambda f: drop(pod(f, "publisher")["securityContext"], "runAsNonRoot"),
        "publisher may be root",
    ),
    (
        "non_root",
        "lab",
        lambda f: container(f, "mworker")["securityContext"].update(runAsUser=0),
        "mworker may be root",
    ),
    (
        "locked",
        "lab",
        lambda f: container(f, "cli")["securityContext"].update(readOnlyRootFilesystem=False),
        "can write its image",
    ),
    ("locked", "lab", lambda f: drop(container(f, "front")["securityContext"], "capabilities"), "keeps capabilities"),
    ("locked", "lab", lambda f: drop(pod(f, "reactor")["securityContext"], "seccompProfile"), "has no seccomp profile"),
    (
        "locked",
        "lab",
        lambda f: container(f, "minion", "DaemonSet")["securityContext"].update(privileged=True),
        "is privileged",
    ),
    (
        "locked",
        "lab",
        lambda f: container(f, "minion", "DaemonSet")["securityContext"]["capabilities"]["add"].append("SYS_MODULE"),
        "adds SYS_MODULE",
    ),
    (
        "locked",
        "lab",
        lambda f: container(f, "redis", "StatefulSet")["securityContext"].pop("allowPrivilegeEscalation"),
        "may gain",
    ),
    ("restricted", "lab", lambda f: pod(f, "cli").update(hostNetwork=True), "takes no hostNetwork"),
    ("restricted", "lab", lambda f: pod(f, "cli")["volumes"].append({"name": "h", "hostPath": {}}), "kind hostPath"),
    (
        "restricted",
        "lab",
        lambda f: drop(find(f, "Namespace", "saltern-minions")["metadata"], "labels"),
        "privileged namespace of its own",
    ),
    (
        "restricted",
        "lab",
        lambda f: find(f, "DaemonSet", "saltern")["metadata"].update(namespace="saltern"),
        "privileged namespace",
    ),
    ("bounded", "lab", lambda f: drop(container(f, "mworker")["resources"], "limits"), "no resources.limits.memory"),
    (
        "bounded",
        "lab",
        lambda f: drop(container(f, "keygen", "Job")["resources"]["requests"], "cpu"),
        "no resources.requests.cpu",
    ),
    (
        "roomy",
        "lab",
        lambda f: container(f, "reqserver")["resources"]["limits"].update(memory="256Mi"),
        "its limit is 256Mi",
    ),
    (
        "roomy",
        "lab",
        lambda f: container(f, "mworker")["env"].insert(0, {"name": "SALTERN_WORKER_PROCESSES", "value": "4"}),
        "its limit is 1280Mi",
    ),
    ("probed", "lab", lambda f: drop(container(f, "reqserver"), "startupProbe"), "reqserver has no startupProbe"),
    (
        "probed",
        "lab",
        lambda f: container(f, "reqserver")["readinessProbe"]["httpGet"].update(path="/livez"),
        "not /readyz",
    ),
    (
        "probed",
        "lab",
        lambda f: container(f, "reqserver")["livenessProbe"]["httpGet"].update(port="nine"),
        "not its own: nine",
    ),
    ("tokenless", "lab", lambda f: drop(pod(f, "reactor"), "automountServiceAccountToken"), "must be false"),
    ("tokenless", "lab", lambda f: pod(f, "reactor").update(serviceAccountName="default"), "is not made here"),
    ("tokenless", "lab", lambda f: drop(pod(f, "reactor"), "enableServiceLinks"), "look like options"),
    (
        "tokenless",
        "lab",
        lambda f: drop(find(f, "ServiceAccount", "saltern-cli"), "automountServiceAccountToken"),
        "saltern-cli",
    ),
    ("explained", "lab", lambda f: drop(container(f, "reactor"), "terminationMessagePolicy"), "FallbackToLogsOnError"),
    (
        "explained",
        "lab",
        lambda f: unset(container(f, "reqserver"), "SALTERN_HEALTH_HOST"),
        "SALTERN_HEALTH_HOST must be 0.0.0.0",
    ),
    (
        "explained",
        "lab",
        lambda f: unset(container(f, "minion", "DaemonSet"), "SALTERN_CONFIG_ERROR_PAUSE"),
        "SALTERN_CONFIG_ERROR_PAUSE must be 10 or more",
    ),
    (
        "labelled",
        "lab",
        lambda f: find(f, "Deployment", "saltern-cli")["spec"]["selector"]["matchLabels"].update(x="y"),
        "its pods are",
    ),
    (
        "labelled",
        "lab",
        lambda f: find(f, "Deployment", "saltern-cli")["metadata"].update(name="toolbox"),
        "not named after",
    ),
    (
        "served",
        "lab",
        lambda f: find(f, "Service", "saltern-publisher")["spec"]["ports"][0].update(targetPort="pub"),
        "no container has",
    ),
    (
        "served",
        "lab",
        lambda f: find(f, "Service", "saltern-publisher")["spec"]["selector"].update(x="y"),
        "selects 0 kinds",
    ),
    ("served", "lab", lambda f: drop(policy_of(f, "publisher"), "ingress"), "no NetworkPolicy lets publish in"),
    (
        "served",
        "lab",
        lambda f: find(f, "Service", "saltern-reqserver")["spec"].update(sessionAffinity="ClientIP"),
        "keep clients at a pod of a lost node",
    ),
    ("denied", "lab", default_deny, "denies everything first"),
    (
        "linked",
        "lab",
        lambda f: drop(policy_of(f, "cli"), "egress"),
        "('cli', 'reqserver', 4507) is not open out of its client",
    ),
    (
        "linked",
        "lab",
        lambda f: policy_of(f, "redis").update(ingress=[]),
        "('mworker', 'redis', 6379) is not open into its server",
    ),
    (
        "linked",
        "lab",
        lambda f: policy_of(f, "front")["egress"][1]["ports"].append({"protocol": "TCP", "port": 4507}),
        "('front', 'reqserver', 4507) is open out of its client, and is no link of the house",
    ),
    ("configured", "lab", lambda f: config(f, "\nfile_root: {}\n"), "file_root"),
    ("configured", "lab", lambda f: config(f, "\nworker_silence: soon\n"), "worker_silence"),
    (
        "configured",
        "lab",
        lambda f: find(f, "ConfigMap", "saltern-minion")["data"].update(minion="host_pit: true"),
        "HOST_PIT",
    ),
    (
        "configured",
        "lab",
        lambda f: container(f, "mworker")["env"].append({"name": "SALTERN_REDIS", "value": "x"}),
        "no such option",
    ),
    ("secretless", "lab", lambda f: config(f, "\nredis_url: redis://:abc@r:6379/0\n"), "holds a secret"),
    ("secretless", "lab", lambda f: config(f, "\nproxy_password: abc\n"), "proxy_password"),
    ("secretless", "lab", lambda f: f.append({"kind": "Secret", "metadata": {"name": "s"}}), "made or brought"),
    (
        "secretless",
        "lab",
        lambda f: container(f, "mworker")["env"].append({"name": "PROXY_PASSWORD", "value": "x"}),
        "mount a file",
    ),
    (
        "built",
        "lab",
        lambda f: container(f, "mworker").update(image="saltern/worker:dev"),
        "no target for saltern/worker:dev",
    ),
    ("built", "lab", lambda f: container(f, "mworker").update(image="saltern/mworker:latest"), "no certain image"),
    (
        "built",
        "ha",
        lambda f: pod(f, "mworker")["containers"][1].update(image="registry.k8s.io/git-sync/git-sync:v4.4.0"),
        "name it by digest",
    ),
    (
        "built",
        "ha",
        lambda f: pod(f, "reactor")["initContainers"][0].update(image=f"{GIT_SYNC}@sha256:0"),
        "name it by digest",
    ),
    (
        "apart",
        "ha",
        lambda f: pod(f, "mworker")["containers"][1]["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"}),
        "write the volume tmp",
    ),
    (
        "apart",
        "ha",
        lambda f: pod(f, "reactor")["containers"][1]["volumeMounts"].append(
            {"name": "tmp", "mountPath": "/tmp", "readOnly": True}
        ),
        "share /tmp",
    ),
    (
        "apart",
        "ha",
        lambda f: next(one for one in container(f, "mworker")["volumeMounts"] if one["name"] == "git").pop("readOnly"),
        "write the volume git",
    ),
    ("mounted", "lab", lambda f: remove(f, "ConfigMap", "saltern-tree-pillar"), "saltern-tree-pillar"),
    ("mounted", "lab", lambda f: find(f, "ConfigMap", "saltern-tree-salt")["data"].pop("top.sls"), "has no top.sls"),
    (
        "mounted",
        "lab",
        lambda f: remove(f, "Role", "saltern-keygen"),
        "saltern-keys-publisher is neither made nor brought",
    ),
    (
        "mounted",
        "lab",
        lambda f: container(f, "cli")["volumeMounts"].append({"name": "x", "mountPath": "/x"}),
        "mounts x",
    ),
    (
        "mounted",
        "lab",
        lambda f: pod(f, "cli")["volumes"].append({"name": "x", "emptyDir": {}}),
        "volume x is mounted nowhere",
    ),
    ("mounted", "external-redis", lambda f: remove(f, "PersistentVolumeClaim", "saltern-trees"), "claim saltern-trees"),
    ("drained", "lab", lambda f: pod(f, "mworker").update(terminationGracePeriodSeconds=30), "must be 67 or more"),
    (
        "drained",
        "lab",
        lambda f: container(f, "publisher")["lifecycle"]["preStop"]["exec"].update(command=["sleep", "60"]),
        "must be 67",
    ),
    (
        "disrupted",
        "ha",
        lambda f: find(f, "PodDisruptionBudget", "saltern-front")["spec"].update(maxUnavailable=0),
        "must be 1",
    ),
    ("disrupted", "ha", lambda f: remove(f, "Deployment", "saltern-front"), "finds no pod"),
    ("disrupted", "ha", lambda f: drop(pod(f, "reqserver"), "tolerations"), "waits 300 s for a lost node"),
    ("disrupted", "ha", lambda f: drop(pod(f, "eventpublisher"), "priorityClassName"), "has no priorityClassName"),
    (
        "disrupted",
        "ha",
        lambda f: pod(f, "mworker").update(priorityClassName="saltern-master"),
        "must have preemptionPolicy Never",
    ),
    (
        "disrupted",
        "ha",
        lambda f: remove(f, "PriorityClass", "saltern-master"),
        "there is no PriorityClass saltern-master",
    ),
    (
        "pooled",
        "ha",
        lambda f: container(f, "mworker")["env"].append({"name": "SALTERN_WORKER_POOL", "value": "files"}),
        "no ConfigMap has pools",
    ),
    ("scaled", "ha", lambda f: find(f, "Deployment", "saltern-mworker")["spec"].update(replicas=3), "set back"),
)


@pytest.mark.parametrize(("policy", "name", "spoil", "says"), BROKEN, ids=[f"{row[0]}-{row[3]}" for row in BROKEN])
def test_a_broken_manifest_is_complained_of(policy: str, name: str, spoil: Break, says: str) -> None:
    found = objects(f"overlays/{name}")
    spoil(found)
    complaints = list(POLICIES[policy](found))
    assert any(says in complaint for complaint in complaints), complaints


def test_every_policy_is_broken_once() -> None:
    assert {row[0] for row in BROKEN} == set(POLICIES)


#: Components that no overlay uses, and what they need beside them. All go together.
OTHERS = ("api", "node-port", "autoscale", "shared-cache", "tree-git-login")
BESIDE = ("redis", "keygen", "tree-git-sync")


#: Instead of tree-git-sync and tree-git-login: git-sync in a pod of its own.
APART = ("redis", "keygen", "tree-git-apart", "tree-git-apart-login")


def test_git_sync_apart_keeps_the_policies(tmp_path: Path) -> None:
    found = composed(tmp_path, *APART)
    assert [complaint for policy in POLICIES.values() for complaint in policy(found)] == []
    syncs = [one for one in pods(found) if any(GIT_SYNC in each["image"] for each in one.containers())]
    assert [one.component for one in syncs] == ["git-sync"]
    # It has no key, no password of Redis and no configuration of the master; roles read what it writes.
    assert {volume["name"] for volume in syncs[0].spec["volumes"]} == {"trees", "tmp", "git-login"}
    for one in pods(found):
        for each in one.containers():
            for mount in each.get("volumeMounts", ()):
                assert mount["name"] != "trees" or one in syncs or mount["readOnly"]


def leaves(found: list[Object], one: Pod) -> bool:
    """Whether a NetworkPolicy lets a pod out of the cluster."""
    return any(
        "ipBlock" in peer
        for policy in of_kind(found, "NetworkPolicy")
        if policy["metadata"]["namespace"] == one.namespace and matches(policy["spec"]["podSelector"], one.labels)
        for rule in policy["spec"].get("egress", ())
        for peer in rule.get("to", ())
    )


def test_git_sync_apart_is_the_only_way_out(tmp_path: Path) -> None:
    found = composed(tmp_path, *APART)
    out = {one.component for one in pods(found) if one.namespace == "saltern" and leaves(found, one)}
    assert out - {"keygen"} == {"git-sync"}
    # The other component gives the way out to the pods that run it, and to no other.
    (tmp_path / "beside").mkdir()
    beside = composed(tmp_path / "beside", "redis", "keygen", "tree-git-sync")
    out = {one.component for one in pods(beside) if one.namespace == "saltern" and leaves(beside, one)}
    assert out - {"keygen"} == {"mworker", "reactor"}


def test_other_components_keep_the_policies(tmp_path: Path) -> None:
    found = composed(tmp_path, *BESIDE, *OTHERS)
    assert [complaint for policy in POLICIES.values() for complaint in policy(found)] == []


@functools.cache
def in_pools() -> str:
    """overlays/ha with components/worker-pools, as JSON."""
    with tempfile.TemporaryDirectory() as directory:
        return json.dumps(composed(Path(directory), "worker-pools", resources=("overlays/ha",)))


def test_workers_in_pools_keep_them() -> None:
    found = json.loads(in_pools())
    assert [complaint for policy in POLICIES.values() for complaint in policy(found)] == []
    workers = [one for one in pods(found) if one.component == "mworker"]
    assert len(workers) == 6
    # What components before it put into a worker is in each.
    assert {tuple(each["name"] for each in one.containers()) for one in workers} == {
        ("git-clone", "mworker", "git-sync")
    }


#: How the pools are broken, and what is said.
BROKEN_POOLS: tuple[tuple[Break, str], ...] = (
    (lambda f: remove(f, "Deployment", "saltern-mworker-files"), "the pool files has no Deployment"),
    (lambda f: unset(container(f, "mworker-files"), "SALTERN_WORKER_POOL"), "its SALTERN_WORKER_POOL '' is no pool"),
    (lambda f: repool(f, "_auth", "_aut"), "there is no command '_aut'; the nearest is '_auth'"),
    (lambda f: repool(f, '"*"', "ping"), "no pool has the command '*'"),
    (
        lambda f: find(f, "HorizontalPodAutoscaler", "saltern-mworker-auth")["spec"]["metrics"][0]["external"][
            "metric"
        ].clear(),
        "looks at the requests of pool None, not auth",
    ),
    (
        lambda f: pod(f, "mworker-auth")["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"].pop(
            "saltern/pool"
        ),
        "spreads pods of other pools",
    ),
    (
        lambda f: find(f, "PodDisruptionBudget", "saltern-mworker")["spec"]["selector"]["matchLabels"].pop(
            "saltern/pool"
        ),
        "is never evicted, under two budgets",
    ),
    (
        lambda f: find(f, "Deployment", "saltern-mworker")["spec"]["selector"]["matchLabels"].pop("saltern/pool"),
        "Deployment saltern-mworker selects its pods, too",
    ),
)


@pytest.mark.parametrize(("spoil", "says"), BROKEN_POOLS, ids=[row[1] for row in BROKEN_POOLS])
def test_broken_pools_are_complained_of(spoil: Break, says: str) -> None:
    found = json.loads(in_pools())
    spoil(found)
    complaints = [complaint for name in ("pooled", "labelled", "disrupted") for complaint in POLICIES[name](found)]
    assert any(says in complaint for complaint in complaints), complaints


def test_the_template_of_an_operators_job_keeps_them_beside_a_master() -> None:
    found = objects("overlays/lab") + objects("jobs/salt")
    assert [complaint for policy in POLICIES.values() for complaint in policy(found)] == []


def test_every_component_is_used_somewhere() -> None:
    used = {*OTHERS, *BESIDE, *APART, "worker-pools"}
    for name in OVERLAYS:
        listed = yaml.safe_load((K8S / "overlays" / name / "kustomization.yaml").read_text())["components"]
        used |= {Path(one).name for one in listed}
    assert {path.name for path in (K8S / "components").iterdir()} <= used


def test_every_file_of_the_example_is_in_the_labs_trees() -> None:
    tree = K8S.parent / "examples" / "srv"
    paths = {
        item["path"]
        for one in pods(overlay("lab"))
        for volume in one.spec.get("volumes", ())
        if volume.get("configMap", {}).get("name", "").startswith("saltern-tree-")
        for item in volume["configMap"]["items"]
    }
    kinds = [tree / kind for kind in ("salt", "pillar", "reactor")]
    files = {str(path.relative_to(kind)) for kind in kinds for path in kind.rglob("*") if path.is_file()}
    assert paths == files


#: Knows a digest for each image, as a registry does.
FAKE_DOCKER = """#!/bin/sh
for last; do :; done
case "$last" in "$UNKNOWN"*) exit 1 ;; esac
printf "sha256:%s\\n" "$(printf %s "$last" | sha256sum | cut -c1-64)"
"""


def test_a_release_pins_every_image_by_its_digest(tmp_path: Path) -> None:
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "docker").write_text(FAKE_DOCKER)
    (fake / "docker").chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake}:{os.environ['PATH']}", "UNKNOWN": "nothing"}
    words = [str(K8S / "pin-images"), "registry.example.com/saltern", "1.4.0"]
    pinned = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    lacking = subprocess.run(
        words, env={**environment, "UNKNOWN": "registry.example.com/saltern/cli"}, capture_output=True, check=False
    )
    assert (lacking.returncode, lacking.stdout) == (1, b"")
    release = tmp_path / "release"
    release.mkdir()
    (release / "kustomization.yaml").write_text(pinned)
    up = os.path.relpath(K8S.resolve(), tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": [f"{up}/overlays/ha"], "components": ["release"], "kind": "Kustomization"})
    )
    made = kustomized(tmp_path)
    images = {
        one["image"] for pod in pods(list(yaml.load_all(made, Loader=yaml.CSafeLoader))) for one in pod.containers()
    }
    ours = {image for image in images if "git-sync" not in image}
    assert {image.partition("@")[0] for image in images - ours} == {f"{GIT_SYNC}:v4.4.0"}
    assert all("@sha256:" in image for image in images)
    assert len(ours) == len(IMAGES) - 1
    assert all(image.startswith("registry.example.com/saltern/") for image in ours)

"""What becomes of every field of the rendered manifests where podman 4.3 plays them: nothing is dropped in silence.

A rule holds for a path and all that is below it, unless a longer one does; lists are written as ``[]``. ``test_adapter.py``
asserts that each field of the overlay has a rule, and that each rule is about a field that is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any


class By(Enum):
    """Who does what a field asks for."""

    PODMAN = "podman kube play reads it"
    ADAPTER = "the adapter does it, as a cluster would"
    NOBODY = "left out"


Rule = tuple[By, str]

#: Kinds of which nothing is played, and why.
LEFT_OUT: Mapping[str, str] = {
    "Namespace": "podman has none; names are asserted to differ",
    "ServiceAccount": "there is no API server to speak to",
    "Role": "there is no API server",
    "RoleBinding": "there is no API server",
    "ClusterRole": "there is no API server",
    "ClusterRoleBinding": "there is no API server",
    "NetworkPolicy": "a bridge of podman has no policies; tests/k8s compares them with the links of the roles",
    "PodDisruptionBudget": "nothing evicts pods here; tests/k8s_run/test_arithmetic.py counts",
    "HorizontalPodAutoscaler": "nothing measures pods here; tests/k8s_run/test_arithmetic.py counts",
}

_METADATA: Mapping[str, Rule] = {
    "apiVersion": (By.ADAPTER, "each pod is played as a Pod of v1"),
    "kind": (By.ADAPTER, "what is made of it is adapter.py"),
    "metadata.name": (By.ADAPTER, "pods are named after it"),
    "metadata.namespace": (By.ADAPTER, "part of a Service's long names"),
    "metadata.labels": (By.NOBODY, "nobody selects workloads"),
}

_TEMPLATE = "spec.template.spec"

#: Of a pod's specification.
POD: Mapping[str, Rule] = {
    "automountServiceAccountToken": (By.NOBODY, "there are no tokens"),
    "serviceAccountName": (By.NOBODY, "there is no API server"),
    "enableServiceLinks": (By.NOBODY, "podman makes none"),
    "shareProcessNamespace": (By.PODMAN, "a first process that reaps"),
    "terminationGracePeriodSeconds": (By.ADAPTER, "the time that a stop gives"),
    "topologySpreadConstraints": (By.NOBODY, "there is one machine"),
    "tolerations": (By.NOBODY, "there is one machine"),
    "restartPolicy": (By.ADAPTER, "of the Job, which is run until it ends well"),
    "securityContext.runAsUser": (By.ADAPTER, "given to each container"),
    "securityContext.runAsGroup": (By.ADAPTER, "given to each container"),
    "securityContext.runAsNonRoot": (By.NOBODY, "podman does not look; runAsUser is not 0, see tests/k8s"),
    "securityContext.fsGroup": (By.ADAPTER, "group of the files of its volumes"),
    "securityContext.fsGroupChangePolicy": (By.NOBODY, "volumes are new"),
    "securityContext.seccompProfile": (By.NOBODY, "RuntimeDefault is what podman does"),
    "hostPID": (
        By.NOBODY,
        "the first process of this machine is nobody's to manage: the pretended node is a mounted tree",
    ),
    "initContainers": (By.NOBODY, "they ask the API server for the labels of nodes"),
    "volumes[].name": (By.PODMAN, "joins mounts and volumes"),
    "volumes[].configMap": (By.ADAPTER, "podman 4.3 makes one volume of each ConfigMap, and no nested paths"),
    "volumes[].secret": (By.ADAPTER, "podman 4.3 makes one volume of each Secret, whatever the items and modes"),
    "volumes[].emptyDir": (By.ADAPTER, "a directory; podman 4.3 has no sizes"),
    "volumes[].hostPath": (By.ADAPTER, "the same path below the pretended node's directory"),
    "volumes[].projected": (By.NOBODY, "tokens: there is no API server"),
    "containers[].name": (By.PODMAN, ""),
    "containers[].image": (By.ADAPTER, "the images that were built here: localhost/"),
    "containers[].command": (By.PODMAN, "of minions: behind the entry point that makes a tree a host"),
    "containers[].args": (By.PODMAN, ""),
    "containers[].env[].name": (By.PODMAN, ""),
    "containers[].env[].value": (By.PODMAN, ""),
    "containers[].env[].valueFrom.fieldRef": (By.ADAPTER, "podman 4.3 knows no node"),
    "containers[].livenessProbe": (
        By.NOBODY,
        "podman asks over HTTP by curl, which no image has; what ends is started again",
    ),
    "containers[].readinessProbe": (By.ADAPTER, "asked from outside until it answers"),
    "containers[].startupProbe": (By.ADAPTER, "readiness has its time"),
    "containers[].lifecycle.preStop": (By.ADAPTER, "run before a pod of a rollout is stopped"),
    "containers[].ports": (
        By.ADAPTER,
        "what Services mean by a port's name; podman 4.3 would publish them on the machine",
    ),
    "containers[].resources.limits.memory": (By.PODMAN, ""),
    "containers[].resources.requests": (By.NOBODY, "nothing is scheduled"),
    "containers[].securityContext.allowPrivilegeEscalation": (By.PODMAN, ""),
    "containers[].securityContext.capabilities": (By.PODMAN, "of minions: SETPCAP too, for their entry point"),
    "containers[].securityContext.readOnlyRootFilesystem": (By.PODMAN, ""),
    "containers[].securityContext.privileged": (By.PODMAN, ""),
    "containers[].securityContext.runAsUser": (By.PODMAN, ""),
    "containers[].securityContext.runAsGroup": (By.PODMAN, ""),
    "containers[].securityContext.appArmorProfile": (By.NOBODY, "podman 4.3 does not know it"),
    "containers[].terminationMessagePolicy": (By.NOBODY, "podman keeps the whole log"),
    "containers[].volumeMounts[].name": (By.PODMAN, ""),
    "containers[].volumeMounts[].mountPath": (By.PODMAN, ""),
    "containers[].volumeMounts[].readOnly": (By.PODMAN, ""),
    "containers[].volumeMounts[].mountPropagation": (By.NOBODY, "nothing is mounted on the pretended node later"),
}

_WORKLOAD: Mapping[str, Rule] = {
    **_METADATA,
    "spec.template.metadata.labels": (By.ADAPTER, "what Services select"),
    **{f"{_TEMPLATE}.{path}": rule for path, rule in POD.items()},
}

_SELECTOR: Rule = (By.NOBODY, "the template's labels, see tests/k8s")
_HISTORY: Rule = (By.NOBODY, "nothing is rolled back")

#: Of each kind that is played.
FIELDS: Mapping[str, Mapping[str, Rule]] = {
    "ConfigMap": {**_METADATA, "data": (By.ADAPTER, "files of volumes")},
    "Service": {
        **_METADATA,
        "spec.selector": (By.ADAPTER, "who gets the name as an alias of his network"),
        "spec.ports": (By.ADAPTER, "asserted to be the pods' own numbers: an alias moves no port"),
        "spec.clusterIP": (By.NOBODY, "every alias is headless: the addresses of all pods"),
        "spec.publishNotReadyAddresses": (By.NOBODY, "an alias is there from the start, for all Services"),
    },
    "Deployment": {
        **_WORKLOAD,
        "spec.selector": _SELECTOR,
        "spec.revisionHistoryLimit": _HISTORY,
        "spec.replicas": (By.ADAPTER, "so many Pods"),
        "spec.strategy": (By.ADAPTER, "how a rollout goes"),
    },
    "StatefulSet": {
        **_WORKLOAD,
        "spec.selector": _SELECTOR,
        "spec.replicas": (By.ADAPTER, "so many Pods, numbered"),
        "spec.serviceName": (By.ADAPTER, "names of its pods"),
        "spec.volumeClaimTemplates": (By.ADAPTER, "a claim for each pod, which podman makes a volume of"),
    },
    "DaemonSet": {
        **_WORKLOAD,
        "spec.selector": _SELECTOR,
        "spec.revisionHistoryLimit": _HISTORY,
        "spec.updateStrategy": (By.NOBODY, "minions are not rolled here"),
    },
    "Job": {
        **_WORKLOAD,
        "spec.backoffLimit": (By.NOBODY, "it has to end well the first time"),
        "spec.ttlSecondsAfterFinished": (By.NOBODY, "it is removed at once"),
    },
}


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Paths of all that is no container of other fields; what is empty is a leaf."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path


def rule_for(path: str, rules: Mapping[str, Rule]) -> str | None:
    """The longest rule that holds for a path."""
    holding = [rule for rule in rules if path == rule or path.startswith((f"{rule}.", f"{rule}[]"))]
    return max(holding, key=len, default=None)

"""Rendered manifests as podman 4.3 can play them: pure, from objects to Pods, files and names. ``fields.py`` lists what is done."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

#: Files of ConfigMaps and Secrets, by kind and name.
Contents = Mapping[tuple[str, str], Mapping[str, bytes]]

#: The nodes that a DaemonSet runs on: each is a Debian in a directory.
NODES = ("web1", "web2")

#: What differs for a minion whose node is a mounted tree instead of the machine that it runs on (docs/containers.md).
_TREE_ENTRY = ("minion-entrypoint",)
_TREE_ENVIRONMENT = ({"name": "SALTERN_HOST_ROOT", "value": "/host"}, {"name": "SALTERN_HOST_PID", "value": "false"})
_TREE_CAPABILITY = "SETPCAP"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume."""

    path: str
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class Volume:
    """A directory that is made for a pod, as a kubelet makes it."""

    name: str
    files: tuple[File, ...] = ()
    #: Mount points of other volumes in it.
    directories: tuple[str, ...] = ()
    #: Of a directory that the pod may write, group of all that is in it.
    group: int = 0
    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class Probe:
    """How a container says that it is ready: a command in it, or a path at a port of its pod."""

    container: str
    command: tuple[str, ...] = ()
    port: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """What runs pods that are all alike."""

    kind: str
    name: str
    namespace: str
    spec: Object
    labels: Mapping[str, str]
    replicas: int
    aliases: tuple[str, ...]
    #: Names of claims by the volumes of their mounts.
    claims: Mapping[str, Object]
    #: How a rollout goes: so many more than ``replicas``, so many fewer; or all old ones first.
    surge: int = 0
    unavailable: int = 0
    recreate: bool = False

    @property
    def pods(self) -> tuple[str, ...]:
        """Names of its first pods."""
        names = NODES if self.kind == "DaemonSet" else range(self.replicas)
        return tuple(f"{self.name}-{one}" for one in names)


class NotPlayable(ValueError):
    """A manifest asks for what this adapter cannot do; its text says what."""


def by_kind(objects: Iterable[Object], kind: str) -> list[Object]:
    """The objects of a kind."""
    return [one for one in objects if one["kind"] == kind]


def counted(share: int | str | None, replicas: int, *, up: bool) -> int:
    """maxSurge (rounded up) and maxUnavailable (rounded down) as numbers of pods; both default to a quarter."""
    if share is None:
        share = "25%"
    if isinstance(share, int):
        return share
    hundredths = int(share.removesuffix("%")) * replicas
    return -(-hundredths // 100) if up else hundredths // 100


def workloads(objects: Sequence[Object]) -> list[Workload]:
    """All that runs on. NotPlayable for a Service that an alias cannot be."""
    services = by_kind(objects, "Service")
    made = []
    for kind in ("Deployment", "StatefulSet", "DaemonSet"):
        for one in by_kind(objects, kind):
            spec, template = one["spec"], one["spec"]["template"]
            labels = template["metadata"]["labels"]
            replicas = spec.get("replicas", 1)
            strategy = spec.get("strategy", {})
            rolling = strategy.get("rollingUpdate", {})
            namespace = one["metadata"]["namespace"]
            made.append(
                Workload(
                    kind=kind,
                    name=one["metadata"]["name"],
                    namespace=namespace,
                    spec=template["spec"],
                    labels=labels,
                    replicas=replicas,
                    aliases=tuple(_aliases(services, namespace, labels, template["spec"])),
                    claims={claim["metadata"]["name"]: claim for claim in spec.get("volumeClaimTemplates", ())},
                    surge=counted(rolling.get("maxSurge"), replicas, up=True),
                    unavailable=counted(rolling.get("maxUnavailable"), replicas, up=False),
                    recreate=strategy.get("type") == "Recreate",
                )
            )
    names = [one.name for one in made]
    if len(set(names)) != len(names):
        raise NotPlayable(f"two workloads of different namespaces share a name: {sorted(names)}")
    return made


def ports(spec: Object) -> dict[str | int, int]:
    """Numbers of a pod's ports, by name and by number."""
    found: dict[str | int, int] = {}
    for container in spec["containers"]:
        for port in container.get("ports", ()):
            found[port["containerPort"]] = port["containerPort"]
            if "name" in port:
                found[port["name"]] = port["containerPort"]
    return found


def _aliases(services: Iterable[Object], namespace: str, labels: Mapping[str, str], spec: Object) -> Iterable[str]:
    own = ports(spec)
    for service in services:
        metadata, wanted = service["metadata"], service["spec"]["selector"]
        if metadata["namespace"] != namespace or not wanted.items() <= labels.items():
            continue
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            if own.get(target) != port["port"]:
                raise NotPlayable(
                    f"Service {metadata['name']}: port {port['port']} is {own.get(target)} of the pod, not the same"
                )
        name = f"{metadata['name']}"
        yield from (name, f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local")


def volumes(workload: Workload, contents: Contents) -> list[Volume]:
    """The directories of one of its pods. ``contents`` has the ConfigMaps and Secrets by kind and name.

    NotPlayable for a volume of another kind, and for a ConfigMap or Secret that is not there.
    """
    group = workload.spec.get("securityContext", {}).get("fsGroup", 0)
    nested = _nested(workload.spec["containers"])
    made = []
    for volume in workload.spec.get("volumes", ()):
        name, directories = volume["name"], tuple(nested.get(volume["name"], ()))
        if "emptyDir" in volume:
            made.append(Volume(name, directories=directories, group=group, mode=0o2777 if group else 0o777))
        elif "configMap" in volume or "secret" in volume:
            files = tuple(_files(workload, volume, contents))
            made.append(Volume(name, files, directories, group))
        elif not {"hostPath", "persistentVolumeClaim", "projected"} & volume.keys():
            raise NotPlayable(f"{workload.name}: volume {name} is of no kind that is known here: {sorted(volume)}")
    return made


def _nested(containers: Iterable[Object]) -> dict[str, list[str]]:
    """Mount points inside volumes, by volume: they must be there where the volume is read-only."""
    found: dict[str, list[str]] = {}
    for container in containers:
        mounts = container.get("volumeMounts", ())
        for outer in mounts:
            prefix = outer["mountPath"] + "/"
            inner = [one["mountPath"].removeprefix(prefix) for one in mounts if one["mountPath"].startswith(prefix)]
            found.setdefault(outer["name"], []).extend(inner)
    return found


def _files(workload: Workload, volume: Object, contents: Contents) -> Iterable[File]:
    kind, source = ("ConfigMap", volume["configMap"]) if "configMap" in volume else ("Secret", volume["secret"])
    name = source.get("name") or source["secretName"]
    data = contents.get((kind, name))
    if data is None:
        if source.get("optional"):
            return
        raise NotPlayable(f"{workload.name}: there is no {kind} {name}")
    mode = source.get("defaultMode", 0o644)
    for item in source.get("items") or [{"key": key, "path": key} for key in data]:
        if item["key"] not in data:
            raise NotPlayable(f"{workload.name}: {kind} {name} has no key {item['key']}")
        yield File(item["path"], data[item["key"]], item.get("mode", mode))


def contents(objects: Iterable[Object]) -> dict[tuple[str, str], dict[str, bytes]]:
    """What ConfigMaps and Secrets hold, those of a List too."""
    found: dict[tuple[str, str], dict[str, bytes]] = {}
    for one in objects:
        if one["kind"] == "List":
            found |= contents(one["items"])
        if one["kind"] in ("ConfigMap", "Secret"):
            data = {key: text.encode() for key, text in (one.get("stringData") or {}).items()}
            plain = one["kind"] == "ConfigMap"
            data |= {
                key: text.encode() if plain else base64.b64decode(text) for key, text in (one.get("data") or {}).items()
            }
            found[one["kind"], one["metadata"]["name"]] = data
    return found


def claims(workload: Workload, pod: str) -> list[Object]:
    """Claims of one pod, as podman plays them."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"{name}-{pod}"},
            "spec": copy.deepcopy(claim["spec"]),
        }
        for name, claim in workload.claims.items()
    ]


def pod_object(workload: Workload, pod: str, directory: str, node_directory: str) -> Object:
    """One pod, as podman plays it. ``directory`` holds its volumes, ``node_directory`` what its node's root is."""
    node = pod.removeprefix(f"{workload.name}-")
    security = workload.spec.get("securityContext", {})
    users = {key: security[key] for key in ("runAsUser", "runAsGroup") if key in security}
    known = {volume["name"]: volume for volume in workload.spec.get("volumes", ()) if "projected" not in volume}
    containers = []
    for one in workload.spec["containers"]:
        mounts = [
            mount for mount in one.get("volumeMounts", ()) if mount["name"] in known or mount["name"] in workload.claims
        ]
        container = {
            "name": one["name"],
            "image": f"localhost/{one['image']}",
            "imagePullPolicy": "Never",
            **{key: copy.deepcopy(one[key]) for key in ("command", "args") if key in one},
            "env": [_resolved(variable, pod, node) for variable in one.get("env", ())],
            "resources": {"limits": {"memory": one["resources"]["limits"]["memory"]}},
            "securityContext": {**users, **copy.deepcopy(one.get("securityContext", {}))},
            "volumeMounts": [
                {key: mount[key] for key in ("name", "mountPath", "readOnly") if key in mount} for mount in mounts
            ],
        }
        if workload.kind == "DaemonSet":
            container["command"] = [*_TREE_ENTRY, *container["command"]]
            container["env"] += _TREE_ENVIRONMENT
            container["securityContext"]["capabilities"]["add"].append(_TREE_CAPABILITY)
        containers.append(container)
    spec: Object = {"hostname": pod, "containers": containers}
    if workload.spec.get("shareProcessNamespace"):
        spec["shareProcessNamespace"] = True
    spec["volumes"] = [
        *(_volume(volume, directory, node_directory) for volume in known.values()),
        *({"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name in workload.claims),
    ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "labels": dict(workload.labels)}, "spec": spec}


def _resolved(variable: Object, pod: str, node: str) -> Object:
    if "valueFrom" not in variable:
        return dict(variable)
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    values = {"spec.nodeName": node, "metadata.name": pod}
    if path not in values:
        raise NotPlayable(f"environment {variable['name']}: nobody knows {path}")
    return {"name": variable["name"], "value": values[path]}


def _volume(volume: Object, directory: str, node_directory: str) -> Object:
    name = volume["name"]
    if "persistentVolumeClaim" in volume:
        return copy.deepcopy(volume)
    path = f"{node_directory}{volume['hostPath']['path']}" if "hostPath" in volume else f"{directory}/{name}"
    return {"name": name, "hostPath": {"path": path.rstrip("/"), "type": "Directory"}}


def probes(workload: Workload) -> list[Probe]:
    """How its pods say that they are ready."""
    numbers = ports(workload.spec)
    made = []
    for container in workload.spec["containers"]:
        asked = container.get("readinessProbe", {})
        if "exec" in asked:
            made.append(Probe(container["name"], tuple(asked["exec"]["command"])))
        elif "httpGet" in asked:
            http = asked["httpGet"]
            made.append(Probe(container["name"], port=numbers[http["port"]], path=http["path"]))
        elif asked:
            raise NotPlayable(f"{workload.name}: a readiness probe of no kind that is known here: {sorted(asked)}")
    return made


def last_words(workload: Workload) -> list[tuple[str, tuple[str, ...]]]:
    """Commands that run in a pod's containers before it is stopped."""
    found = []
    for container in workload.spec["containers"]:
        hook = container.get("lifecycle", {}).get("preStop", {})
        if "exec" in hook:
            found.append((container["name"], tuple(hook["exec"]["command"])))
        elif hook:
            raise NotPlayable(f"{workload.name}: a preStop of no kind that is known here: {sorted(hook)}")
    return found


def keygen_words(objects: Iterable[Object]) -> tuple[str, list[str]]:
    """(image, arguments) by which the keygen Job's program prints the Secrets that it would make by the API."""
    (job,) = by_kind(objects, "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    words = [word for word in container["args"] if word != "--in-cluster"]
    return f"localhost/{container['image']}", [*words, "--out", "/tmp/keys", "--secrets"]

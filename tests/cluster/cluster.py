"""The whole cluster: control plane, nodes, rules, name server, images; and kubectl, as a person would use it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cluster import control_plane, images, programs
from tests.cluster.kubectl import Kubectl
from tests.cluster.node import Node, hierarchies, tree
from tests.cluster.places import CACHE, NAME, NODES, SOURCES, STATE, ClusterError, inside, run, until

#: Name of the process that keeps the rules of NetworkPolicies.
_ENGINE = "policies"

#: Volumes of addons/volumes.yaml.
_VOLUMES = ("1", "2", "3")

#: Room of each: little, so that a test can fill it.
_VOLUME_SIZE = "128m"

#: Namespaces that an overlay and its tests fill.
_NAMESPACES = ("saltern", "saltern-minions", "outside", "monitoring")

#: What the adapter of around/monitoring serves.
_METRICS_API = "v1beta1.external.metrics.k8s.io"

#: Seconds for nodes, and for pods, to become ready on a busy machine.
PATIENCE = 600.0


def _say(text: str) -> None:
    sys.stdout.write(f"cluster: {text}\n")
    sys.stdout.flush()


class Cluster(Kubectl):
    """The one cluster of this machine."""

    def __init__(self) -> None:
        super().__init__(STATE / "kubectl")
        self.nodes = {name: Node(name) for name in NODES}

    # --------------------------------------------------------------------------------------------------------------- start, end

    def control(self) -> None:
        """Start the control plane alone: an API to apply to, and nothing that runs pods."""
        built = programs.build()
        if not self.answers():
            _say("starting etcd, the API server, the controllers and the scheduler")
            control_plane.start(built)

    def up(self) -> None:
        """Build what is missing, start what is not running, import the images; return when every node is ready."""
        self.control()
        built, lower = programs.build(), tree()
        for volume in _VOLUMES:
            place = STATE / "volumes" / volume
            place.mkdir(parents=True, exist_ok=True)
            if not place.is_mount():
                run(["mount", "-t", "tmpfs", "-o", f"size={_VOLUME_SIZE}", "volume", place])
        if not control_plane.running(_ENGINE):
            control_plane.spawn(_ENGINE, inside("", [sys.executable, "-m", "tests.cluster.engine"]))
        archives = {name: images.single(name, built) for name in images.SINGLE}
        for node in self.nodes.values():
            if not node.pid:
                _say(f"starting node {node.name}")
                node.start(built, lower)
            self._import(node, archives)
        for path in sorted((SOURCES / "addons").glob("*.yaml")):
            self.kubectl("apply", "-f", str(path))
        until(self._nodes_ready, PATIENCE, "every node is Ready")
        self.import_project()
        self.kubectl("-n", "kube-system", "rollout", "status", "deploy/coredns", "--timeout=300s", seconds=310)

    def _import(self, node: Node, archives: Mapping[str, Path]) -> None:
        for name, archive in archives.items():
            noted = node.directory / f"imported-{name}"
            if not noted.exists() or noted.read_text() != archive.name:
                node.bring(archive)
                noted.write_text(archive.name)

    def import_programs(self, part: str) -> None:
        """Build a part of `programs.APART`, and bring an image of each of its programs to every node."""
        built = programs.build(part)
        archives = {name: images.single(name, built) for name in programs.names(part)}
        for node in self.nodes.values():
            self._import(node, archives)

    def import_stand_ins(self, *targets: str) -> None:
        """Bring images of stand_ins/Dockerfile to the nodes that have not these very ones."""
        archives = {target: images.stand_in(target) for target in targets}
        for node in self.nodes.values():
            self._import(node, archives)

    def import_project(self, tag: str = "dev") -> None:
        """Bring this checkout's images to every node that has not these very ones; those it has are kept by SALTERN_KEEP_IMAGES."""
        notes = [node.directory / f"imported-{tag}" for node in self.nodes.values()]
        if os.environ.get("SALTERN_KEEP_IMAGES") and all(path.exists() for path in notes):
            return
        archive = images.project(tag)
        for node in self.nodes.values():
            _say(f"importing {archive.name} into {node.name}, if it is not there")
            self._import(node, {tag: archive})

    def _nodes_ready(self) -> bool:
        found = self.get("nodes")["items"]
        ready = [
            one["metadata"]["name"]
            for one in found
            for condition in one["status"]["conditions"]
            if condition["type"] == "Ready" and condition["status"] == "True"
        ]
        return sorted(ready) == sorted(NODES)

    def down(self) -> None:
        """End everything and remove it. Raises ClusterError that names what is left."""
        for node in self.nodes.values():
            # Nothing of it is kept: containers need not end one by one.
            node.stop(cleanly=False)
        for volume in _VOLUMES:
            if (place := STATE / "volumes" / volume).is_mount():
                run(["umount", place])
        control_plane.end([_ENGINE])
        control_plane.stop()
        control_plane.clear()
        if left := leftovers():
            raise ClusterError("left behind:\n  " + "\n  ".join(left))

    # --------------------------------------------------------------------------------------------------------------------- pods

    def pods(self, namespace: str, **labels: str) -> list[Any]:
        """Pods that are not on their way out, the oldest first."""
        chosen = ",".join(f"app.kubernetes.io/{key}={value}" for key, value in labels.items())
        found = self.get("pods", *(["-l", chosen] if chosen else []), namespace=namespace)["items"]
        alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def unready(self, *namespaces: str) -> dict[str, str]:
        """Pods that are not Ready, and why; pods of Jobs that ended well are left out."""
        found = {}
        for space in namespaces:
            for pod in self.pods(space):
                status = pod["status"]
                ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ()))
                if not ready and status["phase"] != "Succeeded":
                    found[f"{space}/{pod['metadata']['name']}"] = _why(status)
        return found

    def empty_for(self, overlay: str, *, fresh: bool = False) -> None:
        """Remove what another overlay left: namespaces, volumes, minions' keys on the nodes. What is this overlay's stays, unless a
        ``fresh`` one is wanted.
        """
        noted = STATE / "overlay"
        if not fresh and noted.exists() and noted.read_text() == overlay:
            return
        _say(f"emptying the cluster for overlays/{overlay}")
        # While an API of a namespace does not answer, no namespace ends.
        self.kubectl("delete", "apiservice", _METRICS_API, "--ignore-not-found")
        self.kubectl("delete", "namespace", *_NAMESPACES, "--ignore-not-found", "--timeout=600s", seconds=630)
        self.kubectl("delete", "persistentvolume", "--all", "--timeout=60s", seconds=90)
        for volume in _VOLUMES:
            for path in (STATE / "volumes" / volume).iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        self.kubectl("apply", "-f", str(SOURCES / "addons/volumes.yaml"))
        for node in self.nodes.values():
            node.run("rm", "-rf", "/var/lib/saltern", "/var/tmp/ran")
        noted.write_text(overlay)

    def exec(
        self, target: str, *words: str, namespace: str = "saltern", seconds: float = 300, check: bool = True
    ) -> str:
        """stdout of a command in a pod; ``target`` as kubectl takes it: POD, deploy/NAME."""
        return self.kubectl("-n", namespace, "exec", target, "--", *words, seconds=seconds, check=check)

    def cli(self, *words: str, seconds: float = 300, check: bool = True) -> str:
        """stdout of an operator's command, by the line that docs/operations/kubernetes.md prints."""
        return self.exec("deploy/saltern-cli", *words, seconds=seconds, check=check)

    def salt(self, *words: str, seconds: float = 300) -> Any:
        """Returns by minion of a ``salt`` that must succeed."""
        return json.loads(self.cli("salt", "--out", "json", "--static", *words, seconds=seconds))


def _why(status: Mapping[str, Any]) -> str:
    reasons = [status["phase"]]
    for one in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        for state, about in one["state"].items():
            if state != "running" or not one["ready"]:
                said = " ".join(str(about.get(key, "")) for key in ("reason", "message"))
                reasons.append(f"{one['name']} {state} {said}".strip())
    reasons += [str(one.get("message", "")) for one in status.get("conditions", ()) if one["type"] == "PodScheduled"]
    return "; ".join(reason for reason in reasons if reason)


def leftovers() -> Sequence[str]:
    """What of a cluster is on this machine: files, mounts, namespaces of networks, cgroups, processes."""
    found = [str(STATE)] if STATE.exists() else []
    found += [
        f"mount {line.split()[1]}" for line in Path("/proc/self/mounts").read_text().splitlines() if str(STATE) in line
    ]
    names = Path("/run/netns").glob(f"{NAME}*") if Path("/run/netns").exists() else ()
    found += [f"network namespace {path.name}" for path in names]
    found += [f"cgroup {path}" for point, _ in hierarchies() for path in point.glob(f"{NAME}*")]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words[0].startswith((str(STATE).encode(), str(CACHE).encode() + b"/bin")):
            found.append(f"process {path.parent.name} {words[0].decode()}")
    return found

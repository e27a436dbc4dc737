"""overlays/lab on the cluster: installed by the commands of docs/operations/kubernetes.md, and looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.cluster.cluster import PATIENCE, Cluster
from tests.cluster.places import NODES, until
from tests.k8s_run.traffic import ASK

#: The master's roles, each with a Deployment.
ROLES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance")

#: Namespaces of the manifests.
SPACES = ("saltern", "saltern-minions")


class Lab:
    """A master of overlays/lab, and a minion on every node."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def install(self, *, fresh: bool = False) -> None:
        """Apply, wait, accept the minions' keys: as the page says. ``fresh``: remove the overlay that is there first."""
        self.cluster.empty_for("lab", fresh=fresh)
        self.cluster.kubectl("apply", "-k", "k8s/overlays/lab")
        self.accept()

    def accept(self) -> None:
        """Wait for the master's pods, accept the minions' keys, wait for the minions."""
        until(lambda: not self.cluster.unready("saltern"), PATIENCE, "every pod of the master is ready", pause=2)

        def known() -> bool:
            keys = json.loads(self.cluster.cli("salt-key", "-L", "--out", "json"))
            return sorted([*keys["minions_pre"], *keys["minions"]]) == sorted(NODES)

        until(known, 300, "every minion has shown its key", pause=2)
        self.cluster.cli("salt-key", "-yA")
        until(lambda: not self.cluster.unready(*SPACES), PATIENCE, "every minion is ready", pause=2)

    def pods(self) -> dict[str, set[str]]:
        """Names of the pods that are not on their way out, by component."""
        found: dict[str, set[str]] = {}
        for space in SPACES:
            for pod in self.cluster.pods(space):
                component = pod["metadata"]["labels"].get("app.kubernetes.io/component", "")
                if pod["status"]["phase"] != "Succeeded":
                    found.setdefault(component, set()).add(pod["metadata"]["name"])
        return found

    def await_rolled(self, *names: str) -> None:
        """Wait until rollouts are done, of all workloads of the master by default."""
        workloads = (
            names or self.cluster.kubectl("-n", "saltern", "get", "deployments,statefulsets", "-o", "name").split()
        )
        for name in workloads:
            words = ("-n", "saltern", "rollout", "status", name, f"--timeout={PATIENCE:.0f}s")
            self.cluster.kubectl(*words, seconds=PATIENCE + 30)
        until(lambda: not self.cluster.unready("saltern"), PATIENCE, "every pod of the master is ready", pause=2)

    def kill(self, component: str, *, pod: str = "", namespace: str = "saltern") -> None:
        """Kill a component's process with -9, in a pod or in the oldest one; return when the kubelet has started it again."""
        found = (
            self.cluster.get("pod", pod, namespace=namespace)
            if pod
            else self.cluster.pods(namespace, component=component)[0]
        )
        name = found["metadata"]["name"]

        def status(of: Any) -> Any:
            (own,) = [one for one in of["status"]["containerStatuses"] if one["name"] == component]
            return own

        before = status(found)
        self.signal("KILL", found, component)

        def again() -> bool:
            now = status(self.cluster.get("pod", name, namespace=namespace))
            return bool(now["restartCount"] > before["restartCount"] and now["ready"])

        until(again, PATIENCE, f"{name} started again", pause=1)

    def signal(self, name: str, pod: Any, component: str) -> None:
        """Send a signal to the first process of a pod's container."""
        (status,) = [one for one in pod["status"]["containerStatuses"] if one["name"] == component]
        node = self.cluster.nodes[pod["spec"]["nodeName"]]
        # Its columns: the container, the number of its first process, the state.
        tasks = dict(line.split()[:2] for line in node.run("ctr", "-n", "k8s.io", "task", "list").splitlines())
        node.run("kill", f"-{name}", tasks[status["containerID"].removeprefix("containerd://")])

    def returned(self, jids: Sequence[str]) -> dict[str, dict[str, str]]:
        """Results that the job cache has, by JID and minion."""
        words = ("-n", "saltern", "exec", "-i", "deploy/saltern-mworker", "--", "python3", "-c", ASK)
        found: dict[str, dict[str, str]] = json.loads(self.cluster.kubectl(*words, stdin=json.dumps(jids)))
        return found

    def ran(self) -> dict[str, list[int]]:
        """Numbers that the jobs of tests left on each node."""
        paths = {node: self.cluster.nodes[node].path("/var/tmp/ran") for node in NODES}
        return {node: [int(line) for line in path.read_text().split()] for node, path in paths.items()}

    def command(self, *words: str) -> Sequence[str]:
        """The words of an operator's command, as kubectl runs it in the toolbox."""
        return [str(self.cluster.program), "-n", "saltern", "exec", "deploy/saltern-cli", "--", *words]

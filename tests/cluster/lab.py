"""overlays/lab on the cluster: installed by the commands of docs/operations/kubernetes.md, and looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.cluster.cluster import PATIENCE, Cluster
from tests.cluster.places import NODES, until

#: The master's roles, each with a Deployment.
ROLES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance")

#: Namespaces of the manifests.
SPACES = ("saltern", "saltern-minions")


class Lab:
    """A master of overlays/lab, and a minion on every node."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def install(self) -> None:
        """Apply, wait, accept the minions' keys: what the page says, in its order."""
        self.cluster.kubectl("apply", "-k", "k8s/overlays/lab")
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

    def command(self, *words: str) -> Sequence[str]:
        """The words of an operator's command, as kubectl runs it in the toolbox."""
        return [str(self.cluster.program), "-n", "saltern", "exec", "deploy/saltern-cli", "--", *words]

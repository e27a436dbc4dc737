"""Plays an overlay on the podman that ``.ci/podman start`` brings, and does to its pods what a cluster does: rolls, crashes."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s_run import adapter
from tests.k8s_run.adapter import NODES, Object, Probe, Workload

#: Seconds for a pod to become ready on a busy machine.
STARTUP = 240.0


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true value of ``condition``, asked five times a second. Fails the test at the deadline, naming ``what``."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {seconds:g} seconds")
        pause.wait(0.2)
    return value


@dataclass
class Cluster:
    """The objects of an overlay, and what runs of them."""

    program: Path
    root: Path
    objects: Sequence[Object]
    network: str = field(default_factory=lambda: f"saltern-{os.getpid()}")
    #: Pods that run, by workload; the first is the oldest.
    pods: dict[str, list[str]] = field(default_factory=dict)
    _made: int = 0

    def __post_init__(self) -> None:
        self.workloads = {one.name: one for one in adapter.workloads(self.objects)}
        self.contents = adapter.contents(self.objects)

    # ------------------------------------------------------------------------------------------------------------------ podman

    def podman(self, *words: str, seconds: float = 120, check: bool = True, stdin: str = "") -> str:
        """stdout of a podman command."""
        done = subprocess.run(
            [str(self.program), *words], input=stdin, capture_output=True, text=True, timeout=seconds, check=False
        )
        if check and done.returncode:
            pytest.fail(f"podman {' '.join(words)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def _play(self, document: Object, *words: str) -> None:
        self.podman("kube", "play", *words, "-", stdin=yaml.safe_dump(document))

    # ------------------------------------------------------------------------------------------------------------------- start

    def start(self) -> None:
        """Makes keys and nodes, plays every pod. They are not awaited."""
        self.podman("network", "create", self.network)
        image, words = adapter.keygen_words(self.objects)
        printed = self.podman("run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp:mode=1777", image, *words)
        self.contents |= adapter.contents(yaml.safe_load_all(printed))
        for node in NODES:
            self.node(node).mkdir(parents=True)
            userland = "localhost/saltern/userland:dev"
            self.podman(
                "run",
                "--rm",
                "--network=none",
                f"--env=HOST_NAME={node}",
                f"--volume={self.node(node)}:/host",
                userland,
            )
            (self.node(node) / "var/lib/saltern").mkdir(parents=True)
        for workload in self.workloads.values():
            self.pods[workload.name] = []
            for pod in workload.pods:
                self.play(workload, pod)

    def play(self, workload: Workload, pod: str, contents: adapter.Contents | None = None) -> None:
        """One pod of a workload; ``contents``: of ConfigMaps and Secrets, where they are to be others than the cluster's."""
        directory = self.root / "pods" / pod
        for volume in adapter.volumes(workload, self.contents if contents is None else contents):
            _materialise(volume, directory / volume.name)
        for claim in adapter.claims(workload, pod):
            self._play(claim)
        node = pod.removeprefix(f"{workload.name}-")
        document = adapter.pod_object(workload, pod, str(directory), str(self.node(node)))
        aliases = ",".join(f"alias={name}" for name in workload.aliases)
        self._play(document, f"--network={self.network}:{aliases}".rstrip(":"))
        self.pods[workload.name].append(pod)

    def node(self, name: str) -> Path:
        """What is the root of a node."""
        return self.root / "nodes" / name

    def close(self) -> None:
        """Removes all that runs and was made."""
        pods = [pod for found in self.pods.values() for pod in found]
        # podman 4.3 gives up where a container ends by itself while it is stopped: it is asked again.
        until(lambda: self._removed(pods), 300, "pods removed")
        for workload in self.workloads.values():
            for pod in workload.pods:
                for claim in adapter.claims(workload, pod):
                    self.podman("volume", "rm", "--force", claim["metadata"]["name"], check=False)
        self.podman("network", "rm", "--force", self.network, check=False)
        shutil.rmtree(self.root, ignore_errors=True)

    def _removed(self, pods: Sequence[str]) -> bool:
        # Nobody drains here: what was to be seen was seen.
        self.podman("pod", "rm", "--force", "--time", "0", "--ignore", *pods, check=False, seconds=300)
        left = self.podman("pod", "ps", "--format", "{{.Name}}").split()
        return not set(pods) & set(left)

    # ------------------------------------------------------------------------------------------------------------------- looks

    def container(self, pod: str, name: str = "") -> str:
        """Name of a container of a pod; its first by default."""
        (workload,) = [self.workloads[one] for one, pods in self.pods.items() if pod in pods]
        return f"{pod}-{name or workload.spec['containers'][0]['name']}"

    def address(self, pod: str) -> str:
        """The pod's address on the network of all pods."""
        infra = json.loads(self.podman("pod", "inspect", pod))["InfraContainerID"]
        (container,) = json.loads(self.podman("inspect", infra))
        address: str = container["NetworkSettings"]["Networks"][self.network]["IPAddress"]
        return address

    def unready(self, pod: str) -> str:
        """Why a pod is not ready; empty when it is."""
        (workload,) = [self.workloads[one] for one, pods in self.pods.items() if pod in pods]
        answers = [self._asked(pod, probe) for probe in adapter.probes(workload)]
        return "; ".join(answer for answer in answers if answer)

    def _asked(self, pod: str, probe: Probe) -> str:
        if probe.command:
            asked = [str(self.program), "exec", self.container(pod, probe.container), *probe.command]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
            return f"{probe.container}: {done.stdout}{done.stderr}".strip() if done.returncode else ""
        connection = http.client.HTTPConnection(self.address(pod), probe.port, timeout=5)
        try:
            connection.request("GET", probe.path)
            answer = connection.getresponse()
            text = answer.read().decode().strip()
            return "" if answer.status == 200 else f"{probe.container}: {text}"
        except (OSError, http.client.HTTPException) as error:
            return f"{probe.container}: {error}"
        finally:
            connection.close()

    def await_ready(self, *pods: str) -> None:
        """Waits until these pods, or all, are ready; says which is not, and why."""
        waiting = dict.fromkeys(pods or [pod for found in self.pods.values() for pod in found], "not asked")

        def ready() -> bool:
            for pod in list(waiting):
                waiting[pod] = self.unready(pod)
                if not waiting[pod]:
                    del waiting[pod]
            return not waiting

        try:
            until(ready, STARTUP, "pods ready")
        except pytest.fail.Exception:
            pytest.fail(f"not ready within {STARTUP:g} s: {waiting}\n{self.logs(waiting)}")

    def logs(self, pods: Iterable[str] = (), lines: int = 30) -> str:
        """The last words of pods, of all by default."""
        parts = []
        for pod in pods or [pod for found in self.pods.values() for pod in found]:
            said = subprocess.run(
                [str(self.program), "logs", "--tail", str(lines), self.container(pod)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=30,
                check=False,
            )
            parts += [f"--- {pod}", said.stdout]
        return "\n".join(parts)

    # ----------------------------------------------------------------------------------------------------------------- changes

    def roll(self, name: str) -> None:
        """Replaces every pod of a Deployment as its strategy says: new ones first, or all old ones away first."""
        workload, old = self.workloads[name], list(self.pods[name])
        together = len(old) if workload.recreate else workload.surge
        assert together, f"{name}: a rollout without surge is not played here"
        while old:
            ending, old = old[:together], old[together:]
            if workload.recreate:
                self._stop(workload, ending)
            new = [f"{name}-new{self._count()}" for _ in ending]
            for pod in new:
                self.play(workload, pod)
            self.await_ready(*new)
            if not workload.recreate:
                self._stop(workload, ending)

    def _count(self) -> int:
        self._made += 1
        return self._made

    def _stop(self, workload: Workload, pods: Iterable[str]) -> None:
        for pod in pods:
            self.stop(workload, pod)

    def stop(self, workload: Workload, pod: str) -> None:
        """Ends a pod as a kubelet does: its last words, a signal, and time to end."""
        for container, words in adapter.last_words(workload):
            self.podman("exec", self.container(pod, container), *words)
        grace = workload.spec.get("terminationGracePeriodSeconds", 30)
        self.podman("pod", "stop", "--time", str(grace), pod, seconds=grace + 60)
        self.podman("pod", "rm", "--force", pod)
        self.pods[workload.name].remove(pod)

    def crash(self, pod: str) -> None:
        """Kills the first process of a pod's first container with -9; podman starts it again."""
        container = self.container(pod)
        (state,) = [one["State"] for one in json.loads(self.podman("inspect", container))]
        os.kill(state["Pid"], signal.SIGKILL)

        def came_back() -> bool:
            (now,) = [one["State"] for one in json.loads(self.podman("inspect", container))]
            return bool(now["Running"] and now["Pid"] not in (0, state["Pid"]))

        until(came_back, 120, f"{pod} started again")

    # --------------------------------------------------------------------------------------------------------------- operators

    def command(self, *words: str) -> list[str]:
        """An operator's command in the toolbox, as `kubectl exec deploy/saltern-cli -- ...` runs it."""
        (pod,) = self.pods["saltern-cli"]
        return [str(self.program), "exec", self.container(pod), *words]

    def cli(self, *words: str, seconds: float = 120, check: bool = True) -> str:
        """stdout of such a command."""
        done = subprocess.run(
            self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )
        if check and done.returncode:
            pytest.fail(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.logs()}")
        return done.stdout

    def salt(self, *words: str, seconds: float = 120) -> Any:
        """Returns by minion of a ``salt`` that must succeed."""
        return json.loads(self.cli("salt", "--out", "json", "--static", *words, seconds=seconds))


def _materialise(volume: adapter.Volume, directory: Path) -> None:
    directory.mkdir(parents=True)
    for file in volume.files:
        path = directory / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        os.chown(path, 0, volume.group)
        # As a kubelet does with an fsGroup: the group may read what the owner may.
        path.chmod(file.mode | (0o440 if volume.group else 0))
    for nested in volume.directories:
        (directory / nested).mkdir(parents=True, exist_ok=True)
    os.chown(directory, 0, volume.group)
    directory.chmod(volume.mode)

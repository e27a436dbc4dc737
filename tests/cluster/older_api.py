"""API servers of older minor versions, each with its own etcd, beside the control plane: nothing runs what they are given."""

from __future__ import annotations

import shutil

from tests.cluster import programs
from tests.cluster.control_plane import api_server, await_ready, end, etcd, spawn, write_kubectl
from tests.cluster.kubectl import Kubectl
from tests.cluster.places import API, STATE, inside


class OlderApi(Kubectl):
    """The API server of apis/MINOR. The control plane's network and keys must be there."""

    def __init__(self, minor: str) -> None:
        self._minor = minor
        self._directory = STATE / f"api-{minor}"
        super().__init__(self._directory / "kubectl")
        number = int(minor.split(".")[1])
        self._port, self._etcd_port = 6400 + number, 12000 + 10 * number

    def start(self) -> None:
        """Start it with no object; return when it is ready. Builds it where it is missing."""
        built, older = programs.build(), programs.build(f"apis/{self._minor}")
        self._directory.mkdir(parents=True)
        data = self._directory / "etcd"
        spawn(f"etcd-{self._minor}", inside("", etcd(built / "etcd", data, self._etcd_port)))
        words = api_server(older / "kube-apiserver", self._etcd_port, self._port, self._directory / "keys")
        name = f"kube-apiserver-{self._minor}"
        spawn(name, inside("", words))
        write_kubectl(self.program, built, f"--server=https://{API}:{self._port}")
        await_ready(self.program, name)

    def stop(self) -> None:
        """End it, and remove what it wrote."""
        end([f"kube-apiserver-{self._minor}", f"etcd-{self._minor}"])
        shutil.rmtree(self._directory, ignore_errors=True)

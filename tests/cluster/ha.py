"""overlays/ha on the cluster, with what it wants around it: Redis with Sentinels, Git over https; and operators who never stop."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import tarfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import pki
from tests.cluster.cluster import PATIENCE, Cluster
from tests.cluster.control_plane import KEYS
from tests.cluster.images import STAND_INS
from tests.cluster.lab import Lab
from tests.cluster.places import NODES, SOURCES, until
from tests.cluster.programs import definitions
from tests.k8s.rendered import K8S, ROOT

#: The Redis of around/redis, as docs/operations/kubernetes.md has the URL.
REDIS_URL = (
    "redis+sentinel://" + ",".join(f"sentinel-{n}.sentinels.outside.svc.cluster.local" for n in range(3)) + "/saltern/0"
)

#: A fleet's own options: nothing is acknowledged before the second Redis has it.
OPTIONS = "redis_wait_replicas: 1\n"

#: Makes a repository of the tree that comes as an archive.
_COMMIT = """
set -eu
mkdir -p /repositories/work
cd /repositories/work
find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +
base64 -d | tar x
git init -q -b main . 2>/dev/null
git add -A
git -c user.name=tests -c user.email=tests@example.com commit -q --allow-empty -m "The example's tree"
[ -d ../states.git ] || git clone -q --bare . ../states.git
git push -q ../states.git main
"""


def tls_secret(cluster: Cluster, namespace: str, name: str, host: str) -> None:
    """A Secret with a certificate of the cluster's own authority."""
    pki.issue(KEYS, name, pki.Who(host, hosts=(host,)))
    words = ("create", "secret", "tls", name, f"--cert={KEYS}/{name}.crt", f"--key={KEYS}/{name}.key")
    if cluster.tried("-n", namespace, "get", "secret", name)[0]:
        cluster.kubectl("-n", namespace, *words)


class Ha(Lab):
    """A master of overlays/ha, by an overlay of one's own as the page shows it."""

    def __init__(self, cluster: Cluster, directory: Path, options: str = OPTIONS) -> None:
        super().__init__(cluster)
        #: Where the overlay of one's own is written.
        self.directory = directory
        self._options = options

    def install(self) -> None:
        """Apply what is around, bring the Secret, apply the overlay, accept the keys."""
        self.cluster.empty_for("ha")
        self.cluster.import_stand_ins("git-sync")
        self._bring_world()
        for definition in definitions():
            self.cluster.kubectl("apply", "--server-side", "-f", str(definition))
        self.cluster.kubectl("apply", "-f", "k8s/base/namespace.yaml")
        if self.cluster.tried("-n", "saltern", "get", "secret", "saltern-redis")[0]:
            words = ("create", "secret", "generic", "saltern-redis", "--from-file=url=/dev/stdin")
            self.cluster.kubectl("-n", "saltern", *words, stdin=REDIS_URL)
        self.apply()
        self.accept()

    def apply(self) -> None:
        """Apply the overlay: which repository, which options; everything else is overlays/ha's."""
        (self.directory / "60-mine.conf").write_text(self._options)
        literals = ["repository=https://git.outside.svc.cluster.local/states.git", "ref=main", "period=5s"]
        own = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(K8S.resolve() / "overlays/ha", self.directory.resolve())],
            # The stand-in has the tag, and not the digest of the manifests.
            "images": [dict(zip(("name", "newTag"), STAND_INS["git-sync"].split(":"), strict=True))],
            "configMapGenerator": [
                {"name": "saltern-tree-git", "namespace": "saltern", "behavior": "merge", "literals": literals},
                {"name": "saltern-master", "namespace": "saltern", "behavior": "merge", "files": ["60-mine.conf"]},
            ],
        }
        (self.directory / "kustomization.yaml").write_text(yaml.safe_dump(own))
        self.cluster.kubectl("apply", "-k", str(self.directory))

    def _bring_world(self) -> None:
        self.cluster.kubectl("apply", "-f", str(SOURCES / "around/namespace/namespace.yaml"))
        tls_secret(self.cluster, "outside", "git-tls", "git.outside.svc.cluster.local")
        for name in ("redis", "git"):
            self.cluster.kubectl("apply", "-k", str(SOURCES / "around" / name))
        until(lambda: len(self.cluster.pods("outside")) == 6, PATIENCE, "Redis, Sentinels and Git are made")
        until(lambda: not self.cluster.unready("outside"), PATIENCE, "Redis, Sentinels and Git are ready", pause=2)
        self.commit()

    def commit(self, files: Mapping[str, str] | None = None) -> None:
        """Push the example's trees, with some files more or changed, to the repository that the master reads."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for folder in ("salt", "pillar", "reactor"):
                tar.add(ROOT / "examples/srv" / folder, folder)
            for name, text in (files or {}).items():
                entry = tarfile.TarInfo(name)
                entry.size = len(text.encode())
                tar.addfile(entry, io.BytesIO(text.encode()))
        text = base64.encodebytes(archive.getvalue()).decode()
        self.cluster.kubectl("-n", "outside", "exec", "-i", "deploy/git", "--", "sh", "-c", _COMMIT, stdin=text)


class Operators:
    """tests/cluster/operators.py in the toolbox's pod, while the context lasts; what it printed is in ``said``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.said: list[Mapping[str, Any]] = []
        self._words = [
            *(str(cluster.program), "-n", "saltern", "exec", "-i", "deploy/saltern-cli", "--"),
            *("python3", "-c", (SOURCES / "operators.py").read_text(), str(len(NODES))),
        ]

    def __enter__(self) -> Operators:
        self._process = subprocess.Popen(
            self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(120)
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(json.loads(line))

    def of(self, kind: str, since: int = 0) -> Sequence[Mapping[str, Any]]:
        """What was said of a kind, from an index on."""
        return [one for one in self.said[since:] if one["kind"] == kind]

    def await_more(self, count: int) -> None:
        """Wait until each kind of command has succeeded so many times more. AssertionError: the process has ended."""
        since = len(self.said)

        def enough() -> bool:
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                raise AssertionError(f"the operators ended: {self._process.stderr.read()[-3000:]}")
            return all(
                sum("jid" in one for one in self.of(kind, since)) >= count for kind in ("publish", "answer", "event")
            )

        until(enough, 400, f"{count} more commands of each kind")

    def longest(self, kind: str, since: int) -> float:
        """Seconds that a command took at most, of those that ended after an index."""
        return max((one["took"] for one in self.of(kind, since)), default=0.0)

"""The cluster's programs, built from Go modules with pinned versions and checksums, once into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.places import CACHE, SOURCES, ClusterError, run

#: Of Kubernetes; go.mod has the same one.
VERSION = "1.34.4"

#: Program -> its package, and the folder of its go.mod.
PACKAGES = {
    "etcd": ("go.etcd.io/etcd/server/v3", "."),
    "kube-apiserver": ("k8s.io/kubernetes/cmd/kube-apiserver", "."),
    "kubectl": ("k8s.io/kubernetes/cmd/kubectl", "."),
    "kube-controller-manager": ("k8s.io/kubernetes/cmd/kube-controller-manager", "."),
    "kube-scheduler": ("k8s.io/kubernetes/cmd/kube-scheduler", "."),
    "kubelet": ("k8s.io/kubernetes/cmd/kubelet", "."),
    "kube-proxy": ("k8s.io/kubernetes/cmd/kube-proxy", "."),
    "host-local": ("github.com/containernetworking/plugins/plugins/ipam/host-local", "."),
    "ptp": ("github.com/containernetworking/plugins/plugins/main/ptp", "."),
    "loopback": ("github.com/containernetworking/plugins/plugins/main/loopback", "."),
    "pause": ("./pause", "."),
    "coredns": (".", "dns"),
    "metrics-server": ("sigs.k8s.io/metrics-server/cmd/metrics-server", "metrics"),
    "operator": ("github.com/prometheus-operator/prometheus-operator/cmd/operator", "operator"),
    "prometheus-config-reloader": (
        "github.com/prometheus-operator/prometheus-operator/cmd/prometheus-config-reloader",
        "operator",
    ),
}

#: Folders whose programs are no part of the cluster itself: each is built when a test wants it, into a directory of its own.
APART = ("metrics", "operator")


def names(part: str) -> list[str]:
    """The programs of a part: "." or one of APART."""
    return [name for name, (_, folder) in PACKAGES.items() if (folder if folder in APART else ".") == part]


#: What the API server, and with it `kubectl version`, calls itself.
_STAMPS = {
    "k8s.io/component-base/version.gitVersion": f"v{VERSION}",
    "k8s.io/component-base/version.gitMajor": VERSION.split(".")[0],
    "k8s.io/component-base/version.gitMinor": VERSION.split(".")[1],
}

#: Seconds for one program, on a machine that has other work.
_PATIENCE = 7200


def directory(part: str = ".") -> Path:
    """Where the programs of a part are ("." is the cluster itself, or one of APART): another pin is another directory."""
    digest = hashlib.sha256()
    inside = SOURCES / part
    for path in sorted([*inside.rglob("go.mod"), *inside.rglob("go.sum"), *inside.rglob("*.go")]):
        if part != "." or path.relative_to(inside).parts[0] not in APART:
            digest.update(path.read_bytes())
    return CACHE / f"{'bin' if part == '.' else part}-{VERSION}-{digest.hexdigest()[:12]}"


def build(part: str = ".") -> Path:
    """Build what is missing of a part; return the directory of its programs. An hour on two busy cores, at once the second time."""
    target = directory(part)
    target.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names(part) if not (target / name).exists()]
    if missing and shutil.which("go") is None:
        raise ClusterError("go is not installed: the cluster's programs are built from Go modules")
    for number, name in enumerate(missing, 1):
        sys.stdout.write(f"cluster: building {name} ({number} of {len(missing)})\n")
        sys.stdout.flush()
        _build_one(name, target)
    return target


def definitions() -> list[Path]:
    """Definitions of the kinds that the Prometheus operator knows, from its module; components/monitoring needs two of them."""
    module = "github.com/prometheus-operator/prometheus-operator"
    run(["go", "mod", "download", module], cwd=SOURCES / "crds", seconds=600)
    place = Path(run(["go", "list", "-m", "-f", "{{.Dir}}", module], cwd=SOURCES / "crds").strip())
    return sorted((place / "example" / "prometheus-operator-crd").glob("monitoring.coreos.com_*.yaml"))


def _build_one(name: str, target: Path) -> None:
    package, folder = PACKAGES[name]
    flags = " ".join(["-s -w", *(f"-X {key}={value}" for key, value in _STAMPS.items())])
    # Whole or not at all: a build that is ended leaves no program behind.
    part = target / f"{name}.part"
    done = subprocess.run(
        [
            "nice",
            "-n",
            "10",
            "go",
            "build",
            "-p",
            "2",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            flags,
            "-o",
            part,
            package,
        ],
        cwd=SOURCES / folder,
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"go build {package}: exit code {done.returncode}\n{done.stderr[-4000:]}")
    part.rename(target / name)

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
    "prometheus": ("github.com/prometheus/prometheus/cmd/prometheus", "prometheus"),
}

#: Program -> tags of its build. Of Prometheus' ways to find targets, the one by Kubernetes: with all of them, half an hour more.
_TAGS = {"prometheus": "remove_all_sd,enable_kubernetes_sd"}

#: Folders whose programs are no part of the cluster itself: each is built when a test wants it, into a directory of its own.
APART = ("metrics", "operator", "prometheus", "apis")

#: Older minor versions of Kubernetes: apis/MINOR is a part with an API server and nothing else.
MINORS = ("1.31", "1.32", "1.33")

_API_SERVER = PACKAGES["kube-apiserver"][0]


def names(part: str) -> list[str]:
    """The programs of a part: ".", one of APART, or apis/MINOR."""
    if part.startswith("apis/"):
        return ["kube-apiserver"]
    return [name for name, (_, folder) in PACKAGES.items() if (folder if folder in APART else ".") == part]


def version(part: str) -> str:
    """Version of Kubernetes that a part has in its go.mod: that of the cluster, or of apis/MINOR."""
    if not part.startswith("apis/"):
        return VERSION
    for line in (SOURCES / part / "go.mod").read_text("utf-8").splitlines():
        if line.split()[:1] == ["k8s.io/kubernetes"]:
            return line.split()[1].removeprefix("v")
    raise ClusterError(f"{SOURCES / part}/go.mod requires no k8s.io/kubernetes")


def _stamps(part: str) -> dict[str, str]:
    """What the API server, and with it `kubectl version`, calls itself."""
    number = version(part)
    major, minor, _ = number.split(".")
    where = "k8s.io/component-base/version"
    return {f"{where}.gitVersion": f"v{number}", f"{where}.gitMajor": major, f"{where}.gitMinor": minor}


#: Seconds for one program, on a machine that has other work.
_PATIENCE = 7200


def directory(part: str = ".") -> Path:
    """Where the programs of a part are ("." is the cluster itself, or one of APART): another pin is another directory."""
    digest = hashlib.sha256()
    inside = SOURCES / part
    for path in sorted([*inside.rglob("go.mod"), *inside.rglob("go.sum"), *inside.rglob("*.go")]):
        if part != "." or path.relative_to(inside).parts[0] not in APART:
            digest.update(path.read_bytes())
    name = "bin" if part == "." else part.split("/")[0]
    return CACHE / f"{name}-{version(part)}-{digest.hexdigest()[:12]}"


def build(part: str = ".") -> Path:
    """Build what is missing of a part; return the directory of its programs. An hour on two busy cores, at once the next time."""
    target = directory(part)
    target.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names(part) if not (target / name).exists()]
    if missing and shutil.which("go") is None:
        raise ClusterError("go is not installed: the cluster's programs are built from Go modules")
    for number, name in enumerate(missing, 1):
        sys.stdout.write(f"cluster: building {name} ({number} of {len(missing)})\n")
        sys.stdout.flush()
        _build_one(name, part, target)
    return target


def definitions() -> list[Path]:
    """Definitions of the kinds that the Prometheus operator knows, from its module; components/monitoring needs two of them."""
    module = "github.com/prometheus-operator/prometheus-operator"
    run(["go", "mod", "download", module], cwd=SOURCES / "crds", seconds=600)
    place = Path(run(["go", "list", "-m", "-f", "{{.Dir}}", module], cwd=SOURCES / "crds").strip())
    return sorted((place / "example" / "prometheus-operator-crd").glob("monitoring.coreos.com_*.yaml"))


def _build_one(name: str, part: str, target: Path) -> None:
    package, folder = (_API_SERVER, part) if part.startswith("apis/") else PACKAGES[name]
    flags = " ".join(["-s -w", *(f"-X {key}={value}" for key, value in _stamps(part).items())])
    # Whole or not at all: a build that is ended leaves no program behind.
    unfinished = target / f"{name}.part"
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
            "-tags",
            _TAGS.get(name, ""),
            "-ldflags",
            flags,
            "-o",
            unfinished,
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
    unfinished.rename(target / name)

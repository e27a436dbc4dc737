"""What kustomize renders, as objects: each overlay once, by the program that operators use."""

from __future__ import annotations

import copy
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
K8S = ROOT / "k8s"

#: What is applied as a whole.
OVERLAYS = tuple(sorted(path.parent.name for path in (K8S / "overlays").glob("*/kustomization.yaml")))

Object = dict[str, Any]

#: Kinds that run pods, and where in them the pod's template is.
TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
}


def kustomized(directory: Path) -> str:
    """What `kubectl kustomize` prints. Skips the test where there is no kubectl."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    made = subprocess.run(
        ["kubectl", "kustomize", str(directory)], capture_output=True, text=True, timeout=60, check=False
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


@functools.cache
def text(directory: str) -> str:
    """YAML of a kustomization below k8s/."""
    return kustomized(K8S / directory)


@functools.cache
def _parsed(directory: str) -> tuple[Object, ...]:
    return tuple(yaml.load_all(text(directory), Loader=yaml.CSafeLoader))


def objects(directory: str) -> list[Object]:
    """Copies, that a test may break."""
    return copy.deepcopy(list(_parsed(directory)))


IMAGES = (
    "publisher",
    "reqserver",
    "mworker",
    "eventpublisher",
    "reactor",
    "maintenance",
    "front",
    "cli",
    "keygen",
    "redis",
    "minion",
)


def composed(directory: Path, *components: str, resources: tuple[str, ...] = ("base", "minions")) -> list[Object]:
    """An overlay of a user's own."""
    up = os.path.relpath(K8S.resolve(), directory.resolve())
    value = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{up}/{name}" for name in resources],
        "components": [f"{up}/components/{name}" for name in components],
        "images": [{"name": f"saltern/{name}", "newTag": "1.0"} for name in IMAGES],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(value))
    return list(yaml.load_all(kustomized(directory), Loader=yaml.CSafeLoader))


def overlay(name: str) -> Sequence[Object]:
    """An overlay's objects: not to be changed."""
    return _parsed(f"overlays/{name}")


@dataclass(frozen=True)
class Pod:
    """A pod that some object makes."""

    kind: str
    name: str
    namespace: str
    metadata: Object
    spec: Object

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        """Of the pod itself."""
        found: Mapping[str, str] = self.metadata.get("labels", {})
        return found

    @property
    def component(self) -> str:
        """The role."""
        return self.labels.get("app.kubernetes.io/component", "")

    def containers(self, *, init: bool = True) -> Iterator[Object]:
        """Its containers, those that come first included."""
        if init:
            yield from self.spec.get("initContainers", ())
        yield from self.spec["containers"]


def pods(found: Sequence[Object]) -> list[Pod]:
    """All that run here."""
    made = []
    for one in found:
        if one["kind"] in TEMPLATES:
            template = functools.reduce(lambda inner, key: inner[key], TEMPLATES[one["kind"]], one)
            metadata = one["metadata"]
            made.append(
                Pod(
                    one["kind"], metadata["name"], metadata["namespace"], template.get("metadata", {}), template["spec"]
                )
            )
    return made


def of_kind(found: Sequence[Object], kind: str) -> list[Object]:
    """The objects of a kind."""
    return [one for one in found if one["kind"] == kind]

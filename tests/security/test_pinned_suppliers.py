"""Finding 38.22: what comes from others is pinned, and git-sync and roles are apart."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.k8s.policies import POLICIES
from tests.k8s.rendered import K8S, OVERLAYS, Object, composed, objects, of_kind, overlay, pods

ROOT = Path(__file__).resolve().parents[2]

GIT_SYNC = "registry.k8s.io/git-sync/git-sync"

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def _commands(text: str) -> list[str]:
    """The lines of a makefile or script; lines that end with a backslash are one."""
    return text.replace("\\\n", " ").splitlines()


#: The build's own programs: what installs without a hash would run whatever an index answers.
BUILD = [
    path for path in _tracked("Makefile", ".ci/*", "docker/*", "release/*", "k8s/pin-images") if path.suffix != ".lock"
]


def test_everything_installed_has_a_hash() -> None:
    for line in [line for path in BUILD for line in _commands(path.read_text("utf-8", "replace"))]:
        if re.search(r"pip[\w.]* install ", line) and not re.search(r"#|write\(", line.partition("pip")[0]):
            local = "--no-index" in line or "$(PACKAGES)" in line
            assert "--require-hashes" in line or local, line
        assert not re.search(r"\b(curl|wget)\b.*\|\s*(ba)?sh\b", line), line
        assert not re.search(r"\bnpx\b|\bnpm (i|install) (?!--prefix)", line), line


LOCKS = _tracked("*.lock")


@pytest.mark.ordinary
@pytest.mark.parametrize("path", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_lock_has_versions_and_hashes(path: Path) -> None:
    text = path.read_text("utf-8")
    if path.name == "base.lock":
        assert re.search(r"sha256:[0-9a-f]{64}", text)
        return
    entries = [line for line in _commands(text) if line.strip() and not line.startswith("#")]
    assert entries
    assert [line for line in entries if "==" not in line or not re.search(r"--hash=sha256:[0-9a-f]{64}", line)] == []


def test_the_tool_that_locks_is_locked() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\nlock:")[2].partition("\n\n")[0]
    assert "--require-hashes -r tests/supply/uv.lock" in recipe
    assert (ROOT / "tests/supply/uv.lock").read_text().startswith("uv==")


#: Manifests that a user applies; those of tests/cluster name stand-ins.
MANIFESTS = _tracked("k8s/*.yaml", "compose.yaml", "examples/*.yaml")


def test_images_of_others_have_a_digest() -> None:
    named = [
        image
        for path in MANIFESTS
        for image in re.findall(r"^\s*(?:- )?image: (\S+)$", path.read_text("utf-8"), re.MULTILINE)
    ]
    others = [image for image in named if not image.startswith("saltern/")]
    assert [image for image in others if not re.search(r"@sha256:[0-9a-f]{64}$", image)] == []


@pytest.mark.ordinary
def test_the_digest_is_one_everywhere() -> None:
    named = {image for path in MANIFESTS for image in re.findall(rf"image: ({GIT_SYNC}\S+)", path.read_text("utf-8"))}
    assert len(named) == 1


@needs_kubectl
@pytest.mark.parametrize("policy", ["built", "apart"])
@pytest.mark.parametrize("name", OVERLAYS)
def test_containers_share_no_folder_that_both_write(name: str, policy: str) -> None:
    assert list(POLICIES[policy](overlay(name))) == []


def _containers(found: list[Object], role: str) -> Any:
    (one,) = [each for each in pods(found) if each.component == role]
    return {each["name"]: each for each in one.containers()}


#: What an overlay of somebody could do, and must be told of: name -> (change, words of the complaint).
MIXED: dict[str, tuple[Callable[[Any], object], str]] = {
    "one /tmp": (
        lambda c: c["git-sync"]["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"}),
        "write the volume tmp",
    ),
    "one /tmp of the first container": (
        lambda c: c["git-clone"]["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"}),
        "write the volume tmp",
    ),
    "git-sync's /tmp in the worker": (
        lambda c: c["mworker"]["volumeMounts"].append({"name": "git-tmp", "mountPath": "/elsewhere"}),
        "write the volume git-tmp",
    ),
    "the same, to read": (
        lambda c: c["mworker"]["volumeMounts"].append({"name": "git-tmp", "mountPath": "/x", "readOnly": True}),
        "share /tmp",
    ),
    "a tree that the worker writes": (
        lambda c: next(each for each in c["mworker"]["volumeMounts"] if each["name"] == "git").pop("readOnly"),
        "write the volume git",
    ),
    "the worker's cache in git-sync": (
        lambda c: c["git-sync"]["volumeMounts"].append({"name": "cache", "mountPath": "/cache"}),
        "write the volume cache",
    ),
}


@needs_kubectl
@pytest.mark.parametrize("name", MIXED)
def test_a_shared_folder_is_complained_of(name: str) -> None:
    found = objects("overlays/ha")
    spoil, said = MIXED[name]
    spoil(_containers(found, "mworker"))
    assert any(said in complaint for complaint in POLICIES["apart"](found))


#: Ways to name an image that another registry's owner can move.
MOVABLE = ["v4.4.0", "latest", "v4.4.0@sha256:0330", "v4.4.0@sha512:" + "0" * 128]


@needs_kubectl
@pytest.mark.parametrize("reference", MOVABLE)
def test_an_image_that_can_be_moved_is_complained_of(reference: str) -> None:
    found = objects("overlays/ha")
    _containers(found, "mworker")["git-sync"]["image"] = f"{GIT_SYNC}:{reference}"
    assert any("by digest" in complaint for complaint in POLICIES["built"](found))


@needs_kubectl
def test_only_git_sync_leaves_the_cluster(tmp_path: Path) -> None:
    found = composed(tmp_path, "redis", "keygen", "tree-git-apart")
    ways = json.dumps([one["spec"] for one in of_kind(found, "NetworkPolicy") if one["metadata"]["name"] == "git"])
    assert '"app.kubernetes.io/component": "git-sync"' in ways
    assert "mworker" not in ways
    for role in ("mworker", "reactor"):
        assert "git-sync" not in _containers(found, role)
    (sync,) = [one for one in pods(found) if one.component == "git-sync"]
    assert not [volume for volume in sync.spec["volumes"] if "secret" in volume]


@pytest.mark.ordinary
@needs_kubectl
def test_the_components_are_there() -> None:
    assert {"tree-git-sync", "tree-git-apart", "tree-git-apart-login"} <= {
        path.name for path in (K8S / "components").iterdir()
    }

"""Every overlay is what the API of several Kubernetes versions takes: no field that they do not know."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import kubernetes_validate.utils
import pytest

from tests.k8s.rendered import OVERLAYS, composed, objects, overlay

#: The oldest that the manifests use fields of (appArmorProfile is of 1.30), and newer ones.
VERSIONS = ("1.30", "1.33", "1.37")

#: Kinds of others' APIs, whose schemas are theirs.
FOREIGN = ("monitoring.coreos.com/v1",)


@pytest.fixture(autouse=True, scope="module")
def _read_once() -> Iterator[None]:
    """The validator reads megabytes of definitions for each object; here each file is read once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            kubernetes_validate.utils, "schema_contents", functools.cache(kubernetes_validate.utils.schema_contents)
        )
        yield


def test_there_are_overlays() -> None:
    assert "lab" in OVERLAYS


@pytest.mark.parametrize("version", VERSIONS)
def test_the_api_takes_it(version: str) -> None:
    # What several overlays have alike is looked at once: a schema takes its time.
    distinct = {json.dumps(one, sort_keys=True): one for name in OVERLAYS for one in overlay(name)}
    known = [one for one in distinct.values() if one["apiVersion"] not in FOREIGN]
    assert {one["kind"] for one in known} >= {
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "NetworkPolicy",
        "Service",
    }
    for one in known:
        kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_api_takes_git_sync_in_a_pod_of_its_own(tmp_path: Path, version: str) -> None:
    found = composed(tmp_path, "redis", "keygen", "tree-git-apart", "tree-git-apart-login")
    changed = [one for one in found if "trees" in json.dumps(one) or one["metadata"]["name"] == "git"]
    assert {one["kind"] for one in changed} >= {"Deployment", "NetworkPolicy", "PersistentVolumeClaim"}
    for one in changed:
        kubernetes_validate.validate(one, version, strict=True)


def test_a_field_that_does_not_exist_is_found() -> None:
    broken = next(one for one in objects("overlays/lab") if one["kind"] == "Deployment")
    broken["spec"]["template"]["spec"]["containers"][0]["readyProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readyProbe"):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)

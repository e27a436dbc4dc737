"""Every overlay at real API servers of four minor versions: strict validation, admission, defaults, no warning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.kubectl import Kubectl
from tests.cluster.older_api import OlderApi
from tests.cluster.programs import MINORS, VERSION, definitions
from tests.k8s.rendered import K8S, OVERLAYS, Object, composed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

#: Components that no overlay names, and what each needs beside it.
COMPONENTS = (
    ("keygen", "redis", "api"),
    ("keygen", "redis", "autoscale"),
    ("keygen", "redis", "node-port"),
    ("keygen", "redis", "shared-cache", "tree-pvc"),
    ("keygen", "redis", "tree-git-sync", "tree-git-login"),
    ("keygen", "redis", "tree-git-apart", "tree-git-apart-login"),
    ("keygen", "redis", "worker-pools"),
)


@pytest.fixture(scope="module", params=[VERSION, *MINORS])
def server(request: pytest.FixtureRequest, api: Cluster) -> Iterator[Kubectl]:
    """The cluster's own API server, then each of the older ones."""
    if request.param == VERSION:
        _prepare(api)
        yield api
        return
    made = OlderApi(request.param)
    try:
        made.start()
        _prepare(made)
        # A controller makes it elsewhere: Pod Security is asked only about pods that could be.
        for space in ("saltern", "saltern-minions"):
            made.apply(
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": space}}
            )
        yield made
    finally:
        made.stop()


def _prepare(server: Kubectl) -> None:
    """Bring what must be there before anything is tried: the two namespaces, and the kinds of components/monitoring."""
    for path in ("base/namespace.yaml", "minions/namespace.yaml"):
        server.kubectl("apply", "-f", str(K8S / path))
    for definition in definitions():
        server.kubectl("apply", "--server-side", "-f", str(definition))


def _assert_accepted(said: str, objects: list[Object]) -> None:
    lines = said.splitlines()
    assert [line for line in lines if not line.endswith("(server dry run)")] == []
    assert len(lines) == len(objects)


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_accepted(name: str, server: Kubectl) -> None:
    overlay = K8S / "overlays" / name
    code, said = server.tried("apply", "-k", str(overlay), "--dry-run=server", "--validate=strict")
    objects = [one for one in yaml.safe_load_all(server.kubectl("kustomize", str(overlay))) if one]
    assert code == 0, said
    _assert_accepted(said, objects)


@pytest.mark.parametrize("names", COMPONENTS, ids="+".join)
def test_a_component_is_accepted(names: tuple[str, ...], server: Kubectl, tmp_path: Path) -> None:
    objects = composed(tmp_path, *names)
    text = yaml.safe_dump_all(objects)
    code, said = server.tried("apply", "-f", "-", "--dry-run=server", "--validate=strict", stdin=text)
    assert code == 0, said
    _assert_accepted(said, objects)


def test_the_job_of_an_operator_is_accepted(server: Kubectl) -> None:
    code, said = server.tried("create", "-k", "k8s/jobs/salt", "--dry-run=server", "--validate=strict")
    assert code == 0, said
    assert "Warning" not in said


def _pod(**changes: object) -> Object:
    """A pod as the reqserver's Deployment makes it, with some keys of its specification replaced."""
    (deployment,) = [
        one
        for one in yaml.safe_load_all((K8S / "base/reqserver.yaml").read_text("utf-8"))
        if one["kind"] == "Deployment"
    ]
    template = deployment["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "loosened", "namespace": "saltern", "labels": template["metadata"]["labels"]},
        # The ServiceAccount that every namespace has: those of the manifests are not applied here.
        "spec": {**template["spec"], "serviceAccountName": "default", **changes},
    }


def _container(**security: object) -> dict[str, object]:
    """The reqserver's container, with some of its securityContext replaced; None takes a key away."""
    (container,) = _pod()["spec"]["containers"]
    merged = {**container["securityContext"], **security}
    context = {key: value for key, value in merged.items() if value is not None}
    return {"containers": [{**container, "securityContext": context}]}


_HOST = {"name": "host", "hostPath": {"path": "/"}}

#: What somebody might loosen -> what Pod Security calls it.
LOOSENED: dict[str, tuple[dict[str, object], str]] = {
    "privileged": (_container(privileged=True, allowPrivilegeEscalation=True), "privileged"),
    "root": (_container(runAsUser=0), "runAsUser=0"),
    "escalation": (_container(allowPrivilegeEscalation=None), "allowPrivilegeEscalation != false"),
    "capabilities": (_container(capabilities={}), "unrestricted capabilities"),
    "capability": (_container(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), "unrestricted capabilities"),
    "seccomp": (_container(seccompProfile={"type": "Unconfined"}), "seccompProfile"),
    "perhaps root": ({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}, "runAsNonRoot != true"),
    "host's network": ({"hostNetwork": True}, "host namespaces"),
    "host's processes": ({"hostPID": True}, "host namespaces"),
    "host's disk": ({"volumes": [*_pod()["spec"]["volumes"], _HOST]}, "hostPath"),
}


def test_a_pod_of_the_manifest_is_admitted(server: Kubectl) -> None:
    code, said = server.tried("apply", "-f", "-", "--dry-run=server", stdin=yaml.safe_dump(_pod()))
    assert code == 0, said
    assert "Warning" not in said


@pytest.mark.parametrize("name", LOOSENED)
def test_pod_security_refuses_a_loosened_pod(name: str, server: Kubectl) -> None:
    changes, word = LOOSENED[name]
    code, said = server.tried("apply", "-f", "-", "--dry-run=server", stdin=yaml.safe_dump(_pod(**changes)))
    assert code != 0
    assert 'violates PodSecurity "restricted:latest"' in said
    assert word in said


# The last one: what it leaves is not what a component would be applied to.
@pytest.mark.parametrize("name", OVERLAYS)
@pytest.mark.parametrize("server", MINORS, indirect=True)
def test_an_overlay_is_applied_to_an_older_version(name: str, server: Kubectl) -> None:
    """Twice by kubectl, and once by the server, without a warning."""
    overlay = str(K8S / "overlays" / name)
    try:
        for _ in range(2):
            code, said = server.tried("apply", "-k", overlay, "--validate=strict")
            assert code == 0, said
            done = (" created", " configured", " unchanged")
            assert [line for line in said.splitlines() if not line.endswith(done)] == []
        code, said = server.tried("apply", "-k", overlay, "--server-side", "--force-conflicts")
        assert code == 0, said
        assert [line for line in said.splitlines() if not line.endswith(" serverside-applied")] == []
    finally:
        # What a Job runs cannot be changed, and each overlay has its own.
        server.kubectl("-n", "saltern", "delete", "jobs", "--all")

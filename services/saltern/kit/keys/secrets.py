"""Converts key directories to Kubernetes Secrets, one for each role, and back.

The Secret ``saltern-keys-<role>`` holds the files of ``DIR/<role>/`` under flat names (``known/x.pub`` becomes ``known.x.pub``).
The Secret ``saltern-redis`` holds a password for Redis: ``url`` for the roles, and ``users.acl`` for Redis, which
has only its hash.
``into_cluster`` is the work of the Job in k8s/components/keygen: it makes missing Secrets and keeps existing ones.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

from saltern.kit.keys.kubernetes import Cluster, ClusterError
from saltern.kit.links.sockets import FLAT_KNOWN, NAMES
from statecore.host.content.guarded_tree import GuardedTree

#: Name of the Secret with Redis' URL and users.
REDIS = "saltern-redis"

#: Bytes of a password for Redis.
PASSWORD_BYTES = 32

#: Labels of every Secret that is made here.
_LABELS = {"app.kubernetes.io/name": "saltern", "app.kubernetes.io/part-of": "saltern"}

Data = Mapping[str, bytes]


class Metadata(TypedDict):
    """The field ``metadata`` of a Kubernetes Secret: name, namespace and labels."""

    name: str
    namespace: str
    labels: dict[str, str]


class Secret(TypedDict):
    """A Kubernetes Secret as the map that the Kubernetes API takes and returns; ``data`` holds files in base64."""

    apiVersion: str
    kind: str
    metadata: Metadata
    type: str
    #: File name -> content, base64.
    data: dict[str, str]


def secret_name(role: str) -> str:
    """Return the name of the Kubernetes Secret that holds a role's keys."""
    return f"saltern-keys-{role}"


def of_directory(directory: Path) -> dict[str, Data]:
    """Return {Secret name: {file name: bytes}} for all roles, read from a directory that ``saltern keygen
    --out`` wrote. Raises OSError.
    """
    return {secret_name(role): dict(_files(directory / role)) for role in NAMES}


def of_redis(host: str, port: int = 6379, *, tls: tuple[str, str] | None = None) -> Data:
    """Return the content of a Secret with a new random password for Redis, as {file name: bytes}.

    ``url`` is the URL for the roles; ``users.acl`` is Redis's file of users. Redis's user ``probe`` may only
    ping, so a health check needs no password. ``tls``: paths of the authority and of the client's certificate.
    """
    password = secrets.token_hex(PASSWORD_BYTES)
    scheme, query = "redis", ""
    if tls is not None:
        scheme, query = "rediss", f"?ssl_ca_certs={quote(tls[0])}&ssl_certfile={quote(tls[1])}"
    return {"url": f"{scheme}://:{password}@{host}:{port}/0{query}".encode(), "users.acl": redis_users(password)}


def redis_users(*passwords: str) -> bytes:
    """Return the content of Redis' file ``users.acl``: the users ``default``, with the passwords' hashes, and ``probe``.

    There are two passwords while one is replaced. ``probe`` has no password and may only ping.
    """
    digests = " ".join(f"#{hashlib.sha256(password.encode()).hexdigest()}" for password in passwords)
    return f"user default on {digests} ~* &* +@all\nuser probe on nopass resetkeys resetchannels -@all +ping\n".encode()


def manifest(name: str, data: Data, namespace: str) -> Secret:
    """Return a Kubernetes Secret with this name, namespace and content ({file name: bytes}), as the map that the
    API takes.
    """
    encoded = {key: base64.b64encode(value).decode("ascii") for key, value in sorted(data.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "type": "Opaque",
        "data": encoded,
    }


def lay_out(directory: Path, role: str, data: Data) -> None:
    """Write the files of a role's Kubernetes Secret ({file name: bytes}) into ``directory/role``. Raises OSError."""
    tree = GuardedTree(directory)
    for key, value in data.items():
        nested = f"known/{key.removeprefix(FLAT_KNOWN)}" if key.startswith(FLAT_KNOWN) else key
        tree.put(f"{role}/{nested}", value)


def into_cluster(cluster: Cluster, make: Callable[[Path], object], redis_host: str = "") -> list[str]:
    """Create the missing Secrets in the cluster and return one line of text for each change.

    ``make`` fills a directory with keys (``keygen.make_keys``). A lost Secret is made anew, and the other Secrets get its
    public key. Raises ClusterError, OSError, ConfigError.
    """
    collection = f"/api/v1/namespaces/{cluster.namespace}/secrets"
    done: list[str] = []
    held = {role: cluster.get(f"{collection}/{secret_name(role)}") for role in NAMES}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for role, there in held.items():
            if there is not None:
                lay_out(directory, role, _decoded(secret_name(role), there))
        make(directory)
        for role, there in held.items():
            secret = manifest(secret_name(role), dict(_files(directory / role)), cluster.namespace)
            done += _put(cluster, collection, secret, there)
    if redis_host and cluster.get(f"{collection}/{REDIS}") is None:
        done += _put(cluster, collection, manifest(REDIS, of_redis(redis_host), cluster.namespace), None)
    return done


def _put(cluster: Cluster, collection: str, secret: Secret, there: Mapping[str, object] | None) -> list[str]:
    name = secret["metadata"]["name"]
    if there is None:
        if not cluster.create(collection, secret):
            raise ClusterError(f"secret {name} was made by somebody else meanwhile; run this again")
        return [f"made secret {name}"]
    if there.get("data") == secret["data"]:
        return []
    cluster.replace(f"{collection}/{name}", {**there, "data": secret["data"]})
    return [f"changed secret {name}"]


def _decoded(name: str, secret: Mapping[str, object]) -> Data:
    data = secret.get("data")
    try:
        return {
            key: base64.b64decode(value, validate=True)
            for key, value in (data if isinstance(data, dict) else {}).items()
        }
    except ValueError as error:
        raise ClusterError(f"secret {name}: not base64: {error}") from error


def _files(directory: Path) -> Iterator[tuple[str, bytes]]:
    tree = GuardedTree(directory)
    for name in tree.names():
        yield name.replace("known/", FLAT_KNOWN), tree.read(name)

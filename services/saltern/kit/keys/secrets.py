"""Key directories as Kubernetes Secrets, one for each role, and back.

``saltern-keys-<role>`` holds the files of ``DIR/<role>/`` under flat names (``known/x.pub`` is ``known.x.pub``), and
``saltern-redis`` a password for Redis: ``url`` for the roles, ``users.acl`` for Redis, which holds only its hash.
``into_cluster`` is what the Job of k8s/components/keygen does: what is there is kept, what is missing is made.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from saltern.kit.keys.kubernetes import Cluster, ClusterError
from saltern.kit.links.sockets import FLAT_KNOWN, NAMES

#: Name of the Secret with what Redis is reached by.
REDIS = "saltern-redis"

#: Bytes of a password for Redis.
_PASSWORD_BYTES = 32

#: Of every Secret made here.
_LABELS = {"app.kubernetes.io/name": "saltern", "app.kubernetes.io/part-of": "saltern"}

Data = Mapping[str, bytes]


def secret_name(role: str) -> str:
    """Name of the Secret with a role's keys."""
    return f"saltern-keys-{role}"


def of_directory(directory: Path) -> dict[str, Data]:
    """Secret name -> its content, of what ``saltern keygen --out`` has laid down. Raises OSError."""
    return {secret_name(role): dict(_files(directory / role)) for role in NAMES}


def of_redis(host: str, port: int = 6379) -> Data:
    """A new password for a Redis at ``host``: the URL of the roles, and the users' file of Redis.

    The user ``probe`` may ping, and nothing else: a health check needs no password.
    """
    password = secrets.token_hex(_PASSWORD_BYTES)
    digest = hashlib.sha256(password.encode()).hexdigest()
    users = f"user default on #{digest} ~* &* +@all\nuser probe on nopass resetkeys resetchannels -@all +ping\n"
    return {"url": f"redis://:{password}@{host}:{port}/0".encode(), "users.acl": users.encode()}


def manifest(name: str, data: Data, namespace: str) -> dict[str, Any]:
    """A Secret as the API takes it."""
    encoded = {key: base64.b64encode(value).decode("ascii") for key, value in sorted(data.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "type": "Opaque",
        "data": encoded,
    }


def lay_out(directory: Path, role: str, data: Data) -> None:
    """A Secret's content as the files of ``directory/role``. Raises OSError."""
    for key, value in data.items():
        nested = f"known/{key.removeprefix(FLAT_KNOWN)}" if key.startswith(FLAT_KNOWN) else key
        path = directory / role / nested
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(value)


def into_cluster(cluster: Cluster, make: Callable[[Path], object], redis_host: str = "") -> list[str]:
    """Makes what is missing of the Secrets; returns what was done. ``make`` fills a directory (``keygen.make_keys``).

    A Secret that was lost is made anew, and the others learn its public key. Raises ClusterError, OSError, ConfigError.
    """
    collection = f"/api/v1/namespaces/{cluster.namespace}/secrets"
    done: list[str] = []
    held: dict[str, dict[str, Any] | None] = {role: cluster.get(f"{collection}/{secret_name(role)}") for role in NAMES}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for role, there in held.items():
            if there is not None:
                lay_out(directory, role, _decoded(there))
        make(directory)
        for role, there in held.items():
            secret = manifest(secret_name(role), dict(_files(directory / role)), cluster.namespace)
            done += _put(cluster, collection, secret, there)
    if redis_host and cluster.get(f"{collection}/{REDIS}") is None:
        done += _put(cluster, collection, manifest(REDIS, of_redis(redis_host), cluster.namespace), None)
    return done


def _put(cluster: Cluster, collection: str, secret: dict[str, Any], there: Mapping[str, Any] | None) -> list[str]:
    name = secret["metadata"]["name"]
    if there is None:
        if not cluster.create(collection, secret):
            raise ClusterError(f"secret {name} was made by somebody else meanwhile; run this again")
        return [f"made secret {name}"]
    if there.get("data") == secret["data"]:
        return []
    cluster.replace(f"{collection}/{name}", {**there, "data": secret["data"]})
    return [f"changed secret {name}"]


def _decoded(secret: Mapping[str, Any]) -> Data:
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in (secret.get("data") or {}).items()}
    except ValueError as error:
        raise ClusterError(f"secret {secret['metadata']['name']}: not base64: {error}") from error


def _files(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            yield path.relative_to(directory).as_posix().replace("known/", FLAT_KNOWN), path.read_bytes()

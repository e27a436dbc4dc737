"""Converts key directories to Kubernetes Secrets, one for each role, and back.

The Secret ``saltern-keys-<role>`` holds the files of ``DIR/<role>/`` under flat names (``known/x.pub`` becomes ``known.x.pub``).
Among them is ``redis.url``, with the role's user of Redis. The Secret ``saltern-redis`` holds ``users.acl`` for Redis, which has
hashes of the passwords, and ``operator.url`` for operators.
``into_cluster`` is the work of the Job in k8s/components/keygen: it makes missing Secrets and keeps existing ones.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypedDict

from saltern.kit.keys.kubernetes import Cluster, ClusterError
from saltern.kit.keys.redis_logins import ONE_URL, OPERATOR_URL, USERS_FILE, address_of, complete_logins
from saltern.kit.links.sockets import FLAT_KNOWN, NAMES
from statecore.host.content.guarded_tree import GuardedTree

#: Name of the Secret with Redis' URL and users.
REDIS = "saltern-redis"

#: File of the Secret ``saltern-redis`` -> its name below the directory of keys. ``url`` is there with one user for all roles.
_REDIS_FILES = {"url": ONE_URL, "users.acl": USERS_FILE, "operator.url": OPERATOR_URL}

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


def of_redis(directory: Path) -> Data:
    """Return the content of the Secret ``saltern-redis`` as {file name: bytes}, read from a directory that ``saltern keygen
    --redis-host`` wrote: Redis' file of users, and the operators' URL. Raises OSError.
    """
    tree = GuardedTree(directory)
    return {name: tree.read(place) for name, place in _REDIS_FILES.items() if tree.exists(place)}


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
        if redis_host:
            done += _put_redis(cluster, collection, directory, redis_host)
        for role, there in held.items():
            secret = manifest(secret_name(role), dict(_files(directory / role)), cluster.namespace)
            done += _put(cluster, collection, secret, there)
    return done


def _put_redis(cluster: Cluster, collection: str, directory: Path, host: str) -> list[str]:
    """Complete the logins for Redis below ``directory``, and write the Secret ``saltern-redis``."""
    there = cluster.get(f"{collection}/{REDIS}")
    tree = GuardedTree(directory)
    for name, content in _decoded(REDIS, there).items() if there is not None else ():
        if name in _REDIS_FILES:
            tree.put(_REDIS_FILES[name], content)
    complete_logins(tree, address_of(host))
    return _put(cluster, collection, manifest(REDIS, of_redis(directory), cluster.namespace), there)


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

"""A client for the part of the Kubernetes API that Saltern needs: read, create or replace one object with the pod's token.

It replaces the usual client package, which takes 40 MB for three requests. A pod learns the address, token and certificate of the
API from environment variables and three mounted files.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Where a pod's token, its namespace and the cluster's certificate authority are mounted.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: Seconds for one request.
_TIMEOUT = 15.0


class ClusterError(Exception):
    """Raised when the Kubernetes API does not answer or refuses a request.

    The message names the request, the reason and the next thing to do.
    """


@dataclass(frozen=True)
class Cluster:
    """A client of the Kubernetes API of the cluster that this pod runs in."""

    host: str
    port: int
    token: str
    namespace: str
    authorities: ssl.SSLContext | None

    @classmethod
    def of_this_pod(cls, env: Mapping[str, str] | None = None, account: Path = ACCOUNT) -> Cluster:
        """Return a client of the Kubernetes API of this pod's cluster. Raises ClusterError outside a pod or without a token."""
        env = os.environ if env is None else env
        host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT_HTTPS", "443")
        if not host:
            raise ClusterError("KUBERNETES_SERVICE_HOST is not set: this is not a pod of a cluster")
        try:
            token = (account / "token").read_text("ascii").strip()
            namespace = (account / "namespace").read_text("utf-8").strip()
            authorities = ssl.create_default_context(cafile=str(account / "ca.crt"))
        except OSError as error:
            raise ClusterError(
                f"{error.filename or account / 'ca.crt'}: {error.strerror}; the pod needs the token of its ServiceAccount"
            ) from error
        return cls(host, int(port), token, namespace, authorities)

    def get(self, path: str) -> dict[str, object] | None:
        """Return the Kubernetes object at ``path`` as a map, None if it does not exist. Raises ClusterError."""
        status, body = self._ask("GET", path)
        return None if status == http.HTTPStatus.NOT_FOUND else _kept("GET", path, status, body)

    def create(self, path: str, value: Mapping[str, object]) -> bool:
        """Create the Kubernetes object ``value`` in the collection ``path``; return False if it already exists.

        Raises ClusterError.
        """
        status, body = self._ask("POST", path, value)
        if status == http.HTTPStatus.CONFLICT:
            return False
        _kept("POST", path, status, body)
        return True

    def replace(self, path: str, value: Mapping[str, object]) -> None:
        """Replace the Kubernetes object at ``path`` by ``value``. Raises ClusterError."""
        status, body = self._ask("PUT", path, value)
        _kept("PUT", path, status, body)

    def _ask(self, verb: str, path: str, value: Mapping[str, object] | None = None) -> tuple[int, bytes]:
        if self.authorities is None:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=_TIMEOUT)
        else:
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=_TIMEOUT, context=self.authorities)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if value is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(verb, path, None if value is None else json.dumps(value), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(
                f"{verb} {path}: no answer from the API at {self.host}:{self.port}: {error}; a NetworkPolicy must let this pod out"
            ) from error
        finally:
            connection.close()


def _kept(verb: str, path: str, status: int, body: bytes) -> dict[str, object]:
    """Return the object in the body of a successful answer of the Kubernetes API. Raises ClusterError for another answer."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict) or status >= http.HTTPStatus.BAD_REQUEST:
        why = value.get("message") if isinstance(value, dict) else body[:200].decode("utf-8", "replace")
        hint = "; a Role must allow it" if status == http.HTTPStatus.FORBIDDEN else ""
        raise ClusterError(f"{verb} {path}: the API answered {status}: {why}{hint}")
    return value

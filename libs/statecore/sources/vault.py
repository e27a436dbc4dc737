"""Client of HashiCorp Vault's (or OpenBao's) HTTP interface: logs in, reads and writes secrets of the engine kv.

Settings: ``url``, ``namespace``, ``verify`` (a CA file, or False), and ``auth`` with ``method`` token (``token``) or approle
(``role_id``, ``secret_id``). Salt's newer form with ``server`` for the first three is read too, and the environment
variables VAULT_ADDR, VAULT_TOKEN and VAULT_NAMESPACE. A master's runner that hands out tokens is not asked.
"""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecore.model.errors import CommandError
from statecore.model.ports import ManagedHost
from statecore.sources.http import Answer, Exchange, exchange

_TIMEOUT = 30.0


class Refused(CommandError):
    """Error: Vault refused a request. ``status`` is the HTTP status: 403 not allowed, 404 no such mount."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class VaultClient:
    """Reads and writes secrets of one Vault server. Methods raise CommandError with the server's reason if it refuses,
    or if it does not answer.
    """

    url: str
    auth: Mapping[str, object]
    namespace: str = ""
    verify: bool = True
    ca: Path | None = None
    _token: list[str] = field(default_factory=list)
    _mounts: dict[str, tuple[str, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any], host: ManagedHost) -> VaultClient:
        """Return a client for the server that the map ``settings`` names. Raise CommandError if it names none."""
        server = settings.get("server")
        place = {**settings, **(server if isinstance(server, Mapping) else {})}
        url = place.get("url") or os.environ.get("VAULT_ADDR")
        if not url:
            raise CommandError("Vault: no server is named; set the option vault: {url: https://..., auth: ...}")
        auth = settings.get("auth")
        verify = place.get("verify", True)
        return cls(
            url=str(url).rstrip("/"),
            auth=auth if isinstance(auth, Mapping) else {},
            namespace=str(place.get("namespace") or os.environ.get("VAULT_NAMESPACE") or ""),
            verify=verify is not False,
            ca=host.path(verify) if isinstance(verify, str) and verify.startswith("/") else None,
        )

    def read(self, path: str) -> tuple[dict[str, Any] | None, bool]:
        """Return (map of a secret's fields, True if its engine keeps versions). The map is None for a missing
        secret.
        """
        full, versioned = self._place(path)
        answer = self._ask("GET", full)
        if answer.status == 404:
            return None, versioned
        data = self._data(answer, full)
        fields = data.get("data") if versioned else data
        return (fields if isinstance(fields, dict) else None), versioned

    def write(self, path: str, fields: Mapping[str, object]) -> None:
        """Write a secret with exactly these fields; other fields of an existing secret are lost."""
        full, versioned = self._place(path)
        self._data(self._ask("POST", full, {"data": fields} if versioned else fields), full)

    # ---------------------------------------------------------------------------------------- requests

    def _place(self, path: str) -> tuple[str, bool]:
        """Return (path of a secret in the HTTP interface, True if its engine keeps versions: kv version 2)."""
        known = next((row for start, row in self._mounts.items() if path.startswith(start)), None)
        if known is None:
            answer = self._ask("GET", f"sys/internal/ui/mounts/{path}")
            data = self._data(answer, path)
            mount = str(data.get("path") or "")
            options = data.get("options")
            version = options.get("version") if isinstance(options, Mapping) else None
            known = self._mounts[mount] = (mount, str(version) == "2")
        mount, versioned = known
        rest = path.removeprefix(mount)
        if not versioned or rest.startswith("data/"):
            return path, versioned
        return f"{mount}data/{rest}", True

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        headers = {"X-Vault-Request": "true", "X-Vault-Token": self._logged_in()}
        return self._exchange(method, path, body, headers)

    def _logged_in(self) -> str:
        if self._token:
            return self._token[0]
        method = str(self.auth.get("method") or "token")
        if method == "approle":
            login = {name: self.auth[name] for name in ("role_id", "secret_id") if name in self.auth}
            mount = self.auth.get("approle_mount") or "approle"
            answer = self._exchange("POST", f"auth/{mount}/login", login, {"X-Vault-Request": "true"})
            token = self._body(answer, "the login by approle").get("auth", {}).get("client_token")
        elif method == "token":
            token = self.auth.get("token") or os.environ.get("VAULT_TOKEN")
        else:
            raise CommandError(f"Vault: unknown auth method {method!r}; known are token and approle")
        if not token:
            raise CommandError("Vault: no token; set vault: {auth: {method: token, token: ...}} or VAULT_TOKEN")
        self._token.append(str(token))
        return str(token)

    def _exchange(
        self, method: str, path: str, body: Mapping[str, object] | None, headers: Mapping[str, str]
    ) -> Answer:
        if not {"", ".", ".."}.isdisjoint(path.rstrip("/").split("/")) or not path.isprintable():
            # Servers and proxies resolve such names: the request would reach another secret, or another interface.
            raise CommandError(
                f"Vault: {path!a} is no path of a secret: it has empty names, '..' or control characters"
            )
        more = {"X-Vault-Namespace": self.namespace} if self.namespace else {}
        more |= {"Content-Type": "application/json"} if body is not None else {}
        try:
            return exchange(
                Exchange(
                    url=f"{self.url}/v1/{urllib.parse.quote(path)}",
                    method=method,
                    headers={**headers, **more},
                    body=None if body is None else json.dumps(body).encode(),
                    verify_ssl=self.verify,
                    ca_bundle=self.ca,
                    timeout=_TIMEOUT,
                )
            )
        except CommandError as error:
            raise CommandError(f"Vault at {self.url} does not answer: {error}") from error

    def _data(self, answer: Answer, path: str) -> dict[str, Any]:
        data = self._body(answer, path).get("data")
        return data if isinstance(data, dict) else {}

    def _body(self, answer: Answer, path: str) -> dict[str, Any]:
        try:
            body = json.loads(answer.body) if answer.body else {}
        except ValueError:
            body = {}
        if answer.status >= 400:
            reasons = ", ".join(str(each) for each in body.get("errors") or [answer.reason])
            raise Refused(f"Vault at {self.url}: {path}: {answer.status}: {reasons}", answer.status)
        return body if isinstance(body, dict) else {}

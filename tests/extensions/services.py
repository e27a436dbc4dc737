"""Small servers in memory that speak as much of Vault's, Zabbix's and Kubernetes' HTTP interfaces as the tests need."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "s.saltern-test"


class Service:
    """One server: ``answer`` returns (status, JSON or None) for a request."""

    def answer(self, method: str, path: str, data: Any, headers: Any) -> tuple[int, Any]:
        raise NotImplementedError

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Listen on a free port of loopback; yield the URL."""
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                data = json.loads(body) if body else None
                status, found = service.answer(self.command, self.path, data, self.headers)
                text = b"" if found is None else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()


class Vault(Service):
    """A Vault with a key/value store (version 2) at ``secret`` and ACL policies."""

    def __init__(self) -> None:
        self.secrets: dict[str, Any] = {}
        self.policies: dict[str, str] = {}

    def answer(self, method: str, path: str, data: Any, headers: Any) -> tuple[int, Any]:
        parsed = urllib.parse.urlsplit(path)
        name = parsed.path.removeprefix("/v1/")
        if parsed.query == "list=true":
            method = "LIST"
        if headers.get("X-Vault-Token") != TOKEN:
            return 403, {"errors": ["permission denied"]}
        for prefix, function in (
            ("auth/token/lookup-self", self._token),
            ("sys/internal/ui/mounts/", self._mount),
            ("secret/data/", self._secret),
            ("secret/metadata/", self._metadata),
            ("sys/policies/acl", self._policy),
            ("sys/policy", self._policy),
        ):
            if name.startswith(prefix):
                return function(method, name.removeprefix(prefix).strip("/"), data)
        return 404, {"errors": [f"no handler for route {name}"]}

    def _token(self, method: str, name: str, data: Any) -> tuple[int, Any]:
        known = {"id": TOKEN, "accessor": "a", "creation_time": 1700000000, "creation_ttl": 0, "expire_time": None}
        return 200, {"data": {**known, "num_uses": 0, "renewable": False, "ttl": 0, "policies": ["root"], "path": "x"}}

    def _mount(self, method: str, name: str, data: Any) -> tuple[int, Any]:
        mount = {"path": "secret/", "type": "kv", "uuid": "u", "accessor": "kv_1", "options": {"version": "2"}}
        return 200, {"data": mount}

    def _secret(self, method: str, name: str, data: Any) -> tuple[int, Any]:
        if method in ("POST", "PUT"):
            self.secrets[name] = data["data"]
            return 200, {"data": {"version": 1, "created_time": "2026-01-01T00:00:00Z"}}
        if method == "DELETE":
            self.secrets.pop(name, None)
            return 204, None
        if name not in self.secrets:
            return 404, {"errors": []}
        return 200, {"data": {"data": self.secrets[name], "metadata": {"version": 1, "destroyed": False}}}

    def _metadata(self, method: str, name: str, data: Any) -> tuple[int, Any]:
        if method == "LIST":
            keys = sorted(key.removeprefix(f"{name}/") for key in self.secrets if key.startswith(f"{name}/"))
            return (200, {"data": {"keys": keys}}) if keys else (404, {"errors": []})
        if name not in self.secrets:
            return 404, {"errors": []}
        versions = {"1": {"created_time": "2026-01-01T00:00:00Z", "deletion_time": "", "destroyed": False}}
        return 200, {"data": {"current_version": 1, "versions": versions}}

    def _policy(self, method: str, name: str, data: Any) -> tuple[int, Any]:
        if method in ("POST", "PUT"):
            self.policies[name] = data["policy"]
            return 204, None
        if method == "DELETE":
            self.policies.pop(name, None)
            return 204, None
        if not name:
            return 200, {"data": {"keys": sorted(self.policies), "policies": sorted(self.policies)}}
        if name not in self.policies:
            return 404, {"errors": []}
        text = self.policies[name]
        return 200, {"data": {"name": name, "policy": text, "rules": text}, "rules": text, "name": name}


class Zabbix(Service):
    """A Zabbix that has host groups."""

    def __init__(self) -> None:
        self.groups: dict[str, str] = {"2": "Linux servers"}

    def answer(self, method: str, path: str, data: Any, headers: Any) -> tuple[int, Any]:
        params, name = data["params"], data["method"]
        if name == "apiinfo.version":
            return self._result("5.0.1")
        if name == "user.login":
            good = params == {"user": "Admin", "password": "zabbix"}
            return self._result("token") if good else self._fault("Login name or password is incorrect.")
        if data.get("auth") != "token":
            return self._fault("Not authorised.")
        if name == "hostgroup.get":
            wanted = params.get("filter", {}).get("name")
            rows = [{"groupid": key, "name": group} for key, group in self.groups.items() if wanted in (None, group)]
            return self._result(rows)
        if name == "hostgroup.create":
            key = str(max(map(int, self.groups), default=0) + 1)
            self.groups[key] = params["name"]
            return self._result({"groupids": [key]})
        if name == "hostgroup.delete":
            for key in params:
                del self.groups[str(key)]
            return self._result({"groupids": params})
        return self._fault(f"Incorrect method {name}.")

    def _result(self, value: Any) -> tuple[int, Any]:
        return 200, {"jsonrpc": "2.0", "id": 0, "result": value}

    def _fault(self, text: str) -> tuple[int, Any]:
        return 200, {"jsonrpc": "2.0", "id": 0, "error": {"code": -32602, "message": "Invalid params.", "data": text}}


class Kubernetes(Service):
    """A Kubernetes API server that keeps namespaces, config maps and secrets."""

    def __init__(self) -> None:
        self.things: dict[str, Any] = {"/api/v1/namespaces/default": _thing("v1", "Namespace", "default", None, {})}

    def answer(self, method: str, path: str, data: Any, headers: Any) -> tuple[int, Any]:
        asked = urllib.parse.urlsplit(path)
        place = asked.path.rstrip("/")
        if place in ("/version", "/version/"):
            return 200, {"major": "1", "minor": "31", "gitVersion": "v1.31.0"}
        if method == "POST":
            name = data["metadata"]["name"]
            if f"{place}/{name}" in self.things:
                return self._status(409, "AlreadyExists", f'"{name}" already exists')
            namespace = place.split("/namespaces/")[1].split("/")[0] if "/namespaces/" in place else None
            kind = data.get("kind") or "ConfigMap"
            made = _thing(data.get("apiVersion") or "v1", kind, name, namespace, data)
            if "dryRun" not in asked.query:
                self.things[f"{place}/{name}"] = made
            return 201, made
        if place in self.things:
            if method == "DELETE" and "dryRun" in asked.query:
                return 200, {"kind": "Status", "status": "Success", "code": 200}
            if method == "DELETE":
                return 200, {
                    "kind": "Status",
                    "status": "Success",
                    "code": 200,
                    "details": self.things.pop(place)["metadata"],
                }
            if method in ("PUT", "PATCH") and "dryRun" not in asked.query:
                self.things[place] = {**self.things[place], **data, "metadata": self.things[place]["metadata"]}
            return 200, self.things[place]
        below = [thing for name, thing in self.things.items() if name.rpartition("/")[0] == place]
        if below or place.endswith(("namespaces", "configmaps", "secrets")):
            return 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": below}
        return self._status(404, "NotFound", f"{place} not found")

    def _status(self, code: int, reason: str, message: str) -> tuple[int, Any]:
        return code, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}


def _thing(version: str, kind: str, name: str, namespace: str | None, data: Any) -> dict[str, Any]:
    metadata = {**data.get("metadata", {}), "name": name, "uid": "u", "resourceVersion": "1"}
    if namespace:
        metadata["namespace"] = namespace
    rest = {key: value for key, value in data.items() if key not in ("metadata", "kind", "apiVersion")}
    found = {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
    return found | ({"status": {"phase": "Active"}} if kind == "Namespace" else {})

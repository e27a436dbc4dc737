"""An etcd of one dictionary: version 2 and the JSON gateway of version 3, in the words of etcd 3.4."""

from __future__ import annotations

import base64
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Number and message of version 2's errors.
_ERRORS = {100: "Key not found", 102: "Not a file", 104: "Not a directory", 108: "Directory not empty"}


class Store:
    """The keys: those of version 2 are a tree of paths (None is a directory), those of version 3 bytes."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.index = 0
        self.nodes: dict[str, tuple[str | None, int]] = {}
        self.keys: dict[bytes, tuple[bytes, int]] = {}
        self.events: list[tuple[str, str | None, int]] = []

    def v2(self, method: str, path: str, query: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        with self.lock:
            if method == "GET" and query.get("wait"):
                return self._wait(path, query)
            if method == "GET":
                return self._get(path, recursive=query.get("recursive") == "true")
            return self._put(path, form) if method == "PUT" else self._delete(path, query)

    def _error(self, code: int, cause: str) -> tuple[int, Any]:
        status = 404 if code == 100 else 403
        return status, {"errorCode": code, "message": _ERRORS[code], "cause": cause, "index": self.index}

    def _below(self, path: str) -> list[str]:
        start = "/" if path == "/" else f"{path}/"
        return [key for key in sorted(self.nodes) if key.startswith(start) and "/" not in key[len(start) :]]

    def _node(self, path: str, depth: int) -> dict[str, Any]:
        value, index = self.nodes.get(path, (None, 0))
        node: dict[str, Any] = {"key": path, "modifiedIndex": index, "createdIndex": index}
        if value is not None:
            return node | {"value": value}
        node["dir"] = True
        below = [self._node(key, depth - 1) for key in self._below(path)] if depth else []
        return node | ({"nodes": below} if below else {})

    def _get(self, path: str, *, recursive: bool) -> tuple[int, Any]:
        if path != "/" and path not in self.nodes:
            return self._error(100, path)
        return 200, {"action": "get", "node": self._node(path, 99 if recursive else 1)}

    def _put(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        directory = form.get("dir") == "true"
        if path in self.nodes and self.nodes[path][0] is None:
            return self._error(102, path)
        parts = path.split("/")[1:-1]
        for count in range(1, len(parts) + 1):
            above = "/" + "/".join(parts[:count])
            if self.nodes.setdefault(above, (None, self.index))[0] is not None:
                return self._error(104, above)
        self.index += 1
        self.nodes[path] = (None if directory else form["value"], self.index)
        self.events.append((path, self.nodes[path][0], self.index))
        self.lock.notify_all()
        return 201, {"action": "set", "node": self._node(path, 0)}

    def _delete(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path not in self.nodes:
            return self._error(100, path)
        if self.nodes[path][0] is None and query.get("recursive") != "true":
            return self._error(102, path)
        self.index += 1
        self.nodes = {key: node for key, node in self.nodes.items() if key != path and not key.startswith(f"{path}/")}
        return 200, {"action": "delete", "node": {"key": path, "modifiedIndex": self.index}}

    def _wait(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        since = int(query.get("waitIndex", self.index + 1))

        def found() -> tuple[str, str | None, int] | None:
            for key, value, index in self.events:
                below = query.get("recursive") == "true" and key.startswith(f"{path}/")
                if index >= since and (key == path or below):
                    return key, value, index
            return None

        self.lock.wait_for(found, timeout=20)
        event = found()
        assert event is not None, "nobody changed the key"
        key, value, index = event
        return 200, {"action": "set", "node": {"key": key, "value": value, "modifiedIndex": index}}

    def v3(self, verb: str, body: dict[str, Any]) -> tuple[int, Any]:
        key, end = (base64.b64decode(body.get(name, "")) for name in ("key", "range_end"))
        with self.lock:
            if verb == "lease/grant":
                return 200, {"ID": "7", "TTL": str(body["TTL"])}
            if verb == "kv/put":
                self.index += 1
                self.keys[key] = (base64.b64decode(body["value"]), self.index)
                return 200, {"header": {"revision": str(self.index)}}
            found = sorted(each for each in self.keys if each == key or (end and key <= each < end))
            if verb == "kv/deleterange":
                for each in found:
                    del self.keys[each]
                return 200, {"deleted": str(len(found))} if found else {}
            assert verb == "kv/range", verb
            rows = [
                {"key": _base64(each), "value": _base64(self.keys[each][0]), "mod_revision": str(self.keys[each][1])}
                for each in found
            ]
            return 200, {"kvs": rows, "count": str(len(rows))} if rows else {}


def serve() -> ThreadingHTTPServer:
    """Return a server on a port of its own; the caller shuts it down."""
    store = Store()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def _do(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if parts.path.startswith("/v3/"):
                status, data = store.v3(parts.path.removeprefix("/v3/"), json.loads(body))
            else:
                path = urllib.parse.unquote(parts.path.removeprefix("/v2/keys"))
                path = "/" + path.strip("/")
                query = dict(urllib.parse.parse_qsl(parts.query))
                form = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
                status, data = store.v2(self.command, path, query, form)
            text = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_DELETE = _do

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

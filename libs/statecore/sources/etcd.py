"""Client of etcd over its HTTP interface: version 2 (``/v2/keys``) and version 3 (the JSON gateway ``/v3``).

Settings, in the minion's options, in pillar, or in a profile there: ``etcd.host`` (127.0.0.1), ``etcd.port`` (2379),
``etcd.username``, ``etcd.password``, ``etcd.ca``, ``etcd.client_cert``, ``etcd.client_key``, ``etcd.require_v2`` (True, as
in Salt) and ``etcd.encode_values`` (version 3: values are MessagePack; True, as in Salt). A CA means https.
"""

from __future__ import annotations

import base64
import json
import logging
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from statecore.model.errors import CommandError
from statecore.model.ports import ManagedHost
from statecore.sources.http import Exchange, TimedOut, exchange

log = logging.getLogger(__name__)

_TIMEOUT = 60.0


class Refused(CommandError):
    """Error that etcd returned for a request. ``code`` is etcd's error number: 100 no such key, 102 a directory, 108 a
    directory that is not empty.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Change(NamedTuple):
    """Result of ``EtcdClient.watch``: a key, its value and revision. ``changed`` is False if the time passed without a
    change.
    """

    key: str
    value: object
    changed: bool
    revision: int
    directory: bool = False

    def shown(self) -> dict[str, object]:
        """Return the change as the map that ``etcd.watch`` returns: key, value, changed, mIndex (revision), dir."""
        return {
            "key": self.key,
            "value": self.value,
            "changed": self.changed,
            "mIndex": self.revision,
            "dir": self.directory,
        }


def settings_of(
    opts: Mapping[str, object], pillar: Mapping[str, object], profile: str | None, given: Mapping[str, object]
) -> dict[str, object]:
    """Return the settings of an etcd server as a map (``etcd.host`` ...): those of the profile, or without a profile
    those of options and pillar.

    ``given`` (``host``, ``port``, ``username``, ...) replaces them. Options have precedence over pillar.
    """
    master = pillar.get("master")
    merged = {**(master if isinstance(master, Mapping) else {}), **pillar, **opts}
    found = merged.get(profile, {}) if profile else merged
    settings = {str(key): value for key, value in found.items()} if isinstance(found, Mapping) else {}
    return settings | {f"etcd.{key}": value for key, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class EtcdClient:
    """Reads and writes keys of one etcd server. Methods raise CommandError if the server does not answer or refuses to
    read.
    """

    url: str
    version: int = 2
    login: tuple[str, str] | None = None
    ca: Path | None = None
    cert: tuple[Path, ...] = ()
    #: Version 3: values are stored as MessagePack.
    encoded: bool = True
    _token: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, settings: Mapping[str, object], host: ManagedHost) -> EtcdClient:
        """Return a client for the server that a map of settings (from ``settings_of``) names. Certificates are files of
        the host.
        """
        ca, cert, key = (settings.get(f"etcd.{name}") for name in ("ca", "client_cert", "client_key"))
        user, password = settings.get("etcd.username"), settings.get("etcd.password")
        port = settings.get("etcd.port") or 2379
        return cls(
            url=f"{'https' if ca else 'http'}://{settings.get('etcd.host') or '127.0.0.1'}:{port}",
            version=2 if settings.get("etcd.require_v2", True) else 3,
            login=(str(user), str(password)) if user and password else None,
            ca=host.path(str(ca)) if ca else None,
            cert=tuple(host.path(str(each)) for each in (cert, key)) if ca and cert and key else (),
            encoded=bool(settings.get("etcd.encode_values", True)),
        )

    # ------------------------------------------------------------------------------------------- reading

    def get(self, key: str) -> object:
        """Return the value of a key; None for a missing key and for a directory."""
        if self.version == 3:
            return next((value for _, value, _ in self._range(key, below=False)), None)
        node = self._node(key)
        return None if node is None else node.get("value")

    def tree(self, path: str) -> dict[str, object] | None:
        """Return the keys below a path as nested maps of name to value; None if there are none. If the path is a key,
        return ``{name: value}``.
        """
        if self.version == 2:
            node = self._node(path, recursive=True)
            return None if node is None else _nested(node)
        rows = self._range(path, below=True)
        if not rows:
            return None
        if len(rows) == 1 and rows[0][0] == path:
            return {path.rpartition("/")[2]: rows[0][1]}
        found: dict[str, object] = {}
        for key, value, _ in rows:
            _put(found, key[len(path) :].lstrip("/").split("/"), value)
        return found

    def ls(self, path: str) -> dict[str, object]:
        """Return ``{path: {key: value}}`` for the keys directly below a path; {} if there is no such path. A directory
        has a slash at its end and the value {}.
        """
        if self.version == 2:
            node = self._node(path)
            if node is None:
                return {}
            rows = node.get("nodes", [] if node.get("dir") else [node])
            return {path: {f"{row['key']}/" if row.get("dir") else row["key"]: _ls_value(row) for row in rows}}
        tree = self.tree(path)
        if tree is None:
            return {}
        start = path if path.endswith("/") else f"{path}/"
        return {
            path: {
                f"{start}{key}/" if isinstance(value, dict) else f"{start}{key}": {}
                if isinstance(value, dict)
                else value
                for key, value in tree.items()
            }
        }

    def watch(self, key: str, recurse: bool, timeout: float, revision: int | None) -> Change | None:
        """Wait up to ``timeout`` seconds (0: a minute) for a change of a key, with ``recurse`` also of keys below it,
        and return the Change.

        ``revision``: also report a change since this revision. Without a change, version 3 returns None, version 2 a
        Change with ``changed`` False.
        """
        if self.version == 3:
            return self._watch_stream(key, recurse, timeout or _TIMEOUT, revision)
        query = {"wait": "true", "recursive": "true" if recurse else "false"}
        query |= {"waitIndex": str(revision)} if revision else {}
        try:
            answer = self._v2("GET", key, query=query, timeout=timeout or _TIMEOUT)
        except TimedOut:
            node = self._node(key)
            if node is None:
                return Change(key, None, changed=False, revision=0)
            return Change(key, node.get("value"), False, int(node["modifiedIndex"]), bool(node.get("dir")))
        node = answer["node"]
        name = str(node["key"]) if recurse else key
        return Change(name, node.get("value"), True, int(node["modifiedIndex"]), bool(node.get("dir")))

    # ------------------------------------------------------------------------------------------- writing

    def set(self, key: str, value: object, ttl: int | None = None) -> object:
        """Write the value of a key, which expires after ``ttl`` seconds if given, and return it. None (and an error in
        the log) if etcd refuses, for example because the key is a directory.
        """
        if self.version == 3:
            lease = self._v3("lease/grant", {"TTL": ttl})["ID"] if ttl else None
            body = {"key": _base64(key.encode()), "value": _base64(self._packed(value))}
            self._v3("kv/put", body | ({"lease": lease} if lease else {}))
            return self.get(key)
        form = {"value": str(value)} | ({"ttl": str(ttl)} if ttl else {})
        try:
            return self._v2("PUT", key, form=form)["node"].get("value")
        except Refused as error:
            log.error("etcd: %s", error)
            return None

    def make_directory(self, key: str, ttl: int | None = None) -> bool | None:
        """Make a directory (version 2). Return True, also if it exists; None (and an error in the log) if etcd refuses.

        Raise CommandError with version 3, which has no directories.
        """
        if self.version == 3:
            raise CommandError("etcd3 does not have directories")
        form = {"dir": "true"} | ({"ttl": str(ttl)} if ttl else {})
        try:
            self._v2("PUT", key, form=form)
        except Refused as error:
            if error.code == 102:
                return True
            log.error("etcd: %s", error)
            return None
        return True

    def update(self, fields: Mapping[str, object], path: str = "") -> dict[str, object] | None:
        """Write the keys in nested maps below a path. Return a map of each full key to its new value.

        With version 2, an empty map makes a directory, and None is returned after the first key that cannot be written.
        With version 3 empty maps are left out.
        """
        done: dict[str, object] = {}
        for key, value in flattened(fields, path).items():
            if isinstance(value, Mapping):
                if self.version == 3:
                    log.warning("etcd3 has no directories: %s is left out", key)
                    continue
                done[key] = self.make_directory(key)
            else:
                done[key] = self.set(key, value)
            if done[key] is None and self.version == 2:
                return None
        return done

    def delete(self, key: str, recurse: bool = False) -> bool | None:
        """Delete a key, with ``recurse`` also those below it. Return True, or None if nothing was deleted."""
        if self.version == 3:
            answer = self._v3("kv/deleterange", _range_of(key, below=recurse))
            return True if int(answer.get("deleted", 0)) else None
        try:
            self._v2("DELETE", key, query={"recursive": "true"} if recurse else {})
        except Refused as error:
            log.error("etcd: %s", error)
            return None
        return True

    # ------------------------------------------------------------------------------------------- requests

    def _node(self, key: str, recursive: bool = False) -> dict[str, Any] | None:
        try:
            node: dict[str, Any] = self._v2("GET", key, query={"recursive": "true"} if recursive else {})["node"]
        except Refused as error:
            if error.code == 100:
                return None
            raise
        return node

    def _v2(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        timeout: float = _TIMEOUT,
    ) -> Any:
        path = f"/v2/keys/{urllib.parse.quote(key.lstrip('/'))}"
        body = urllib.parse.urlencode(form).encode() if form else None
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        asked = Exchange(
            url=f"{self.url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else ""),
            method=method,
            headers=headers,
            body=body,
            login=self.login,
            ca_bundle=self.ca,
            cert=self.cert,
            timeout=timeout,
            connect_timeout=timeout,
        )
        return self._answer(asked)

    def _v3(self, verb: str, body: Mapping[str, object]) -> Any:
        if self.login is not None and not self._token and verb != "auth/authenticate":
            user, password = self.login
            self._token.append(str(self._v3("auth/authenticate", {"name": user, "password": password})["token"]))
        asked = Exchange(
            url=f"{self.url}/v3/{verb}",
            method="POST",
            headers={"Content-Type": "application/json"} | ({"Authorization": self._token[0]} if self._token else {}),
            body=json.dumps(body).encode(),
            ca_bundle=self.ca,
            cert=self.cert,
            timeout=_TIMEOUT,
        )
        return self._answer(asked)

    def _answer(self, asked: Exchange) -> Any:
        try:
            answer = exchange(asked)
        except TimedOut:
            raise
        except CommandError as error:
            raise CommandError(f"etcd at {self.url} does not answer: {error}") from error
        try:
            data = json.loads(answer.body)
        except ValueError:
            hint = "; it may not serve version 2 (etcd.require_v2: False)" if "/v2/" in asked.url else ""
            raise CommandError(f"etcd at {self.url}: {answer.status} {answer.reason}{hint}") from None
        if answer.status >= 400:
            cause = data.get("cause") or data.get("error") or ""
            code = int(data.get("errorCode") or data.get("code") or answer.status)
            raise Refused(f"etcd at {self.url}: {data.get('message') or cause}: {cause}", code)
        return data

    def _range(self, key: str, *, below: bool) -> list[tuple[str, object, int]]:
        rows = self._v3("kv/range", _range_of(key, below=below)).get("kvs", [])
        return [self._row(row) for row in rows]

    def _row(self, row: Mapping[str, str]) -> tuple[str, object, int]:
        value = base64.b64decode(row.get("value", ""))
        key = base64.b64decode(row["key"]).decode("utf-8", "surrogateescape")
        return key, self._unpacked(value), int(row.get("mod_revision", 0))

    def _packed(self, value: object) -> bytes:
        return msgpack.packb(value) if self.encoded else str(value).encode()

    def _unpacked(self, value: bytes) -> object:
        if not self.encoded:
            return value.decode("utf-8", "surrogateescape")
        try:
            return msgpack.unpackb(value, raw=False)
        except (ValueError, msgpack.UnpackException) as error:
            raise CommandError(
                f"etcd at {self.url}: a value is no MessagePack ({error}); set etcd.encode_values: False"
            ) from error

    def _watch_stream(self, key: str, recurse: bool, timeout: float, revision: int | None) -> Change | None:
        """Wait for a change with version 3 by reading the keys' revisions again and again. Return the Change; None
        after ``timeout`` seconds.

        The gateway's own stream of changes cannot be ended by a client.
        """
        # Imported here: only a watch needs them.
        import threading
        import time

        before = {name: number for name, _, number in self._range(key, below=recurse)}
        deadline = time.monotonic() + timeout
        pause = threading.Event()
        while time.monotonic() < deadline:
            now = self._range(key, below=recurse)
            for name, value, number in now:
                if number != before.get(name) or (revision and number >= revision):
                    return Change(name, value, changed=True, revision=number)
            gone = sorted(before.keys() - {name for name, *_ in now})
            if gone:
                return Change(gone[0], None, changed=True, revision=before[gone[0]])
            pause.wait(0.2)
        return None


def flattened(data: Mapping[str, object], path: str = "") -> dict[str, object]:
    """Return nested maps as one map of ``/path/to/key`` to value. An empty map keeps its place, with the value {}."""
    if not data:
        return {path: {}}
    start = f"/{path.strip('/')}" if path.strip("/") else ""
    found: dict[str, object] = {}
    for key, value in data.items():
        name = f"{start}/{str(key).strip('/')}"
        found |= flattened(value, name) if isinstance(value, Mapping) else {name: value}
    return found


def _ls_value(row: Mapping[str, Any]) -> object:
    return {} if row.get("dir") else row.get("value")


def _nested(node: Mapping[str, Any]) -> dict[str, object]:
    if not node.get("dir"):
        return {str(node["key"]).rpartition("/")[2]: node.get("value")}
    return {
        str(row["key"]).rpartition("/")[2]: _nested(row) if row.get("dir") else row.get("value")
        for row in node.get("nodes", ())
    }


def _put(data: dict[str, object], keys: list[str], value: object) -> None:
    for key in keys[:-1]:
        inner = data.setdefault(key, {})
        if not isinstance(inner, dict):
            # The key is a value and a prefix of others, which nested maps cannot show.
            inner = data[key] = {}
        data = inner
    data[keys[-1]] = value


def _range_of(key: str, *, below: bool) -> dict[str, str]:
    start = key.encode("utf-8", "surrogateescape")
    if not below:
        return {"key": _base64(start)}
    # The first key behind all that begin so: the last byte that can grow is increased.
    stem = start.rstrip(b"\xff")
    end = stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\0"
    return {"key": _base64(start or b"\0"), "range_end": _base64(end)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")

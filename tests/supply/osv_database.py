"""OSV's export of faults of Python packages, answered as its API answers, so that pip-audit works without a network.

The export is one zip file with one JSON file for each fault (``PyPI/all.zip`` of OSV's public bucket). ``OsvDatabase.query`` is the
decision; ``serve`` answers POST requests on loopback with it, in the form of ``https://api.osv.dev/v1/query``.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

#: A fault as OSV describes it: https://ossf.github.io/osv-schema/
Fault = Mapping[str, Any]
#: Largest request that is read, in bytes: a name and a version.
MAX_REQUEST = 65536


class DatabaseError(Exception):
    """Raised when the file is no export of OSV, or holds no fault of any Python package."""


class OsvDatabase:
    """Faults by the name of the package."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults: dict[str, list[Fault]] = {}
        for fault in faults:
            names = {canonicalize_name(each["package"]["name"]) for each in _python(fault)}
            for name in names:
                self._faults.setdefault(name, []).append(fault)

    @classmethod
    def read(cls, path: Path) -> OsvDatabase:
        """Return the database of an exported zip file. Raises DatabaseError."""
        try:
            with zipfile.ZipFile(path) as archive:
                faults = [json.loads(archive.read(name)) for name in archive.namelist() if name.endswith(".json")]
        except (OSError, zipfile.BadZipFile, ValueError) as error:
            raise DatabaseError(f"{path}: no zip file of OSV's JSON: {error}") from error
        if not any(_python(fault) for fault in faults):
            raise DatabaseError(f"{path}: no fault of a Python package in it; the export is OSV's PyPI/all.zip")
        return cls(faults)

    def newest(self) -> str:
        """Return the time of the newest change, as OSV writes it: how old the export is."""
        return max(str(fault.get("modified", "")) for faults in self._faults.values() for fault in faults)

    def query(self, name: str, version: str) -> list[Fault]:
        """Return the faults of a version of a package."""
        wanted = canonicalize_name(name)
        found = []
        for fault in self._faults.get(wanted, []):
            rows = [row for row in _python(fault) if canonicalize_name(row["package"]["name"]) == wanted]
            if any(affects(row, version) for row in rows):
                found.append(fault)
        return found


def _python(fault: Fault) -> list[Mapping[str, Any]]:
    return [row for row in fault.get("affected", []) if row.get("package", {}).get("ecosystem") == "PyPI"]


def affects(row: Mapping[str, Any], version: str) -> bool:
    """Return True if one row of a fault's ``affected`` covers a version: it is listed, or in a range of ecosystem versions."""
    try:
        asked = Version(version)
    except InvalidVersion:
        return version in row.get("versions", [])
    if any(_same(asked, each) for each in row.get("versions", [])):
        return True
    return any(
        _in_range(asked, each.get("events", [])) for each in row.get("ranges", []) if each.get("type") == "ECOSYSTEM"
    )


def _same(asked: Version, text: str) -> bool:
    try:
        return asked == Version(text)
    except InvalidVersion:
        return False


def _in_range(asked: Version, events: Sequence[Mapping[str, str]]) -> bool:
    """Play the events of a range in the order of their versions: each up to ``asked`` begins or ends the affected versions."""
    affected = False
    for kind, at in sorted(((k, _version(v)) for event in events for k, v in event.items()), key=lambda pair: pair[1]):
        if kind == "introduced" and at <= asked:
            affected = True
        elif (kind == "fixed" and at <= asked) or (kind == "last_affected" and at < asked):
            affected = False
    return affected


def _version(text: str) -> Version:
    return Version("0.dev0" if text == "0" else text)


@contextmanager
def serve(database: OsvDatabase) -> Iterator[str]:
    """Answer queries on a port of 127.0.0.1 while the context is open. Yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MAX_REQUEST:
                self.send_error(413)
                return
            asked = json.loads(self.rfile.read(length))
            faults = database.query(asked["package"]["name"], asked["version"])
            body = json.dumps({"vulns": faults} if faults else {}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """pip-audit reports what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/query"
    finally:
        server.shutdown()
        server.server_close()

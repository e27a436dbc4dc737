"""``saltern health``: a container's health check, without curl. Asks ``/readyz`` (or ``--live``) of the role on this machine."""

from __future__ import annotations

import argparse
import http.client
import sys
from collections.abc import Sequence

from services.kit.config import ConfigError, load_master


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 when the role is ready, 1 when it is not (the reasons on stderr)."""
    parser = argparse.ArgumentParser(prog="saltern health", description=__doc__)
    parser.add_argument("--live", action="store_true", help="ask whether its loop turns, not whether it is ready")
    parser.add_argument("-c", "--config-dir", default=None)
    arguments = parser.parse_args(argv)
    path = "/healthz" if arguments.live else "/readyz"
    try:
        port = load_master(arguments.config_dir).health_port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode(errors="replace").strip()
    except (ConfigError, OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"saltern health: {error}\n")
        return 1
    if response.status != http.HTTPStatus.OK:
        sys.stderr.write(f"{body}\n")
        return 1
    return 0

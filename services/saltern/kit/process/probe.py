"""The command ``saltern health``, a container's health check: asks the role on this machine whether it is ready or alive.

It reads ``/readyz``; with ``--live`` it reads ``/healthz``.
"""

from __future__ import annotations

import contextlib
import http.client
import sys
from collections.abc import Sequence

from saltern.kit.config.master import ConfigError, load_master
from saltern.kit.config.reading import notes_of
from statecore.model.option_parser import OptionParser

#: Paths of the two probes: readiness and liveness.
READY = "/readyz"
LIVE = "/healthz"


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern health``. Return exit code 0 if the role is ready, else 1 with the reasons on stderr."""
    parser = OptionParser(prog="saltern health", description=__doc__)
    parser.add_argument("--live", action="store_true", help="ask whether its loop turns, not whether it is ready")
    parser.add_argument("-c", "--config-dir", default=None)
    arguments = parser.parse_args(argv)
    try:
        options = load_master(arguments.config_dir)
        port = options.health_port
    except ConfigError as error:
        sys.stderr.write(f"saltern health: {error}\n")
        return 1
    if not port:
        sys.stderr.write(
            "saltern health: health_port is 0: this role answers no probes; set it, or SALTERN_HEALTH_PORT\n"
            + "".join(f"{note}\n" for note in notes_of(options))
        )
        return 1
    try:
        why = ask(port, LIVE if arguments.live else READY)
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"saltern health: no answer from 127.0.0.1:{port}: {error}\n")
        return 1
    if why is not None:
        sys.stderr.write(f"{why}\n")
        return 1
    return 0


def ask(port: int, path: str, *, timeout: float = 5.0) -> str | None:
    """Return None if the role that answers probes on ``port`` of this machine is ready, else its reasons as text.

    Raises OSError or HTTPException if nothing answers within ``timeout`` seconds.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    with contextlib.closing(connection):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode(errors="replace").strip()
    return None if response.status == http.HTTPStatus.OK else body

"""Which ports of this machine are taken, asked before anything is started."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

from saltern.lab.errors import LabError
from saltern.lab.plan import LOOPBACK, Program, describe


def check_free(programs: Iterable[Program]) -> None:
    """Raises LabError that names every port that these programs cannot have."""
    refused = [(use, why) for program in programs for use in program.uses if (why := why_not(use.number))]
    taken = [use for use, why in refused if why == errno.EADDRINUSE]
    forbidden = [use for use, why in refused if why != errno.EADDRINUSE]
    parts = []
    if taken:
        parts.append(f"ports of {LOOPBACK} taken by other programs:\n{describe(taken)}")
    if forbidden:
        parts.append(f"ports of {LOOPBACK} that this user may not have:\n{describe(forbidden)}")
    if parts:
        parts.append("Nothing was started. Choose others with these options, or move all ports: --shift 20000")
        raise LabError("\n".join(parts))


def why_not(port: int) -> int:
    """0 when the port can be bound now, else the error's number."""
    with socket.socket() as probe:
        # Connections of an earlier lab that linger in TIME_WAIT take nothing from the next one.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error.errno or errno.EADDRNOTAVAIL
    return 0

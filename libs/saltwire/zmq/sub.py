"""A minion's subscription to publications (protocol section 1.2)."""

from __future__ import annotations

import random
from collections.abc import Callable

import zmq

#: Largest publication that is read.
_MAX_PUBLICATION = 64 * 1024 * 1024


def subscribe(
    context: zmq.Context[zmq.Socket[bytes]],
    endpoint: str,
    minion_id: str,
    *,
    recon_default: int,
    recon_max: int,
    randomize: bool = True,
    before: Callable[[zmq.Socket[bytes]], None] | None = None,
) -> zmq.Socket[bytes]:
    """A connected SUB socket for every publication. Pauses before reconnects are spread, so that a fleet does not return at once.

    ``recon_default`` and ``recon_max`` are milliseconds, as in Salt's options; without ``randomize`` the pause is the first.
    ``before`` has the socket before it connects: who wants to know of connections must look from then on.
    """
    sub = context.socket(zmq.SUB)
    pause = random.randint(recon_default, recon_default + recon_max) if randomize else recon_default
    for name, value in (
        (zmq.LINGER, 1),
        # An address that swallows every packet is left; the kernel would try it for two minutes.
        (zmq.CONNECT_TIMEOUT, 10_000),
        (zmq.RECONNECT_IVL, pause),
        (zmq.RECONNECT_IVL_MAX, max(recon_max, pause)),
        (zmq.MAXMSGSIZE, _MAX_PUBLICATION),
        (zmq.TCP_KEEPALIVE, 1),
        (zmq.TCP_KEEPALIVE_IDLE, 300),
        (zmq.HEARTBEAT_IVL, 10000),
        (zmq.HEARTBEAT_TIMEOUT, 30000),
    ):
        sub.setsockopt(name, value)
    sub.setsockopt(zmq.IDENTITY, minion_id.encode())
    sub.setsockopt(zmq.SUBSCRIBE, b"")
    if before is not None:
        before(sub)
    sub.connect(endpoint)
    return sub

"""A minion's subscription to publications. Source: docs/protocol.md#publish-framing"""

from __future__ import annotations

import random
from collections.abc import Callable

import zmq

#: Largest publication that is read, bytes.
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
    """Return a connected SUB socket that receives every publication.

    ``recon_default`` and ``recon_max`` are milliseconds, as in Salt's options. ``randomize`` spreads the pauses before
    reconnects, so that a fleet does not reconnect all at once; without it the pause is ``recon_default``. ``before`` is
    called with the socket before it connects, for monitors that must see the first connection.
    """
    sub = context.socket(zmq.SUB)
    pause = random.randint(recon_default, recon_default + recon_max) if randomize else recon_default
    for name, value in (
        (zmq.LINGER, 1),
        # Milliseconds. Without this limit the kernel tries an unreachable address for two minutes.
        (zmq.CONNECT_TIMEOUT, 10_000),
        (zmq.RECONNECT_IVL, pause),
        (zmq.RECONNECT_IVL_MAX, max(recon_max, pause)),
        (zmq.MAXMSGSIZE, _MAX_PUBLICATION),
        (zmq.TCP_KEEPALIVE, 1),
        (zmq.TCP_KEEPALIVE_IDLE, 300),
        # No limit: libzmq ends the process where a heartbeat is due on a broken connection whose queue is full.
        (zmq.RCVHWM, 0),
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

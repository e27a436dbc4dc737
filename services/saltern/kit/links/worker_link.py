"""The frames between reqserver and workers on port 4516, defined once for both ends.

    worker -> reqserver   READY      pool               the worker is idle (repeated as its sign of life); pool may be empty
                          ANSWER     ticket  payload  [minion]   the request is done; minion: its proved sender, if asked (WHO)
                          DEFERRED   ticket             another process will answer the request; the worker is idle
                          WRONG_POOL ticket  pool       the request belongs to another pool; the worker did nothing for it
                          PULSE      worker             the named worker is busy and alive (from a socket of its own)
                          HUNG       worker             the named worker's request takes too long, so it ends (from the same socket)
                          NOT_READY  why                the worker is not ready, with the reason (repeated)
                          BYE                           the worker ends
    reqserver -> worker   WORK       ticket  side  client  payload  [pool]
                          HUNG                          confirms a HUNG to its sender

A WORK with a pool may belong to another pool: the worker of this pool checks before it works on the request. A
worker's ZeroMQ routing id is its name. A process that answers later sends ANSWER from a connection of its own.
"""

from __future__ import annotations

READY = b"R"
ANSWER = b"A"
DEFERRED = b"L"
PULSE = b"P"
NOT_READY = b"D"
BYE = b"B"
WRONG_POOL = b"E"
HUNG = b"H"
WORK = b"W"

#: Client of a WORK on the side ``minion``: the reqserver does not know yet whose connection it is, and asks for the proved sender.
WHO = b"?"

#: Side of a WORK beside ``minion`` and ``control``: a minion's request that was assigned to a worker before, which died. The
#: command may be half done.
AGAIN = b"minion again"

#: Seconds between two signs of life: a third of the shortest silence after which a worker is given up, so two may be lost.
PULSE_SECONDS = 1.0

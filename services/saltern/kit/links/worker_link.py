"""The frames between reqserver and workers on port 4516, defined once for both ends.

    worker -> reqserver   READY      pool  [offer  count]   the worker is idle (its sign of life: ready_seconds); pool may be empty
                          ANSWER     ticket  payload  [minion]   the request is done; minion: its proved sender, if asked (WHO)
                          DEFERRED   ticket             another process will answer the request; the worker is idle
                          WRONG_POOL ticket  pool       the request belongs to another pool; the worker did nothing for it
                          PULSE      worker             the named worker works and is alive (each second, from a socket of its own)
                          HUNG       worker             the named worker's request takes too long, so it ends (from the same socket)
                          NOT_READY  why                the worker is not ready, with the reason (repeated)
                          BYE                           the worker ends
                          AWAY       pool  count        the worker is idle for another reqserver (repeated)
                          LAST       ticket  payload  [minion]   as ANSWER; then the worker goes to another reqserver
    reqserver -> worker   WORK       ticket  side  client  payload  [pool  [offer]]
                          HUNG                          confirms a HUNG to its sender
                          POOL       pool               the pool that the worker has joined, if its READY named none
                          CALL       0 or 1             requests wait here (1), or none does any more (0)
                          NOTHING                       nothing; the reqserver looks whether the connection is there

A WORK with a pool may belong to another pool: the worker of this pool checks before it works on the request. A
worker's ZeroMQ routing id is its name. A process that answers later sends ANSWER from a connection of its own.

If there are several reqservers, a worker is idle for one of them at a time. ``offer`` numbers the times at which it was; a WORK
repeats the number. After AWAY, or a READY with another number, both ends know that an earlier WORK was not read: the reqserver
gives that request to another worker, and the worker drops the WORK. ``count`` is the number of reqservers that the worker
knows. Nothing of this is sent where there is one reqserver. Source: docs/decisions/0024-several-reqservers.md
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
AWAY = b"O"
LAST = b"Z"
POOL = b"G"
CALL = b"C"
NOTHING = b"N"

#: Client of a WORK on the side ``minion``: the reqserver does not know yet whose connection it is, and asks for the proved sender.
WHO = b"?"

#: Side of a WORK beside ``minion`` and ``control``: a minion's request that was assigned to a worker before, which died. The
#: command may be half done.
AGAIN = b"minion again"

#: Seconds between two pulses of a busy worker, which has a client's request: a third of the silence after which a worker is given
#: up by default, so two may be lost.
PULSE_SECONDS = 1.0

#: Most seconds between two READY of an idle worker. Nobody waits for it, and a late READY brings back a worker that was given up.
_READY_SECONDS = 2.0


def ready_seconds(worker_silence: float) -> float:
    """Return the seconds between two READY of an idle worker: at most half of the silence after which it is given up, but not
    less than those between two pulses.
    """
    return max(PULSE_SECONDS, min(_READY_SECONDS, worker_silence / 2))

"""The frames between reqserver and workers on port 4516, defined once for both ends.

    worker -> reqserver   READY      pool  offer  count  SHORT   the worker is idle (its sign of life: ready_seconds)
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
knows. Where there is one reqserver, both are empty. Source: docs/decisions/0024-several-reqservers.md

A worker whose READY ends with SHORT gets each WORK in two frames, and answers it in two: all fields but the payload are one frame,
joined by NUL, which no field has. Each frame is encrypted, passed on and read by itself. Workers of earlier releases send no
SHORT; reqservers of earlier releases ignore it, and send a frame for each field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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

#: The last field of READY: the worker knows the short form of WORK.
SHORT = b"2"

#: Between the fields of the first frame in the short form.
_SEPARATOR = b"\0"

#: Most digits of a number: a ticket has 64 bits.
_MOST_DIGITS = 20

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


class Ready(NamedTuple):
    """The content of a READY: a worker is idle, and may be given a request."""

    #: The pool that the worker's configuration names; empty: the reqserver chooses one.
    pool: str
    #: Number of this time at which the worker is idle here; empty where it knows one reqserver.
    offer: bytes
    #: Number of reqservers that the worker knows.
    reqservers: int
    #: Whether the worker knows the short form of WORK.
    short: bool


class Work(NamedTuple):
    """The content of a WORK: a request that a reqserver gives to a worker. Names and numbers are as they came, in bytes."""

    ticket: bytes
    #: The port that the request came through: ``minion``, AGAIN or ``control``.
    side: bytes
    #: Name of the operator's key; WHO: the reqserver asks for the proved sender.
    client: bytes
    payload: bytes
    #: Pool of the worker if the request may belong to another one; else empty.
    pool: bytes
    offer: bytes
    #: Whether it came in the short form, and the reply goes in it.
    short: bool
    #: Host of the reqserver that sent it, which gets the reply.
    host: str

    @property
    def asks_sender(self) -> bool:
        """Whether the reqserver asks which minion verifiably sent the request."""
        return self.client == WHO


class Reply(NamedTuple):
    """The content of an ANSWER or a LAST: a worker's reply to a request."""

    ticket: int
    payload: bytes
    #: The minion that verifiably sent the request, if the worker was asked for it.
    minion: str
    #: Whether it is a LAST.
    last: bool


def is_number(text: bytes) -> bool:
    """Return whether these bytes are decimal digits, and at most _MOST_DIGITS of them."""
    return len(text) <= _MOST_DIGITS and text.isdigit()


def ready_frames(pool: bytes, offer: int, reqservers: int) -> list[bytes]:
    """Return the frames of the message by which a worker says that it is idle. Parameters as in Ready; ``offer``: 0 where the
    worker knows one reqserver.
    """
    return [READY, pool, *([b"%d" % offer, b"%d" % reqservers] if offer else [b"", b""]), SHORT]


def read_ready(fields: Sequence[bytes]) -> Ready:
    """Return the Ready that the frames after READY stand for. Workers of earlier releases send fewer, or none: what is missing or
    malformed counts as not said.
    """
    pool, offer, count, short = [*fields, b"", b"", b"", b""][:4]
    name, several = pool.decode(errors="replace"), is_number(count)
    return Ready(name, offer if several else b"", max(1, int(count)) if several else 1, short == SHORT)


def work_frames(
    ticket: int, side: bytes, client: bytes, payload: bytes, pool: str, offer: bytes, *, short: bool
) -> list[bytes]:
    """Return the frames of the message that gives a request to a worker. Parameters as in Work; ``short``: two frames, else one for
    each field.
    """
    fields = (WORK, b"%d" % ticket, side, client)
    if short:
        return [_SEPARATOR.join((*fields, pool.encode(), offer)), payload]
    if offer:
        return [*fields, payload, pool.encode(), offer]
    return [*fields, payload, pool.encode()] if pool else [*fields, payload]


def read_work(frames: Sequence[bytes], host: str) -> Work | None:
    """Return the Work that a message of the reqserver on ``host`` stands for; None if it is no WORK, or malformed."""
    if len(frames) == 2:
        # One more than there are: a frame of separators alone gives no long list.
        kind, *fields = frames[0].split(_SEPARATOR, 6)
        if kind == WORK and len(fields) == 5:
            ticket, side, client, pool, offer = fields
            return Work(ticket, side, client, frames[1], pool, offer, True, host)
    elif frames[0] == WORK and len(frames) in (5, 6, 7):
        ticket, side, client, payload, pool, offer = [*frames[1:], b"", b""][:6]
        return Work(ticket, side, client, payload, pool, offer, False, host)
    return None


def reply_frames(work: Work, payload: bytes, minion: str = "", *, last: bool = False) -> list[bytes]:
    """Return the frames of the message by which a worker replies to ``work`` with ``payload``, in the form in which that came.

    ``minion``: id of the minion that verifiably sent the request, if the worker was asked for it. ``last``: the worker goes to
    another reqserver after this reply.
    """
    kind = LAST if last else ANSWER
    if work.short:
        return [_SEPARATOR.join((kind, work.ticket, minion.encode())), payload]
    return [kind, work.ticket, payload, minion.encode()] if minion else [kind, work.ticket, payload]


def read_reply(frames: Sequence[bytes]) -> Reply | None:
    """Return the Reply that a message of a worker stands for; None if it is neither ANSWER nor LAST, or malformed."""
    if len(frames) == 2:
        kind, *fields = frames[0].split(_SEPARATOR, 3)
        if len(fields) != 2:
            return None
        (ticket, minion), payload = fields, frames[1]
    elif len(frames) in (3, 4):
        kind, ticket, payload = frames[:3]
        minion = frames[3] if len(frames) == 4 else b""
    else:
        return None
    if kind not in (ANSWER, LAST) or not is_number(ticket):
        return None
    return Reply(int(ticket), payload, minion.decode(errors="replace"), kind == LAST)

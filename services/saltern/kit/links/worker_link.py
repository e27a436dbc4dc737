"""The frames between reqserver and workers on 4516, written once for both ends.

    worker -> reqserver   READY      pool               nothing to do (repeated while idle: it is the idle worker's pulse); pool may
                                                        be empty
                          ANSWER     ticket  payload    the request is done
                          LATER      ticket             another process will answer it; the worker is free
                          ELSEWHERE  ticket  pool       the request is of another pool, and nothing was done about it
                          PULSE      worker             the named worker is busy and alive (from a socket of its own)
                          HUNG       worker             the named worker is over its deadline and ends (from the same socket)
                          AWAY       why                not ready yet, and why (repeated): it cannot reach what it needs
                          BYE                           ends
    reqserver -> worker   WORK       ticket  side  client  payload  [pool]
                          HUNG                          it was heard (to who said it)

A WORK with a pool may be of another one: the worker is of this pool, and is to look before it works on it.
A worker's ZeroMQ routing id is its name. A process that answers later sends ANSWER from a connection of its own.
"""

from __future__ import annotations

READY = b"R"
ANSWER = b"A"
LATER = b"L"
PULSE = b"P"
AWAY = b"D"
BYE = b"B"
ELSEWHERE = b"E"
HUNG = b"H"
WORK = b"W"

#: Seconds between signs of life; a third of the shortest silence that gives a worker up leaves room for two lost ones.
PULSE_SECONDS = 1.0

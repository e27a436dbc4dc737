"""The frames between reqserver and workers on 4516, written once for both ends.

    worker -> reqserver   READY                          nothing to do (repeated while idle: it is the idle worker's pulse)
                          ANSWER  ticket  payload        the request is done
                          LATER   ticket                 another process will answer it; the worker is free
                          PULSE   worker                 the named worker is busy and alive (from a socket of its own)
                          BYE                            ends
    reqserver -> worker   WORK    ticket  side  client  payload

A worker's ZeroMQ routing id is its name. A process that answers later sends ANSWER from a connection of its own.
"""

from __future__ import annotations

READY = b"R"
ANSWER = b"A"
LATER = b"L"
PULSE = b"P"
BYE = b"B"
WORK = b"W"

#: Seconds between signs of life; a third of the shortest silence that gives a worker up leaves room for two lost ones.
PULSE_SECONDS = 1.0

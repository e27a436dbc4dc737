"""Who may connect to a CurveZMQ server: libzmq asks a handler in the same process (ZAP, RFC 27 of rfc.zeromq.org).

PyZMQ has one, which brings asyncio and ssl along: four megabytes in each role that serves a link.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import zmq

_LOG = logging.getLogger("saltern.links")

#: Where libzmq asks; one for a context.
_ENDPOINT = "inproc://zeromq.zap.01"

#: Where the handler's thread is told to end.
_END = "inproc://saltern.zap.end"

_VERSION = b"1.0"

_REFUSED = b"400"

#: Refusals that are told at most: who is turned away tries again each second.
_MOST_TOLD = 100

#: (domain, raw public key of 32 bytes) -> the name that it is admitted by; empty: it is not.
Admit = Callable[[str, bytes], str]


def verdict(frames: Sequence[bytes], admit: Admit) -> list[bytes]:
    """The answer to a ZAP request: version, id, status, its text, name of who is admitted, no metadata."""
    if len(frames) < 6 or frames[0] != _VERSION:
        return [_VERSION, frames[1] if len(frames) > 1 else b"", b"500", b"not a ZAP 1.0 request", b"", b""]
    _, request, domain, _, _, mechanism, *credentials = frames
    name = ""
    if mechanism == b"CURVE" and len(credentials) == 1:
        name = admit(domain.decode("utf-8", "replace"), credentials[0])
    if not name:
        return [_VERSION, request, _REFUSED, b"not admitted", b"", b""]
    return [_VERSION, request, b"200", b"OK", name.encode(), b""]


class ZapHandler:
    """A thread that answers libzmq's questions from now on, until it is stopped. To be made before the first server is bound."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], admit: Admit) -> None:
        self._admit = admit
        self._told: set[tuple[str, str]] = set()
        self._questions = context.socket(zmq.REP)
        self._questions.setsockopt(zmq.LINGER, 0)
        self._questions.bind(_ENDPOINT)
        self._ended = context.socket(zmq.PAIR)
        self._ended.setsockopt(zmq.LINGER, 0)
        self._ended.bind(_END)
        self._end = context.socket(zmq.PAIR)
        self._end.setsockopt(zmq.LINGER, 0)
        self._end.connect(_END)
        # The two first sockets are the thread's from here on.
        self._thread = threading.Thread(target=self._answer, name="zap", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and its sockets. Who connects after it is turned away."""
        self._end.send(b"")
        self._thread.join()
        self._end.close()

    def _answer(self) -> None:
        poller = zmq.Poller()
        poller.register(self._questions, zmq.POLLIN)
        poller.register(self._ended, zmq.POLLIN)
        try:
            while self._ended not in dict(poller.poll()):
                question = self._questions.recv_multipart()
                answer = verdict(question, self._admit)
                self._questions.send_multipart(answer)
                if answer[2] == _REFUSED:
                    self._tell(question[2].decode("utf-8", "replace"), question[3].decode("utf-8", "replace"))
        finally:
            self._questions.close()
            self._ended.close()

    def _tell(self, link: str, address: str) -> None:
        if (link, address) not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add((link, address))
            _LOG.warning("link %s: %s is turned away: its key is not among those that may connect", link, address)

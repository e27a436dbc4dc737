"""Waits for messages on several ZeroMQ sockets with one system call, however many there are.

``zmq.Poller`` asks libzmq for the events of each socket before and after each wait, which costs two system calls for each. Here the
kernel waits for the sockets' file descriptors, and only those sockets are asked that may have a message. libzmq makes such a
descriptor readable once, and a call on the socket (``send`` as well) may take the news: after such a call the socket must be asked
before the next wait. Source: docs/decisions/0024-several-reqservers.md
"""

from __future__ import annotations

import select

import zmq

_EVENTS, _READABLE = int(zmq.EVENTS), int(zmq.POLLIN)


class SocketEpoll:
    """Some ZeroMQ sockets and files, and which of them can be read. Use it in the thread of its sockets.

    A socket and a file have a number each: the number of their file descriptor.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._sockets: dict[int, zmq.Socket[bytes]] = {}
        #: Numbers of sockets that may have a message although their file descriptor is not readable.
        self._unsure: dict[int, None] = {}

    def add(self, socket: zmq.Socket[bytes]) -> int:
        """Let ``wait`` report this socket, too, while it has a message. Return the number by which ``wait`` names it."""
        number = socket.fileno()
        self._sockets[number] = socket
        self._epoll.register(number, select.EPOLLIN)
        self._unsure[number] = None
        return number

    def add_file(self, number: int) -> None:
        """From now on ``wait`` also reports the file descriptor ``number`` while it is readable."""
        self._epoll.register(number, select.EPOLLIN)

    def remove(self, number: int) -> None:
        """Let ``wait`` no longer report the socket or file with this number.

        Call it before the socket or file is closed: the kernel goes on reporting one that a forked process keeps open.
        """
        self._sockets.pop(number, None)
        self._unsure.pop(number, None)
        self._epoll.unregister(number)

    def used(self, number: int) -> None:
        """Record that something was called on the socket with this number, such as ``send``.

        Its file descriptor may be silent although it has a message, so the next ``wait`` asks libzmq.
        """
        self._unsure[number] = None

    def wait(self, seconds: float) -> list[int]:
        """Return the numbers of all sockets that have a message and of all files that are readable.

        Waits at most ``seconds`` for the first. The list may be empty sooner than that. A socket is in each list until all of its
        messages are read.
        """
        sockets = self._sockets
        unsure, self._unsure = self._unsure, {}
        found = [number for number in unsure if sockets[number].getsockopt(_EVENTS) & _READABLE]  # type: ignore[operator]
        for number, _ in self._epoll.poll(0.0 if found else seconds):
            if number not in found and (
                number not in sockets or sockets[number].getsockopt(_EVENTS) & _READABLE  # type: ignore[operator]
            ):
                found.append(number)
        for number in found:
            if number in sockets:
                self._unsure[number] = None
        return found

    def close(self) -> None:
        """Free the epoll. The sockets and files stay open."""
        self._epoll.close()

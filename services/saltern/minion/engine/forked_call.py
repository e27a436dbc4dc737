"""Calls a function in a fork of the zygote, so that modules and memory pages that it uses do not stay in the zygote's memory.

Gathering grains and fetching pillar are most of the work that the zygote itself does. Done in the zygote they would leave 4
MB that no job needs: modules that inspect hardware, a connection, copies of pages that are shared with the main process.
"""

from __future__ import annotations

import contextlib
import logging
import marshal
import os
import select
import signal
from collections.abc import Callable
from typing import Any, TypeVar

from saltern.minion.ipc.framed_socket import FramedSocket

_LOG = logging.getLogger("saltern.minion")

Result = TypeVar("Result")

#: First byte of a fork's reply: a value, the text of the expected exception, or "the value cannot be transferred".
_VALUE, _ERROR, _STAYS = b"v", b"e", b"s"

_BLOCK = 1024 * 1024


class ForkEnded(Exception):
    """Raised when a forked child ends without a result. The message is the reason."""


class ForkedCalls:
    """Calls functions in forks of one process, and returns their values. The process must have a single thread."""

    def __init__(self, expected: type[Exception], socket: FramedSocket) -> None:
        """Prepare calls in forks.

        ``expected``: an exception that a call may raise; its text is transferred, and it is raised again in this process.
        ``socket``: connection to the main process; if its other end closes, the fork is ended.
        """
        self._expected = expected
        self._socket = socket
        self._marshallable = True

    def call(self, work: Callable[[], Result]) -> Result:
        """Return the value of ``work()``, called in a fork. Raise the ``expected`` exception, or ForkEnded.

        Only values of plain types can be transferred. After the first value that cannot be transferred, ``work`` is called in
        this process.
        """
        if self._marshallable:
            reply = self._forked(work)
            if reply[:1] == _VALUE:
                value: Result = marshal.loads(reply[1:])
                return value
            if reply[:1] == _ERROR:
                raise self._expected(reply[1:].decode())
            self._marshallable = False
        return work()

    def _forked(self, work: Callable[[], object]) -> bytes:
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reader)
            self._write_reply(work, writer)
        os.close(writer)
        reply = self._read_reply(reader)
        os.close(reader)
        if reply is None:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if reply is None:
            raise ForkEnded("the main process is gone")
        if code:
            raise ForkEnded(f"its process ended with {code}; see the log")
        return reply

    def _read_reply(self, reader: int) -> bytes | None:
        """Return all bytes that the fork writes; None if the main process closes its end of the socket first."""
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        # Events mask 0: only the closing of the other end is reported, while messages may wait to be read.
        poll.register(self._socket, 0)
        blocks: list[bytes] = []
        while True:
            happened = dict(poll.poll())
            if reader not in happened:
                return None
            block = os.read(reader, _BLOCK)
            if not block:
                return b"".join(blocks)
            blocks.append(block)

    def _write_reply(self, work: Callable[[], object], writer: int) -> None:
        code = 1
        try:
            self._socket.close()
            # The zygote may have been killed meanwhile.
            with contextlib.suppress(BrokenPipeError), open(writer, "wb") as end:
                end.write(self._reply_of(work))
            code = 0
        except Exception:  # noqa: BLE001 - the process ends here, whatever happened
            _LOG.exception("a fork of the zygote failed")
        finally:
            logging.shutdown()
            os._exit(code)

    def _reply_of(self, work: Callable[[], Any]) -> bytes:
        try:
            value = work()
        except self._expected as error:
            return _ERROR + str(error).encode("utf-8", "replace")
        try:
            return _VALUE + marshal.dumps(value)
        except ValueError:
            return _STAYS

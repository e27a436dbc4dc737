"""The connections of the API's server: limits of their number, and of the time that a client may take to send or to read.

Source: docs/api.md
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn.server import ServerState

    from saltern.api.settings import ApiSettings
    from saltern.kit.process import exposition


class ConnectionLimits:
    """Counts the open connections of a server, in all and for each IP address, and refuses those above the limits."""

    def __init__(self, settings: ApiSettings, refusals: exposition.Counter) -> None:
        self._most = settings.max_connections
        self._most_of_address = settings.max_connections_of_address
        self._refusals = refusals
        self._addresses: Counter[str] = Counter()
        #: Seconds for the headers of a request, and for the rest of a body that nobody reads.
        self.request_seconds = float(settings.body_seconds)
        #: Seconds after which a client that reads nothing loses its connection.
        self.reading_seconds = float(settings.event_write_seconds)

    def admit(self, address: str) -> bool:
        """Count a new connection from an IP address and return True; return False if there are too many connections."""
        limit = ""
        if self._addresses.total() >= self._most:
            limit = "all"
        elif self._most_of_address and self._addresses[address] >= self._most_of_address:
            limit = "address"
        if limit:
            self._refusals.labels(limit).inc()
            return False
        self._addresses[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Count a connection that was admitted as closed."""
        self._addresses[address] -= 1
        if self._addresses[address] <= 0:
            del self._addresses[address]


class BoundedConfig(uvicorn.Config):
    """uvicorn's configuration with the limits of connections: uvicorn gives each connection its configuration alone."""

    def __init__(self, app: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(app, **options)
        self.limits = limits


class _UnreadLimit(asyncio.Protocol):
    """Part of a connection: aborts the connection if its client reads nothing for ``reading_seconds`` while data waits.

    asyncio calls ``pause_writing`` when data begins to wait, and ``resume_writing`` when it does not wait any more.
    """

    transport: asyncio.Transport
    reading_seconds = 0.0
    _unread_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Start the timer that aborts the connection if the client reads nothing."""
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        """Stop looking: the client reads again."""
        self._forget_unread()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking: the connection has ended."""
        self._forget_unread()
        super().connection_lost(exc)

    def _watch_unread(self) -> None:
        self._forget_unread()
        left = self.transport.get_write_buffer_size()
        self._unread_timer = asyncio.get_running_loop().call_later(self.reading_seconds, self._compare_unread, left)

    def _forget_unread(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _compare_unread(self, before: int) -> None:
        if self.transport.get_write_buffer_size() >= before:
            self._unread_timer = None
            self.transport.abort()
        else:
            self._watch_unread()


class WebsocketConnection(_UnreadLimit, WebSocketsSansIOProtocol):
    """A websocket, which an HTTP connection became. It keeps the place of the HTTP connection in the limits."""

    #: IP address that the HTTP connection was counted for; None: the connection is not counted.
    address: str | None = None

    def __init__(self, config: BoundedConfig, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        self._limits = config.limits
        self.reading_seconds = config.limits.reading_seconds

    def handle_ping(self) -> None:
        """Answer a ping; ignore it while the client reads nothing, because unread answers would fill the memory."""
        if self.writable.is_set():
            super().handle_ping()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place in the limits back."""
        if self.address is not None:
            self._limits.leave(self.address)
            self.address = None
        super().connection_lost(exc)


class HttpConnection(_UnreadLimit, H11Protocol):
    """An HTTP connection with a place in the limits.

    It ends if the headers of its first or a later request, or the rest of a body that nobody reads, take longer than
    ``request_seconds``.
    """

    _address = ""
    _admitted = False
    _timer: asyncio.TimerHandle | None = None
    #: The request before the one that the timer waits for; None: the connection had none.
    _before: object = None

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self.reading_seconds = config.limits.reading_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place in the limits, and wait for the first request; abort the connection if there is no place."""
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self._admitted = self._limits.admit(self._address)
        super().connection_made(transport)
        if not self._admitted:
            transport.abort()
        else:
            self._await_request()

    def data_received(self, data: bytes) -> None:
        """Read what the client sent, and begin to wait for a request if the data is a part of one."""
        super().data_received(data)
        if not self._admitted or self.cycle is None or not self.cycle.response_complete:
            return
        # The data began no request: these are parts of headers, or of the body of a request that was answered.
        if self._timer is None or self._before is not self.cycle:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place in the limits back."""
        self._stop_timer()
        if self._admitted:
            self._admitted = False
            self._limits.leave(self._address)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection, with its place in the limits, to a websocket."""
        self._stop_timer()
        super().handle_websocket_upgrade(event)
        # From here on the websocket hears of the connection's end, and this object does not.
        websocket = self.transport.get_protocol()
        if self._admitted and isinstance(websocket, WebsocketConnection):
            self._admitted = False
            websocket.address = self._address

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request with 400 and close the connection; close it at once if an answer has begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _await_request(self) -> None:
        self._stop_timer()
        self._before = self.cycle
        self._timer = self.loop.call_later(self._limits.request_seconds, self._end_without_request)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_without_request(self) -> None:
        self._timer = None
        if self.cycle is self._before and not self.transport.is_closing():
            self.transport.close()

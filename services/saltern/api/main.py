"""The role api: serves Salt's REST API over HTTP. It has no key but its own and stores nothing, so any replica can
answer any request.

Source: docs/api.md
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import zmq

from saltern.api.settings import ApiSettings, read_settings
from saltern.kit.config.master import ConfigError
from saltern.kit.config.reading import PortTaken
from saltern.kit.links.control import ControlError, ControlTimeout
from saltern.kit.links.sockets import LinkKeys
from saltern.kit.process.service import DRAIN_SECONDS, Role, RoleProgram, run_role

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    from saltern.api.application import application
    from saltern.api.event_feed import EventFeed
    from saltern.api.server import Api
    from saltern.kit.links.master_link import TICK, BusReader, MasterLink
except ImportError as error:
    raise SystemExit(
        f"saltern api: {error}; its packages are the extra `api`: pip install 'saltern-services[api]'"
    ) from error

#: Seconds between two questions whether the master answers.
_ASK_SECONDS = 5.0


def _prepare(role: Role) -> Callable[[], None]:
    settings, notes = read_settings(role.options.rest_cherrypy)
    for note in notes:
        role.log.warning("%s", note)
    if not role.options.netapi_enable_clients:
        role.log.warning("netapi_enable_clients is empty: nobody can run anything by the API")
    return partial(_loop, role, settings, LinkKeys.load(role.keys))


def _loop(role: Role, settings: ApiSettings, keys: LinkKeys) -> None:
    asyncio.run(_serve(role, settings, keys))


async def _serve(role: Role, settings: ApiSettings, keys: LinkKeys) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    feed = EventFeed(settings.event_queue, role.metrics.api_listeners_dropped.inc)
    link = MasterLink(context, role.options, keys)
    bus = BusReader(context, role.options, keys, feed.receive)
    role.metrics.api_listeners.set_function(lambda: float(feed.listeners))
    api = Api(role.options, settings, link, feed, role.metrics, role.log)
    server = _Server(_configuration(role, settings, application(api)))
    role.metrics.api_connections.set_function(lambda: float(len(server.server_state.connections)))
    trouble = ["the master was not asked yet"]
    role.health.check("master", lambda: trouble[0] or None)
    link.start()
    bus.start()
    ticking = asyncio.create_task(_tick(role, server, link, bus))
    asking = asyncio.create_task(_ask(link, trouble))
    try:
        listening = server.listen(settings)
        await server.serve(sockets=[listening])
    finally:
        ticking.cancel()
        asking.cancel()
        link.close()
        bus.close()
        context.term()


async def _tick(role: Role, server: _Server, link: MasterLink, bus: BusReader) -> None:
    while True:
        link.tick()
        bus.tick()
        if not role.running():
            server.should_exit = True
        await asyncio.sleep(TICK)


async def _ask(link: MasterLink, trouble: list[str]) -> None:
    while True:
        try:
            await link.call("ping")
            trouble[0] = ""
        except (ControlError, ControlTimeout) as error:
            trouble[0] = str(error)
        await asyncio.sleep(_ASK_SECONDS if not trouble[0] else 1.0)


def _configuration(role: Role, settings: ApiSettings, app: Any) -> uvicorn.Config:
    http, websocket = _Bounds(role, settings).protocols()
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="asyncio",
        http=http,
        ws=websocket,
        ws_max_size=4096,
        ws_max_queue=8,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=list(settings.trusted_proxies),
        h11_max_incomplete_event_size=settings.max_header_bytes,
        timeout_keep_alive=65,
        timeout_graceful_shutdown=int(DRAIN_SECONDS),
    )
    config.load()
    if not settings.disable_ssl:
        config.ssl = _tls(settings)
    return config


def _tls(settings: ApiSettings) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(settings.ssl_crt, settings.ssl_key)
        if settings.ssl_chain:
            made.load_verify_locations(settings.ssl_chain)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"rest_cherrypy: {settings.ssl_crt}, {settings.ssl_key}: {error}") from error
    return made


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, because the role installs its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the role's own signal handlers stay installed."""
        yield

    def listen(self, settings: ApiSettings) -> Any:
        """Open and return the listening socket. Raises ConfigError; PortTaken if another process listens on the TCP
        port.
        """
        try:
            return self.config.bind_socket()
        except (OSError, SystemExit) as error:
            raise PortTaken(
                f"rest_cherrypy: port: cannot listen on {settings.host}:{settings.port}: {error.__context__ or error}"
            ) from error


class _Stall:
    """Aborts a connection whose client reads nothing for some seconds, while data waits for it.

    asyncio says when data begins and ends to wait: ``begin`` and ``end`` belong to a protocol's ``pause_writing`` and
    ``resume_writing``.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        """Watch from now on whether the bytes that wait become fewer."""
        self.end()
        left = transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look, transport, left)

    def end(self) -> None:
        """Stop watching the bytes that wait: the client reads again, or the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, transport: asyncio.Transport, before: int) -> None:
        if transport.get_write_buffer_size() >= before:
            self._timer = None
            transport.abort()
        else:
            self.begin(transport)


class _Bounds:
    """Counts the open connections of a server, in all and for each IP address, and refuses those above the limits."""

    def __init__(self, role: Role, settings: ApiSettings) -> None:
        self._settings = settings
        self._refusals = role.metrics.api_connections_refused
        self._addresses: Counter[str] = Counter()

    def admit(self, address: str) -> bool:
        """Count a new connection from an IP address and return True; return False if there are too many connections."""
        most = self._settings.max_connections_of_address
        limit = ""
        if self._addresses.total() >= self._settings.max_connections:
            limit = "all"
        elif most and self._addresses[address] >= most:
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

    def protocols(self) -> tuple[type[asyncio.Protocol], type[asyncio.Protocol]]:
        """Return uvicorn's classes for HTTP connections and for websockets with these limits. A connection also ends if
        the headers of its first or a later request, or the rest of a body that nobody reads, take too long, and if its
        client does not read what is sent.
        """
        bounds, seconds = self, float(self._settings.body_seconds)
        reading_seconds = float(self._settings.event_write_seconds)

        class BoundedWebsocket(WebSocketsSansIOProtocol):
            #: IP address that the HTTP connection, which became this websocket, was counted for; None: it was not.
            address: str | None = None

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self._stall = _Stall(reading_seconds)

            def pause_writing(self) -> None:
                super().pause_writing()
                self._stall.begin(self.transport)

            def resume_writing(self) -> None:
                self._stall.end()
                super().resume_writing()

            def handle_ping(self) -> None:
                # A client that sends pings and reads no answers would fill the memory with answers.
                if self.writable.is_set():
                    super().handle_ping()

            def connection_lost(self, exc: Exception | None) -> None:
                self._stall.end()
                if self.address is not None:
                    bounds.leave(self.address)
                    self.address = None
                super().connection_lost(exc)

        class BoundedProtocol(H11Protocol):
            _address = ""
            _admitted = False
            _timer: asyncio.TimerHandle | None = None
            #: The request before the one that the timer waits for; None: the connection had none.
            _before: object = None

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self._stall = _Stall(reading_seconds)

            def pause_writing(self) -> None:
                super().pause_writing()
                self._stall.begin(self.transport)

            def resume_writing(self) -> None:
                self._stall.end()
                super().resume_writing()

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                peer = transport.get_extra_info("peername")
                self._address = str(peer[0]) if peer else ""
                self._admitted = bounds.admit(self._address)
                super().connection_made(transport)
                if not self._admitted:
                    transport.abort()
                else:
                    self._await_request()

            def data_received(self, data: bytes) -> None:
                super().data_received(data)
                if not self._admitted or self.cycle is None or not self.cycle.response_complete:
                    return
                # The data began no request: these are parts of headers, or of the body of a request that was answered.
                if self._timer is None or self._before is not self.cycle:
                    self._await_request()

            def connection_lost(self, exc: Exception | None) -> None:
                self._stop_timer()
                self._stall.end()
                if self._admitted:
                    self._admitted = False
                    bounds.leave(self._address)
                super().connection_lost(exc)

            def handle_websocket_upgrade(self, event: Any) -> None:
                self._stop_timer()
                super().handle_websocket_upgrade(event)
                # From here on the websocket hears of the connection's end, and this object does not.
                websocket = self.transport.get_protocol()
                if self._admitted and isinstance(websocket, BoundedWebsocket):
                    self._admitted = False
                    websocket.address = self._address

            def _await_request(self) -> None:
                self._stop_timer()
                self._before = self.cycle
                self._timer = self.loop.call_later(seconds, self._end_without_request)

            def _stop_timer(self) -> None:
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None

            def _end_without_request(self) -> None:
                self._timer = None
                if self.cycle is self._before and not self.transport.is_closing():
                    self.transport.close()

        return BoundedProtocol, BoundedWebsocket


PROGRAM = RoleProgram("api", _prepare)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern api`` and return its exit code."""
    return run_role(PROGRAM, argv)

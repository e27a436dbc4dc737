"""The role api: serves Salt's REST API over HTTP. It has no key but its own and stores nothing, so any replica can
answer any request.

Source: docs/api.md
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
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

    from saltern.api.application import application
    from saltern.api.connections import BoundedConfig, ConnectionLimits, HttpConnection, WebsocketConnection
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
    api = Api(role.options, settings, link, feed, role.metrics, role.log, config_dir=role.config_dir)
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


def _configuration(role: Role, settings: ApiSettings, app: Any) -> BoundedConfig:
    config = BoundedConfig(
        app,
        ConnectionLimits(settings, role.metrics.api_connections_refused),
        host=settings.host,
        port=settings.port,
        loop="asyncio",
        http=HttpConnection,
        ws=WebsocketConnection,
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


PROGRAM = RoleProgram("api", _prepare)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern api`` and return its exit code."""
    return run_role(PROGRAM, argv)

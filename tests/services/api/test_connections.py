"""Limits of the API's connections: their number, and the time that an unfinished request may take. No master is behind it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from saltern.api import main
from saltern.api.settings import ApiSettings
from saltern.kit.process.metrics import new_metrics
from tests.ports import free_port

#: Connections of one address, and seconds for an unfinished request.
_MOST, _SECONDS = 3, 1

#: Bytes of a large answer: more than the buffers of two sockets take.
_LARGE = 20_000_000

#: Seconds for what happens on a busy machine.
_PATIENCE = 60.0


async def _hello(request: Request) -> Response:
    return Response("hello")


async def _large(request: Request) -> Response:
    return Response(b"x" * _LARGE)


async def _echo(socket: WebSocket) -> None:
    if socket.query_params.get("refused"):
        await socket.close(1008)
        return
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            await socket.send_text(await socket.receive_text())


@contextlib.asynccontextmanager
async def _served() -> AsyncIterator[int]:
    """Serve a small application with the API's limits; the ``with`` block gets the port."""
    app = Starlette(routes=[Route("/", _hello), Route("/large", _large), WebSocketRoute("/ws", _echo)])
    settings = ApiSettings(
        host="127.0.0.1",
        port=free_port(),
        disable_ssl=True,
        body_seconds=_SECONDS,
        event_write_seconds=_SECONDS,
        max_connections_of_address=_MOST,
    )
    role: Any = SimpleNamespace(metrics=new_metrics("api"), log=logging.getLogger("test"))
    server = main._Server(main._configuration(role, settings, app))
    serving = asyncio.create_task(server.serve(sockets=[server.listen(settings)]))
    try:
        yield settings.port
    finally:
        server.should_exit = True
        await asyncio.wait_for(serving, _PATIENCE)


def _run(test: Callable[[int], Awaitable[None]]) -> None:
    async def run() -> None:
        async with _served() as port:
            await asyncio.wait_for(test(port), _PATIENCE)

    asyncio.run(run())


async def _opened(port: int, sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        with contextlib.suppress(OSError):
            if await reader.read(1):
                return reader, writer
        # The server has not heard yet that an earlier connection ended.
        writer.close()
        await asyncio.sleep(0.02)


_GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("query", ["", "?refused=1"])
def test_a_websocket_that_ended_does_not_count(query: str) -> None:
    async def test(port: int) -> None:
        for _ in range(3 * _MOST):
            with contextlib.suppress(InvalidStatus):
                async with connect_socket(f"ws://127.0.0.1:{port}/ws{query}") as client:
                    await client.send("x")
                    assert await client.recv() == "x"
        _, writer = await _opened(port, _GET)
        writer.close()

    _run(test)


def test_open_websockets_count() -> None:
    async def test(port: int) -> None:
        async with contextlib.AsyncExitStack() as stack:
            url = f"ws://127.0.0.1:{port}/ws"
            clients = [await stack.enter_async_context(connect_socket(url)) for _ in range(_MOST)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            assert await _echoed(clients[0]) == "x"

    _run(test)


def test_a_silent_websocket_outlives_the_time_for_requests() -> None:
    async def test(port: int) -> None:
        async with connect_socket(f"ws://127.0.0.1:{port}/ws") as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.recv(), 2 * _SECONDS)
            assert await _echoed(client) == "x"

    _run(test)


async def _echoed(client: ClientConnection) -> object:
    await client.send("x")
    return await client.recv()


#: What a client sends before it becomes slow.
UNFINISHED = {
    "no request": b"",
    "headers": _GET[:10],
    "headers of a second request": _GET + _GET[:10],
    "a body that nobody reads": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x",
    "a chunked body that nobody reads": b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
}


@pytest.mark.parametrize("sent", UNFINISHED.values(), ids=list(UNFINISHED))
def test_an_unfinished_request_ends(sent: bytes) -> None:
    """Although a byte more comes each tenth of a second."""

    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)

        async def drip() -> None:
            while sent:
                await asyncio.sleep(0.1)
                # Of a header's name, of a body, or of a chunk's size.
                writer.write(b"1")

        dripping = asyncio.create_task(drip())
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass
        dripping.cancel()
        writer.close()

    _run(test)


def test_a_client_that_reads_nothing_loses_its_connection() -> None:
    async def test(port: int) -> None:
        held = []
        for _ in range(_MOST):
            reader, writer = await _opened(port, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            held.append((reader, writer))
        # Their places are free again.
        _, writer = await _opened(port, _GET)
        writer.close()
        for _, writer in held:
            writer.close()

    _run(test)


def test_a_client_that_reads_slowly_gets_all() -> None:
    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got = 0
        while piece := await reader.read(1 << 20):
            got += len(piece)
            await asyncio.sleep(0.02 * _SECONDS)
        assert got > _LARGE
        writer.close()

    _run(test)


def test_pings_without_a_reader_fill_no_memory() -> None:
    """A client sends pings and reads nothing: no more answers than fit into the buffers wait for it."""

    async def test(port: int) -> None:
        waiting: list[int] = []
        kind = WebSocketsSansIOProtocol
        ping = kind.handle_ping

        def counted(self: Any) -> None:
            ping(self)
            waiting.append(self.transport.get_write_buffer_size())

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, "handle_ping", counted)
            async with connect_socket(f"ws://127.0.0.1:{port}/ws") as client:
                client.transport.pause_reading()
                frame = b"\x89\xfd" + bytes(4) + b"x" * 125
                with contextlib.suppress(ConnectionClosed):
                    for _ in range(200):
                        client.transport.write(frame * 500)
                        await asyncio.sleep(0)
                        while client.transport.get_write_buffer_size():
                            await asyncio.sleep(0.001)
                client.transport.abort()
        assert waiting
        assert max(waiting) < 1_000_000

    _run(test)

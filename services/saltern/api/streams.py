"""The event streams of the API: ``/events`` (Server-Sent Events) and ``/ws`` (a websocket)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from saltern.api.event_feed import EVENT_ID, EventFeed, FeedEvent, Listener, event_of_frame
from saltern.api.event_views import NOTHING, EventFilter
from saltern.api.guard import address_of
from saltern.api.sessions import Sessions
from saltern.api.settings import ApiSettings
from saltern.kit.links.control import ControlError, ControlTimeout
from saltern.kit.links.master_link import MasterLink

#: Seconds between two comments on a silent stream, and between two looks at the token.
_SIGN_SECONDS = 15.0

#: Milliseconds by which the clocks of those who fire events may differ, when a stream continues.
_CLOCKS = 60_000

#: Events of the last replay that are remembered, so that a live one is not sent a second time.
_REMEMBERED = 5000

#: Seconds after which workers are asked again to keep events.
_KEEP_SECONDS = 3600.0

#: Most messages that a websocket's client may send.
_MOST_MESSAGES = 100


@dataclass
class Streams:
    """Writes events of the master's bus to the clients of ``/events`` and ``/ws``."""

    link: MasterLink
    feed: EventFeed
    sessions: Sessions
    settings: ApiSettings
    _kept_until: float = 0.0

    async def keep_events(self, after: int | None = None) -> list[tuple[int, bytes]]:
        """Return the events that are stored in Redis from the time ``after`` on (milliseconds since 1970) as
        (milliseconds, packed event). Also ask the workers to go on storing all events, if that was not done lately.
        """
        now = time.monotonic()
        if after is None and now < self._kept_until:
            return []
        wanted = int(time.time() * 1000) if after is None else after
        found = await self.link.call("kept_events", after=wanted, keep=now >= self._kept_until)
        if now >= self._kept_until:
            self._kept_until = now + _KEEP_SECONDS
        return [(int(at), frame) for at, frame in found]

    async def missed(self, last: str) -> list[FeedEvent]:
        """Return the stored events that came after the event with the id ``last``; [] if ``last`` is not the id of an
        event.
        """
        form = EVENT_ID.fullmatch(last)
        if form is None:
            return []
        at = max(0, int(form[1]) - _CLOCKS)
        found: dict[str, FeedEvent] = {}
        while page := await self.keep_events(at):
            fresh = [
                event for _, frame in page if (event := event_of_frame(frame)) is not None and event.id not in found
            ]
            found |= {event.id: event for event in fresh}
            if not fresh:
                break
            at = page[-1][0]
        ids = list(found)
        if last in found:
            ids = ids[ids.index(last) + 1 :]
        else:
            # The event itself was not kept: what came after its time is shown.
            ids = [one for one in ids if int(one.partition("-")[0]) >= int(form[1])]
        return [found[one] for one in ids]

    async def run(
        self,
        token: str,
        address: str,
        last: str,
        write: Callable[[FeedEvent | None], Awaitable[None]],
        gone: asyncio.Event,
    ) -> None:
        """Call ``write`` for each event that the token's user may see, until the token expires, the listener is too slow, or
        ``gone`` is set. ``write(None)`` sends a sign of life. ``last``: id of the event after which to continue, or empty.
        """
        listener = self.feed.listen()
        try:
            with contextlib.suppress(ControlError, ControlTimeout):
                await self.keep_events()
            shown = EventFilter(NOTHING)
            try:
                counts = await self._follow(token, address, shown)
            except (ControlError, ControlTimeout):
                # The client connects again and continues where it was: nothing is left out.
                return
            if not counts:
                return
            sent: dict[str, None] = {}
            for event in await self.missed(last) if last else ():
                if (seen := shown.shown(event)) is not None:
                    await write(seen)
                sent[event.id] = None
            sent = dict.fromkeys(list(sent)[-_REMEMBERED:])
            while not gone.is_set() and not listener.lost.is_set():
                # While the master is away events stop by themselves; the stream goes on as before when it is back.
                with contextlib.suppress(ControlError, ControlTimeout):
                    if not await self._follow(token, address, shown):
                        return
                await self._write_some(listener, write, gone, sent, shown)
        finally:
            self.feed.leave(listener)

    async def _write_some(
        self,
        listener: Listener,
        write: Callable[[FeedEvent | None], Awaitable[None]],
        gone: asyncio.Event,
        sent: dict[str, None],
        shown: EventFilter,
    ) -> None:
        """Write the events that arrive in about _SIGN_SECONDS seconds. If none arrived, write a sign of life."""
        end, wrote = time.monotonic() + _SIGN_SECONDS, False
        while (left := end - time.monotonic()) > 0 and not gone.is_set() and not listener.lost.is_set():
            try:
                event = await asyncio.wait_for(listener.queue.get(), min(left, 1.0))
            except TimeoutError:
                continue
            if event.id not in sent and (seen := shown.shown(event)) is not None:
                await write(seen)
                wrote = True
        if not wrote:
            await write(None)

    async def _follow(self, token: str, address: str, shown: EventFilter) -> bool:
        """Ask the master whether the token still counts, and which events its user may see now; return whether it counts.
        Raises ControlError and ControlTimeout if the master does not say so.
        """
        user = await self.sessions.user_of(token, address)
        if user is not None:
            shown.view = user.view
        return user is not None


class EventStream:
    """The response to ``GET /events``, as an ASGI application: a stream of Server-Sent Events."""

    def __init__(self, streams: Streams, token: str, last: str) -> None:
        """Prepare the stream for the user of ``token``. ``last``: value of the header Last-Event-ID, or empty."""
        self._streams = streams
        self._token = token
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write events to the response until the client closes the connection or the stream ends."""
        headers = [
            (b"content-type", b"text/event-stream;charset=utf-8"),
            (b"cache-control", b"no-cache"),
            # Fronts such as nginx would hold events back.
            (b"x-accel-buffering", b"no"),
        ]
        gone = asyncio.Event()

        async def write_bytes(data: bytes, *, more: bool = True) -> None:
            # A client that reads nothing loses its connection after event_write_seconds, which ends the wait.
            await send({"type": "http.response.body", "body": data, "more_body": more})

        async def write(event: FeedEvent | None) -> None:
            await write_bytes(b":\n\n" if event is None else event.sse())

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await write_bytes(b"retry: 400\n")
        watcher = asyncio.create_task(watch())
        try:
            await self._streams.run(self._token, address_of(scope), self._last, write, gone)
            if not gone.is_set():
                await write_bytes(b"", more=False)
        finally:
            watcher.cancel()


async def websocket(streams: Streams, socket: WebSocket, token: str) -> None:
    """Serve a websocket: after the client's message ``websocket client ready``, each event is a message ``data: {json}``."""
    await socket.accept()
    gone, ready = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        try:
            for _ in range(_MOST_MESSAGES):
                if await socket.receive_text() == "websocket client ready":
                    ready.set()
            await socket.close(1008, "too many messages")
        except (WebSocketDisconnect, KeyError, RuntimeError):
            pass
        finally:
            gone.set()
            ready.set()

    async def write(event: FeedEvent | None) -> None:
        # Pings of the protocol are the signs of life.
        if event is not None:
            await socket.send_text(f"data: {event.text}\n\n")

    reader = asyncio.create_task(read())
    try:
        await ready.wait()
        if not gone.is_set():
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await streams.run(token, address_of(socket.scope), "", write, gone)
        if not gone.is_set():
            await socket.close(1008)
    finally:
        reader.cancel()

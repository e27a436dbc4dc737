"""``salt.utils.event`` for users' modules: fires and receives events of the master's bus, and of the minion's own."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from statecore.loader.current_context import context_of, current
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system import minion_bus
from statecore.system.minion_bus import Subscription

SALT = "salt"
TAGPARTER = "/"
TAGEND = "\n\n"

#: Name of a kind of events -> the second part of their tags.
TAGS: Mapping[str, str] = {
    name: name for name in ("auth", "job", "key", "minion", "syndic", "run", "wheel", "cloud", "fileserver", "queue")
}

#: Name of a way to compare tags -> function (tag, wanted tag).
_MATCHES: Mapping[str, Callable[[str, str], object]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "find": str.__contains__,
    "regex": lambda tag, wanted: re.search(wanted, tag),
    "fnmatch": fnmatch.fnmatchcase,
}

#: Seconds that stand for "until an event arrives".
_FOREVER = 10.0**9


def tagify(suffix: str | Sequence[object] = "", prefix: str = "", base: str = SALT) -> str:
    """Return a tag: ``base``, ``prefix`` and ``suffix``, joined by slashes. Empty parts are left out."""
    parts: list[object] = [base, TAGS.get(prefix, prefix)]
    parts.extend([suffix] if isinstance(suffix, str) else suffix)
    return TAGPARTER.join(str(part) for part in parts if part)


class SaltEvent:
    """An event bus: of the master (``node`` is "master"), or the minion's own bus."""

    def __init__(self, node: str = "master", *args: object, listen: bool = True, **kwargs: object) -> None:
        """Use the bus of the running process. With ``listen`` events are received from now on.

        Of Salt's other arguments only ``opts`` (``__opts__``) is used: with it the object also works in threads.
        """
        self.node = node
        contexts = (getattr(each, "ctx", None) for each in (*args, *kwargs.values()))
        self._ctx: Context | None = next((each for each in contexts if each is not None), None) or current.get()
        self._subscription: Subscription | None = None
        if listen and self._ctx is not None and self._is_minions(self._ctx):
            self._subscribed(self._ctx)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        """Stop receiving events."""
        self.destroy()

    def destroy(self) -> None:
        """Stop receiving events."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def subscribe(self, tag: str | None = None, match_type: str | None = None) -> None:
        """Do nothing: ``get_event`` receives events without a subscription."""

    unsubscribe = subscribe

    def fire_event(self, data: Mapping[str, object], tag: str, timeout: float = 1000) -> bool:
        """Fire an event with this tag and data. Return whether the event bus accepted it."""
        ctx = self._context("fire_event")
        if not self._is_minions(ctx):
            return ctx.events.fire(tag, data)
        try:
            minion_bus.fire(minion_bus.bus_directory(ctx.opts), tag, data)
        except minion_bus.TooLarge as error:
            raise CommandError(str(error)) from error
        return True

    def fire_master(self, data: Mapping[str, object], tag: str, timeout: float = 1000) -> bool:
        """Fire an event on the master's bus. Return whether the bus accepted it."""
        return self._context("fire_master").events.fire(tag, data)

    def get_event(
        self,
        wait: float | None = 5,
        tag: str = "",
        full: bool = False,
        match_type: str | None = None,
        no_block: bool = False,
        auto_reconnect: bool = False,
    ) -> Any:
        """Wait for an event and return its data, with ``full`` as {"tag": ..., "data": ...}; None after ``wait`` seconds.

        0 or None waits without limit, ``no_block`` does not wait. ``match_type``: how ``tag`` is compared ("startswith",
        "endswith", "find", "regex", "fnmatch"). Raise CommandError for the master's bus on a minion.
        """
        seconds = 0.1 if no_block else float(wait or _FOREVER)
        return next(self._events(tag, full, match_type, seconds), None)

    def get_event_noblock(self) -> Any:
        """Return the next event as {"tag": ..., "data": ...} if there is one now, else None. Raise CommandError on a minion."""
        return self.get_event(full=True, no_block=True)

    def get_event_block(self) -> Any:
        """Wait for the next event and return it as {"tag": ..., "data": ...}. Raise CommandError on a minion."""
        return self.get_event(wait=0, full=True)

    def connect_pub(self, timeout: float | None = None) -> bool:
        """Return True: the event bus is connected while the module runs."""
        return True

    connect_pull = connect_pub

    def close_pub(self) -> None:
        """Do nothing: the object holds no resources."""

    close_pull = close_pub

    def iter_events(
        self, tag: str = "", full: bool = False, match_type: str | None = None, auto_reconnect: bool = False
    ) -> Iterator[Any]:
        """Yield the data of events as they arrive, as ``get_event`` returns them. Raise CommandError as ``get_event``."""
        return self._events(tag, full, match_type, _FOREVER)

    def _events(self, tag: str, full: bool, match_type: str | None, seconds: float) -> Iterator[Any]:
        matches = _MATCHES[match_type or "startswith"]
        prefix = tag if matches is _MATCHES["startswith"] else ""
        until = time.monotonic() + seconds
        for name, data in self._received(prefix, seconds):
            if matches(name, tag):
                yield {"tag": name, "data": dict(data)} if full else dict(data)
            if time.monotonic() > until:
                return

    def _received(self, prefix: str, seconds: float) -> Iterator[tuple[str, Mapping[str, Any]]]:
        ctx = self._context("get_event")
        if self._is_minions(ctx):
            return self._subscribed(ctx).events(seconds)
        if ctx.master is None:
            raise CommandError(
                "salt.utils.event receives the master's events on a master only: use a beacon or a reaction"
            )
        return ctx.master.events(prefix, seconds)

    def _subscribed(self, ctx: Context) -> Subscription:
        if self._subscription is None:
            directory = minion_bus.bus_directory(ctx.opts)
            if directory is None:
                raise CommandError("this process has no cachedir, so it has no event bus")
            try:
                self._subscription = Subscription(directory)
            except OSError as error:
                raise CommandError(f"the minion's event bus: {directory}: {error.strerror}") from error
        return self._subscription

    def _is_minions(self, ctx: Context) -> bool:
        return self.node == "minion" and ctx.master is None

    def _context(self, what: str) -> Context:
        return self._ctx if self._ctx is not None else context_of(f"salt.utils.event.{what}")


class MasterEvent(SaltEvent):
    """The event bus of the master on which the module runs."""

    def __init__(self, *args: object, listen: bool = True, **kwargs: object) -> None:
        super().__init__("master", *args, listen=listen, **kwargs)


class LocalClientEvent(MasterEvent):
    """The event bus of the master on which the module runs."""


class MinionEvent(SaltEvent):
    """The event bus of the minion on which the module runs."""

    def __init__(self, *args: object, listen: bool = True, **kwargs: object) -> None:
        super().__init__("minion", *args, listen=listen, **kwargs)


class NamespacedEvent:
    """Fires events of a SaltEvent whose tags all start with ``base``."""

    def __init__(self, event: SaltEvent, base: str, print_func: Callable[[str, object], object] | None = None) -> None:
        self.event = event
        self.base = base
        self.print_func = print_func

    def fire_event(self, data: Mapping[str, object], tag: str) -> None:
        """Fire an event with the tag ``<base>/<tag>``, then call ``print_func(tag, data)`` if the object has one."""
        whole = tagify(tag, base=self.base)
        self.event.fire_event(data, whole)
        if self.print_func is not None:
            self.print_func(whole, data)


def get_event(node: str, *args: object, listen: bool = True, **kwargs: object) -> SaltEvent:
    """Return an object for the event bus of the running process: of the minion if ``node`` is "minion", else of the
    master.

    With ``listen`` it receives events from now on. Of the other arguments only ``opts`` is used.
    """
    return SaltEvent(node, *args, listen=listen, **kwargs)


def get_master_event(opts: object, sock_dir: object = None, listen: bool = True, **kwargs: object) -> SaltEvent:
    """Return an object for the event bus of the running master. ``sock_dir`` and further arguments are ignored."""
    return MasterEvent(opts, listen=listen)


def fire_args(opts: object, jid: str, tag_data: Mapping[str, object], prefix: str = "") -> None:
    """Fire the event ``salt/<prefix>/<jid>/args`` with the data ``tag_data``, for the job ``jid``."""
    MasterEvent(opts, listen=False).fire_event(tag_data, tagify([jid, "args"], prefix))

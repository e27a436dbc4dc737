"""``salt.utils.event`` for users' modules: fires events, and on a master waits for them."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from statecore.loader.current_context import context_of
from statecore.model.errors import CommandError

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
    """The event bus of the minion or master on which the module runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running minion's or master's event bus is used."""

    def __enter__(self) -> SaltEvent:
        return self

    def __exit__(self, *args: object) -> None:
        """Do nothing: the object holds no resources."""

    def destroy(self) -> None:
        """Do nothing: the object holds no resources."""

    def subscribe(self, tag: str | None = None, match_type: str | None = None) -> None:
        """Do nothing: ``get_event`` receives events without a subscription."""

    unsubscribe = subscribe

    def fire_event(self, data: Mapping[str, object], tag: str, timeout: float = 1000) -> bool:
        """Fire an event with this tag and data. Return whether the event bus accepted it."""
        return context_of("salt.utils.event.fire_event").events.fire(tag, data)

    fire_master = fire_event

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
        "endswith", "find", "regex", "fnmatch"). Raise CommandError on a minion.
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
        """Yield the data of events as they arrive, as ``get_event`` returns them. Raise CommandError on a minion."""
        return self._events(tag, full, match_type, _FOREVER)

    def _events(self, tag: str, full: bool, match_type: str | None, seconds: float) -> Iterator[Any]:
        master = context_of("salt.utils.event.get_event").master
        if master is None:
            raise CommandError("salt.utils.event waits for events on a master only: use a beacon or a reaction")
        matches = _MATCHES[match_type or "startswith"]
        prefix = tag if matches is _MATCHES["startswith"] else ""
        until = time.monotonic() + seconds
        for name, data in master.events(prefix, seconds):
            if matches(name, tag):
                yield {"tag": name, "data": dict(data)} if full else dict(data)
            if time.monotonic() > until:
                return


class MasterEvent(SaltEvent):
    """``salt.utils.event.LocalClientEvent``: fires and receives events on the bus of the master whose runner uses it."""


class MinionEvent(SaltEvent):
    """The event bus of the minion on which the module runs."""


class LocalClientEvent(MasterEvent):
    """The event bus of the master on which the module runs."""


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


def get_event(node: str, *args: object, **kwargs: object) -> SaltEvent:
    """Return the object for the event bus of the running minion (``node`` is "minion") or master. Other arguments are
    ignored.
    """
    return MinionEvent() if node == "minion" else MasterEvent()


def get_master_event(opts: object, sock_dir: object = None, *args: object, **kwargs: object) -> SaltEvent:
    """Return the object for the event bus of the running master. The arguments are ignored."""
    return MasterEvent()


def fire_args(opts: object, jid: str, tag_data: Mapping[str, object], prefix: str = "") -> None:
    """Fire the event ``salt/<prefix>/<jid>/args`` with the data ``tag_data``, for the job ``jid``."""
    SaltEvent().fire_event(tag_data, tagify([jid, "args"], prefix))

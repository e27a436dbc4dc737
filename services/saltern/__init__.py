"""The roles of a Salt master as services of their own, the minion, the salt commands, and a client library for scripts.

``import saltern`` imports nothing else: the names of the client library are imported at their first use.

Source: docs/client-library.md
"""

#: Replaces ``typing.TYPE_CHECKING``: importing ``typing`` takes longer than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from saltern.client import config as config
    from saltern.client import exceptions as exceptions
    from saltern.client import runner as runner
    from saltern.client import wheel as wheel
    from saltern.client.addresses import Api as Api
    from saltern.client.addresses import Control as Control
    from saltern.client.addresses import Login as Login
    from saltern.client.asynchronous import AsyncEvents as AsyncEvents
    from saltern.client.asynchronous import AsyncLocalClient as AsyncLocalClient
    from saltern.client.asynchronous import AsyncRunnerClient as AsyncRunnerClient
    from saltern.client.asynchronous import AsyncWheelClient as AsyncWheelClient
    from saltern.client.caller import Caller as Caller
    from saltern.client.connection import Event as Event
    from saltern.client.synchronous import Events as Events
    from saltern.client.synchronous import LocalClient as LocalClient
    from saltern.client.synchronous import RunnerClient as RunnerClient
    from saltern.client.synchronous import WheelClient as WheelClient

#: Name of the client library -> its module.
_NAMES = {
    **dict.fromkeys(("Api", "Control", "Login"), "addresses"),
    **dict.fromkeys(("AsyncEvents", "AsyncLocalClient", "AsyncRunnerClient", "AsyncWheelClient"), "asynchronous"),
    **dict.fromkeys(("Events", "LocalClient", "RunnerClient", "WheelClient"), "synchronous"),
    "Caller": "caller",
    "Event": "connection",
}

#: Modules that are named as Salt's, so that ``import saltern as salt`` serves a script.
_MODULES = {"client": "", "config": ".config", "exceptions": ".exceptions", "runner": ".runner", "wheel": ".wheel"}


def __getattr__(name: str) -> object:
    """Import a name of the client library at its first use."""
    # Not above: every command imports this package when it starts.
    from importlib import import_module

    if name in _NAMES:
        return getattr(import_module(f"saltern.client.{_NAMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"saltern.client{_MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})

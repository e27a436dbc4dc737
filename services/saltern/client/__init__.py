"""The client library: Salt's clients for scripts, which ``import saltern`` offers by name.

As a module it is what ``salt.client`` is: it has ``LocalClient``, ``Caller`` and ``get_local_client``. Names are imported
at their first use, because the role ``api`` and the commands import other parts of ``saltern``.

Source: docs/client-library.md
"""

from __future__ import annotations

from importlib import import_module

#: Replaces ``typing.TYPE_CHECKING``: importing ``typing`` takes longer than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from saltern.client.caller import Caller as Caller
    from saltern.client.synchronous import LocalClient as LocalClient
    from saltern.client.synchronous import get_local_client as get_local_client

_NAMES = {
    "LocalClient": "saltern.client.synchronous",
    "get_local_client": "saltern.client.synchronous",
    "Caller": "saltern.client.caller",
}


def __getattr__(name: str) -> object:
    """Import a name of the client library at its first use."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})

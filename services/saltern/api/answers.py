"""The API's HTTP answers to errors: a status and a text for each error. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import ClientDisconnect

from saltern.api.bodies import BodyFault
from saltern.api.clients import ChunkError
from saltern.kit.links.control import ControlError, ControlTimeout
from saltern.kit.links.master_link import Busy

#: Name of a refusal by the master -> status. Clients look at the status alone; Salt answers 401 also to what a user may not do.
_REFUSALS: Mapping[str, int] = {
    "AuthorizationError": 401,
    "EauthAuthenticationError": 401,
    "TokenAuthenticationError": 401,
    "TooManyLogins": 429,
    "UnknownFunction": 404,
    "TargetError": 400,
    "InvocationError": 400,
    "JidError": 400,
    "FilterError": 400,
    "UnknownJob": 404,
    "NotSupported": 400,
    "Busy": 503,
    "NoWorker": 503,
    "TooManyRunners": 503,
    "StoreUnavailable": 503,
}


class Refused(Exception):
    """Raised by a route: the request is answered with this HTTP status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def status_of(error: Exception, *, debug: bool) -> tuple[int, str]:
    """Return (HTTP status, text) of the API's answer to an error. With ``debug`` the text for an unexpected error has
    its message.
    """
    if isinstance(error, Refused | BodyFault):
        return error.status, str(error)
    if isinstance(error, ChunkError):
        return 400, str(error)
    if isinstance(error, ControlError):
        return _REFUSALS.get(error.name, 500), error.message
    if isinstance(error, ControlTimeout | Busy):
        return 503, "Salt Master is not available."
    if isinstance(error, ClientDisconnect):
        return 400, "the request ended before its body did"
    if isinstance(error, TimeoutError):
        return 504, "the function did not end in time; it goes on"
    return 500, f"{type(error).__name__}: {error}" if debug else "An unexpected error occurred"

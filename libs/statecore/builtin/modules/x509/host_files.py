"""Functions that read arguments (paths or content) and encode results. Helpers of the ``x509`` execution module."""

from __future__ import annotations

import base64
from collections.abc import Callable

from statecore.model.context import Context
from statecore.system.certificates import issuing, references


def reader(ctx: Context) -> Callable[[object], bytes]:
    """Return a function that reads an argument of an ``x509`` function, a path of the host or the content itself, and
    returns the content as bytes.
    """
    return lambda reference: references.content(ctx.host, reference)


def encoded_result(data: bytes, encoding: str, raw: bool) -> object:
    """Return encoded bytes as an ``x509`` function returns them: as text in a text encoding, else in base64; with
    ``raw`` as bytes.
    """
    if raw:
        return data
    return data.decode() if encoding in issuing.TEXT else base64.b64encode(data).decode()

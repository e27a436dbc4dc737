"""``file.decode``: a file from what is written in base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from statecore.builtin.states.file.places import Refused, place_of, step
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import HostError
from statecore.model.types import FileChange, Outcome, Plan


def decode(
    ctx: Context,
    name: str,
    encoded_data: Any = None,
    contents_pillar: str | None = None,
    encoding_type: str = "base64",
    checksum: str = "md5",
) -> Plan:
    """A file with the bytes that ``encoded_data``, or a text in pillar, means.

    encoding_type
        base64, the only one there is
    checksum
        the digest that changes are told by
    """
    try:
        place = place_of(ctx, name)
        data = _decoded(_given(ctx, encoded_data, contents_pillar), encoding_type)
        old = managed_file.read(place, name)
        before, after = (None if one is None else _digest(one, checksum) for one in (old, data))
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    if old == data:
        return Plan.unchanged("File is in the correct state.")
    changes = {"old": before, "new": after}

    def work() -> Outcome:
        managed_file.replace(ctx.host, place, data, Attributes())
        return Outcome("File was updated.", changes)

    write = step(f"write {name}", work, FileChange(name, old, data))
    return Plan.change("File is set to be updated.", (write,), changes)


def _given(ctx: Context, encoded_data: Any, contents_pillar: str | None) -> str | bytes:
    if encoded_data and contents_pillar:
        raise Refused("Specify only one 'encoded_data' or 'contents_pillar' argument.")
    if not (encoded_data or contents_pillar):
        raise Refused("Specify either the 'encoded_data' or 'contents_pillar' argument.")
    given = encoded_data or ctx.call("pillar.get", contents_pillar, False, unmask=True)
    if given is False:
        raise Refused(f"Pillar data not found: {contents_pillar}")
    return given if isinstance(given, str | bytes) else str(given)


def _decoded(given: str | bytes, encoding_type: str) -> bytes:
    if encoding_type != "base64":
        raise Refused(f"not supported: encoding_type {encoding_type}; there is base64")
    try:
        return base64.b64decode(given if isinstance(given, bytes) else given.encode())
    except (binascii.Error, ValueError) as error:
        raise Refused(f"what is given is not base64: {error}") from error


def _digest(data: bytes, algorithm: str) -> str:
    try:
        return hashlib.new(algorithm, data).hexdigest()
    except ValueError as error:
        raise Refused(f"there is no digest '{algorithm}'") from error

"""References to keys, certificates, requests and revocation lists in arguments: a path on the managed host, or the data
itself as text or bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from statecore.host.content import managed_file
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import ManagedHost
from statecore.system.certificates import loading


class NoSuchFile(CommandError):
    """Error: an argument names the path of a key or certificate, and no file exists there (yet)."""


def content(host: ManagedHost, reference: object, decode: Callable[[str], bytes] = loading.decoded) -> bytes:
    """Return the bytes of a key or certificate. The argument ``reference`` is a path of the host, or the data as text
    or bytes. ``decode`` returns the bytes of text.

    Raise NoSuchFile if the path does not exist, HostError if it is not a regular file, InvocationError for a value that
    is neither a path nor data.
    """
    if isinstance(reference, bytes):
        return reference
    if not isinstance(reference, str):
        raise InvocationError(
            f"Could not load provided source {reference!r}. You need to pass an existing file, "
            "(PEM|hex|base64)-encoded string or raw bytes."
        )
    if not is_path(reference):
        return decode(reference)
    data = managed_file.read(host.path(reference), reference)
    if data is None:
        raise NoSuchFile(f"there is no file {reference}")
    return data


def is_path(reference: object) -> bool:
    """Return True if an argument for a key or certificate is a path.

    Only paths begin with a slash; PEM, base64 and hexadecimal data never do here.
    """
    return isinstance(reference, str) and reference.startswith("/") and "\n" not in reference

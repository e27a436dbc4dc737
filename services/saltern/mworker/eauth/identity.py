"""The result of an external authentication: who the user is."""

from __future__ import annotations

from typing import NamedTuple


class Identity(NamedTuple):
    """An authenticated user: the name, and the names of the user's groups."""

    user: str
    groups: tuple[str, ...] = ()


class EauthFault(Exception):
    """Raised when a backend cannot check a password: a missing option or library, a file or server that does not answer.

    The message is for the worker's log, not for the user.
    """


def missing(library: str, backend: str) -> EauthFault:
    """Return the EauthFault for a Python library that the backend needs and that is not installed."""
    return EauthFault(
        f"the backend '{backend}' needs the Python package {library}: pip install 'saltern-services[eauth]'"
    )

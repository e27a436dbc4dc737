"""The Identity (name and groups) of a user whom an eauth backend has authenticated, and the error of a backend."""

from __future__ import annotations

from typing import NamedTuple


class Identity(NamedTuple):
    """An authenticated user: the name, and the names of the user's groups."""

    user: str
    groups: tuple[str, ...] = ()


class EauthFault(Exception):
    """Raised when an eauth backend cannot check a password: a missing option or library, a file or server that does
    not answer.

    The message is for the worker's log, not for the user.
    """


def missing(library: str, backend: str) -> EauthFault:
    """Return an EauthFault that says that the Python package ``library``, which the eauth backend needs, is not
    installed.
    """
    return EauthFault(
        f"the backend '{backend}' needs the Python package {library}: pip install 'saltern-services[eauth]'"
    )

"""``salt.serializers`` for users' modules: errors of the modules that convert data from and to text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from statecore.model.errors import StatecoreError


class DeserializationError(StatecoreError, RuntimeError):
    """Error: a text or bytes cannot be parsed as data."""


class SerializationError(StatecoreError, RuntimeError):
    """Error: data cannot be written as text or bytes."""


@contextmanager
def reading() -> Iterator[None]:
    """Context manager that raises DeserializationError for every exception of its block."""
    try:
        yield
    except Exception as error:
        raise DeserializationError(str(error)) from error


@contextmanager
def writing() -> Iterator[None]:
    """Context manager that raises SerializationError for every exception of its block."""
    try:
        yield
    except Exception as error:
        raise SerializationError(str(error)) from error

"""``salt.serializers``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from statecore.model.errors import StatecoreError


class DeserializationError(StatecoreError, RuntimeError):
    """A text could not be read."""


class SerializationError(StatecoreError, RuntimeError):
    """Data could not be written."""


@contextmanager
def reading() -> Iterator[None]:
    """Turn every exception of the block into a DeserializationError."""
    try:
        yield
    except Exception as error:
        raise DeserializationError(str(error)) from error


@contextmanager
def writing() -> Iterator[None]:
    """Turn every exception of the block into a SerializationError."""
    try:
        yield
    except Exception as error:
        raise SerializationError(str(error)) from error

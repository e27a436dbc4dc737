"""Version number of the layout of the master's data in Redis (the table of Redis keys)."""

from __future__ import annotations

from masterstore import keys
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt


class Schema:
    """The version number of the data in Redis.

    All operations raise StoreUnavailable if Redis does not answer, StoreCorrupt if the version is not a number.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def version(self) -> int | None:
        """Return the schema version of the data in Redis; None if Redis has no version."""
        version = self._client.call("get", keys.SCHEMA)
        if version is None:
            return None
        try:
            return int(version)
        except ValueError as error:
            raise StoreCorrupt(keys.SCHEMA, f"{text(version)!r} is no number") from error

    def begin(self) -> int:
        """Return the schema version of the data in Redis. If Redis is empty, store and return the current version.

        Data without a stored version has version 1.
        """
        version = self.version()
        if version is not None:
            return version
        if self._client.call("exists", keys.JOBS) and not self._client.call("exists", keys.JOB_BYTES):
            return 1
        self.say()
        return keys.SCHEMA_VERSION

    def say(self) -> None:
        """Store this program's schema version in Redis, as the version of the data that Redis holds."""
        self._client.call("set", keys.SCHEMA, keys.SCHEMA_VERSION)

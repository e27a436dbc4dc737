"""Which version of the table of keys Redis is of."""

from __future__ import annotations

from masterstore import keys
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt


class Schema:
    """Verbs on the version. All raise StoreUnavailable when Redis is away, StoreCorrupt for a version that is no number."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def version(self) -> int | None:
        """The version that Redis says it is of; None where nobody said."""
        said = self._client.call("get", keys.SCHEMA)
        if said is None:
            return None
        try:
            return int(said)
        except ValueError as error:
            raise StoreCorrupt(keys.SCHEMA, f"{text(said)!r} is no number") from error

    def begin(self) -> int:
        """The version that Redis is of.

        A new Redis says from now on that it is of this version; one that has jobs and says nothing is of the first.
        """
        said = self.version()
        if said is not None:
            return said
        if self._client.call("exists", keys.JOBS) and not self._client.call("exists", keys.JOB_BYTES):
            return 1
        self.say()
        return keys.SCHEMA_VERSION

    def say(self) -> None:
        """Everything is of this version now."""
        self._client.call("set", keys.SCHEMA, keys.SCHEMA_VERSION)

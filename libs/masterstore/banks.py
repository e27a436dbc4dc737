"""Data that runners store by name, in banks of keys, as in Salt's cache. Salt: salt/cache"""

from __future__ import annotations

import msgpack

from masterstore import keys
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt


class Banks:
    """Operations on banks. The bank ``a/b`` is inside the bank ``a``. All raise StoreUnavailable if Redis does not
    answer.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def store(self, bank: str, key: str, data: object) -> None:
        """Store data under a key of a bank."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            pipe.hset(keys.bank(bank), key, msgpack.packb(data, default=str, unicode_errors="surrogatepass"))
            pipe.sadd(keys.BANKS, bank)
            pipe.execute()

    def fetch(self, bank: str, key: str) -> object:
        """Return the data under a key; {} if there is none. Raises StoreCorrupt."""
        packed = self._client.call("hget", keys.bank(bank), key)
        if packed is None:
            return {}
        try:
            return msgpack.unpackb(packed, strict_map_key=False, unicode_errors="surrogatepass")
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise StoreCorrupt(keys.bank(bank), f"not msgpack: {error}") from error

    def names(self, bank: str) -> list[str]:
        """Return the keys of a bank and the names of banks inside it, sorted."""
        found = {text(key) for key in self._client.call("hkeys", keys.bank(bank))}
        return sorted(found | {name.split("/")[0] for name in self._inside(bank)})

    def flush(self, bank: str, key: str | None = None) -> bool:
        """Delete a key, or without one the bank with all banks inside it. Return False if there was nothing."""
        if key is not None:
            return bool(self._client.call("hdel", keys.bank(bank), key))
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            for name in (bank, *(f"{bank}/{inner}" for inner in self._inside(bank))):
                pipe.delete(keys.bank(name))
                pipe.srem(keys.BANKS, name)
            return any(pipe.execute())

    def _inside(self, bank: str) -> list[str]:
        names = [text(name) for name in self._client.call("smembers", keys.BANKS)]
        return [name.removeprefix(f"{bank}/") for name in names if name.startswith(f"{bank}/")]

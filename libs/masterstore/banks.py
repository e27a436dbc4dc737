"""Data that runners keep by name: banks of keys, as Salt's cache has them (salt/cache)."""

from __future__ import annotations

from typing import Any

import msgpack

from masterstore import keys
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt


class Banks:
    """Verbs on banks. A bank's name may have slashes: ``a/b`` lies in ``a``. All raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def store(self, bank: str, key: str, data: Any) -> None:
        """Keeps data under a key."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            pipe.hset(keys.bank(bank), key, msgpack.packb(data, default=str, unicode_errors="surrogatepass"))
            pipe.sadd(keys.BANKS, bank)
            pipe.execute()

    def fetch(self, bank: str, key: str) -> Any:
        """The data under a key, {} where there is none. Raises StoreCorrupt."""
        packed = self._client.call("hget", keys.bank(bank), key)
        if packed is None:
            return {}
        try:
            return msgpack.unpackb(packed, strict_map_key=False, unicode_errors="surrogatepass")
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise StoreCorrupt(keys.bank(bank), f"not msgpack: {error}") from error

    def names(self, bank: str) -> list[str]:
        """Keys of a bank, and banks in it, sorted."""
        found = {text(key) for key in self._client.call("hkeys", keys.bank(bank))}
        return sorted(found | {name.split("/")[0] for name in self._inside(bank)})

    def flush(self, bank: str, key: str | None = None) -> bool:
        """Forgets a key; without one the bank, and all that lie in it. False where there was nothing."""
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

"""``salt.utils.msgpack`` for users' modules: the functions of the library msgpack."""

from __future__ import annotations

from msgpack import dump, dumps, load, loads, pack, packb, unpack, unpackb
from msgpack.exceptions import UnpackValueError

__all__ = ["UnpackValueError", "dump", "dumps", "load", "loads", "pack", "packb", "unpack", "unpackb"]

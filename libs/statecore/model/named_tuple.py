"""``NamedTuple`` whose classes are quick to make: what a command pays at each start.

``typing.NamedTuple`` compiles the text of every annotation to check it, half a millisecond a class; mypy checks them here too,
and before.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    #: What a class body has of its own accord, and a tuple makes itself.
    _OF_THE_BODY = frozenset({"__annotations__", "__module__", "__qualname__", "__orig_bases__"})

    class _Making(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            given = [field for field in fields if field in body]
            if fields[len(fields) - len(given) :] != tuple(given):
                raise TypeError(f"{name}: a field without a default follows one that has one")
            made = namedtuple(name, fields, defaults=[body[field] for field in given], module=body["__module__"])
            made.__annotations__ = body.get("__annotations__", {})
            for key, value in body.items():
                if key not in _OF_THE_BODY and key not in made._fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Making):
        """A class of tuples with named, typed fields: as ``typing.NamedTuple``."""

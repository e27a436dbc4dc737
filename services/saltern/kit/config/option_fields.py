"""The building blocks of option tables: a field with its documentation, and a base class that is cheap to import."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import field
from typing import Any


def option(default: Any, doc: str) -> Any:
    """Return a dataclass field for a configuration option, with its default and documentation.

    A mutable default is copied for each instance.
    """
    if isinstance(default, list | dict):
        return field(default_factory=lambda: copy.deepcopy(default), metadata={"doc": doc})
    return field(default=default, metadata={"doc": doc})


class Values:
    """Base class of the tables of configuration options: keyword arguments set fields, all other fields get their defaults.

    Option tables are dataclasses only to list their fields. Compiling the methods that ``dataclass`` generates for a hundred fields
    takes longer than importing all other modules that `salt` needs, so this class replaces those methods.
    """

    def __init__(self, **values: Any) -> None:
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            if item.name in values:
                value = values.pop(item.name)
            else:
                made = item.default_factory
                value = item.default if made is dataclasses.MISSING else made()
            object.__setattr__(self, item.name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(values)}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

"""The building blocks of option tables: a field with its documentation, and a base class that is cheap to import."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import field
from typing import Any


def option(default: Any, doc: str) -> Any:
    """Return a dataclass field with a default and its documentation. A mutable default is copied for each instance."""
    if isinstance(default, list | dict):
        return field(default_factory=lambda: copy.deepcopy(default), metadata={"doc": doc})
    return field(default=default, metadata={"doc": doc})


class Values:
    """Base class of option tables: keyword arguments set fields, all other fields get their defaults.

    Options are dataclasses only to list their fields. The methods that ``dataclass`` generates for a hundred fields take
    longer to compile than all other modules of ours that `salt` imports, so this class replaces them.
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

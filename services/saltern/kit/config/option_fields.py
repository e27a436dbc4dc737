"""What options are made of: fields with their documentation, and objects of them that are quick to define."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import field
from typing import Any


def option(default: Any, doc: str) -> Any:
    """A field with its documentation; mutable defaults are copied for each instance."""
    if isinstance(default, list | dict):
        return field(default_factory=lambda: copy.deepcopy(default), metadata={"doc": doc})
    return field(default=default, metadata={"doc": doc})


class Values:
    """Keyword arguments become the fields; what is not given is the field's default.

    Options are dataclasses for their fields alone: the methods that ``dataclass`` would write for a hundred fields take
    longer to compile than everything else that `salt` imports of ours.
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

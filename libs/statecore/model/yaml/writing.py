"""Writes YAML: PyYAML's dumpers under one name each.

The text is the one that PyYAML writes, so a text such as ``1:30`` is quoted: a stock master reads it as a number
otherwise.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, overload

import yaml
from yaml import Dumper, SafeDumper
from yaml.nodes import Node
from yaml.representer import SafeRepresenter

#: The dumper of plain data with libyaml if it is installed, else PyYAML's pure Python one. Both write the same text.
if TYPE_CHECKING:
    FastDumper = SafeDumper
else:
    FastDumper = getattr(yaml, "CSafeDumper", SafeDumper)


@overload
def dump(data: object, stream: None = None, *, Dumper: type[Any] = SafeDumper, **options: Any) -> str: ...


@overload
def dump(data: object, stream: IO[Any], *, Dumper: type[Any] = SafeDumper, **options: Any) -> None: ...


def dump(data: object, stream: IO[Any] | None = None, *, Dumper: type[Any] = SafeDumper, **options: Any) -> Any:
    """Return data as YAML text, or write it to the open file ``stream`` and return None. ``options`` are PyYAML's.

    Raise yaml.YAMLError for data that ``Dumper`` cannot write.
    """
    return yaml.dump(data, stream, Dumper=Dumper, **options)


__all__ = ["Dumper", "FastDumper", "Node", "SafeDumper", "SafeRepresenter", "dump"]

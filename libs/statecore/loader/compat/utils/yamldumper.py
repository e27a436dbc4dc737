"""``salt.utils.yamldumper`` for users' modules: writes YAML with ordered dicts as plain maps."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

import yaml

from statecore.loader.compat.utils.odict import HashableOrderedDict


class IndentMixin(yaml.Dumper):
    """Indents the items of lists below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the following lines, also those of a list."""
        super().increase_indent(flow, False)


class OrderedDumper(yaml.Dumper):
    """Writes any Python object; ordered dicts as plain maps."""


# libyaml's class if it is installed, else PyYAML's pure Python class.
if TYPE_CHECKING:
    _BaseDumper = yaml.SafeDumper
else:
    _BaseDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class SafeOrderedDumper(_BaseDumper):
    """Writes plain data; ordered dicts as plain maps, and other objects as NULL."""


class IndentedSafeOrderedDumper(IndentMixin, yaml.SafeDumper):
    """As SafeOrderedDumper, with lists indented below their key."""


def represent_ordereddict(dumper: Any, data: Mapping[Any, Any]) -> Any:
    """Return the YAML node of a map, with its order."""
    return dumper.represent_dict(list(data.items()))


def represent_undefined(dumper: Any, data: object) -> Any:
    """Return the YAML node that stands for an object that cannot be written."""
    return dumper.represent_scalar("tag:yaml.org,2002:null", "NULL")


_DUMPERS: Mapping[str, Any] = {
    "OrderedDumper": OrderedDumper,
    "SafeOrderedDumper": SafeOrderedDumper,
    "IndentedSafeOrderedDumper": IndentedSafeOrderedDumper,
}

SafeOrderedDumper.add_representer(None, represent_undefined)  # type: ignore[arg-type]
for _dumper in _DUMPERS.values():
    for _type in (OrderedDict, HashableOrderedDict):
        _dumper.add_representer(_type, represent_ordereddict)
    _dumper.add_representer(defaultdict, yaml.representer.SafeRepresenter.represent_dict)
    _dumper.add_multi_representer(Mapping, represent_ordereddict)


def get_dumper(dumper_name: str) -> Callable[..., Any] | None:
    """Return the class of a dumper by its name; None if there is no such dumper."""
    return _DUMPERS.get(dumper_name)


def dump(data: object, stream: IO[str] | None = None, **kwargs: Any) -> Any:
    """Return data as YAML, or write them into a stream. Python objects get tags."""
    return yaml.dump(data, stream, **{"allow_unicode": True, "default_flow_style": None, **kwargs})


def safe_dump(data: object, stream: IO[str] | None = None, **kwargs: Any) -> Any:
    """Return plain data as YAML, or write them into a stream."""
    options = {"allow_unicode": True, "default_flow_style": None, **kwargs}
    return yaml.dump(data, stream, Dumper=SafeOrderedDumper, **options)

"""``salt.utils.yamldumper`` for users' modules: writes YAML with ordered dicts as plain maps."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import IO, Any

from statecore.loader.compat.utils.odict import HashableOrderedDict
from statecore.model import yaml


class IndentMixin(yaml.Dumper):
    """Mixin for PyYAML's dumpers: indents the items of a list below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the next level, also that of a list; ``indentless`` is ignored. PyYAML calls this method."""
        super().increase_indent(flow, False)


class OrderedDumper(yaml.Dumper):
    """PyYAML dumper that writes any Python object (with a tag), and ordered dicts as plain maps."""


class SafeOrderedDumper(yaml.FastDumper):
    """PyYAML dumper that writes plain data, ordered dicts as plain maps, and other objects as ``NULL``."""


class IndentedSafeOrderedDumper(IndentMixin, yaml.SafeDumper):
    """PyYAML dumper that writes as SafeOrderedDumper does, with the items of lists indented below their key."""


def represent_ordereddict(dumper: Any, data: Mapping[Any, Any]) -> Any:
    """Return the YAML node of a map, with its keys in their order."""
    return dumper.represent_dict(list(data.items()))


def represent_undefined(dumper: Any, data: object) -> Any:
    """Return the YAML node ``NULL``, for an object that cannot be written."""
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
    _dumper.add_representer(defaultdict, yaml.SafeRepresenter.represent_dict)
    _dumper.add_multi_representer(Mapping, represent_ordereddict)


def get_dumper(dumper_name: str) -> Callable[..., Any] | None:
    """Return the class of a dumper by its name; None if there is no such dumper."""
    return _DUMPERS.get(dumper_name)


def dump(data: object, stream: IO[str] | None = None, **kwargs: Any) -> Any:
    """Return data as YAML text, or write it to the open file ``stream`` and return None. Python objects get tags."""
    return yaml.dump(
        data, stream, **{"Dumper": yaml.Dumper, "allow_unicode": True, "default_flow_style": None, **kwargs}
    )


def safe_dump(data: object, stream: IO[str] | None = None, **kwargs: Any) -> Any:
    """Return plain data as YAML text, or write it to the open file ``stream`` and return None."""
    options = {"allow_unicode": True, "default_flow_style": None, **kwargs}
    return yaml.dump(data, stream, Dumper=SafeOrderedDumper, **options)

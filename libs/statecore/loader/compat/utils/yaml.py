"""``salt.utils.yaml``: PyYAML with Salt's differences. Dates stay text, ``0644`` is 644, a key that comes twice is an error."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml as _yaml
from yaml import YAMLError as YAMLError
from yaml import parser as parser
from yaml import scanner as scanner
from yaml.constructor import ConstructorError

__all__ = ["SaltYamlSafeLoader", "YAMLError", "dump", "load", "parser", "safe_dump", "safe_load", "scanner"]

_BaseLoader: Any = getattr(_yaml, "CSafeLoader", _yaml.SafeLoader)
_BaseDumper: Any = getattr(_yaml, "CSafeDumper", _yaml.SafeDumper)


class SaltYamlSafeLoader(_BaseLoader):  # type: ignore[misc]
    """Reads YAML as Salt does."""

    def construct_scalar(self, node: Any) -> Any:
        """The text of a scalar; zeros before a decimal number say nothing."""
        if node.tag == "tag:yaml.org,2002:int" and not node.value.startswith(("0b", "0x")):
            node.value = node.value.lstrip("0") or "0"
        return super().construct_scalar(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """A map. Raises ConstructorError for a key that comes twice."""
        self.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, Hashable):
                text = f"found unacceptable key {key_node.value}"
                raise ConstructorError("while constructing a mapping", node.start_mark, text, key_node.start_mark)
            if key in found:
                text = f"found conflicting ID '{key}'"
                raise ConstructorError("while constructing a mapping", node.start_mark, text, key_node.start_mark)
            found[key] = self.construct_object(value_node, deep=deep)
        return found


SaltYamlSafeLoader.add_constructor("tag:yaml.org,2002:timestamp", SaltYamlSafeLoader.construct_scalar)


class _Dumper(_BaseDumper):  # type: ignore[misc]
    """Writes subclasses of dict and of list as those, and what YAML cannot say as null."""


_Dumper.add_multi_representer(dict, _yaml.SafeDumper.represent_dict)
_Dumper.add_multi_representer(list, _yaml.SafeDumper.represent_list)
_Dumper.add_multi_representer(str, _yaml.SafeDumper.represent_str)
_Dumper.add_representer(
    None,
    lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", "NULL"),
)


def safe_load(stream: Any, Loader: Any = SaltYamlSafeLoader) -> Any:
    """The value of a YAML text or file. Raises YAMLError."""
    return _yaml.load(stream, Loader=Loader or SaltYamlSafeLoader)


def safe_dump(data: Any, stream: Any = None, **kwargs: Any) -> Any:
    """A value as YAML, into a file or returned."""
    return _yaml.dump(data, stream, Dumper=_Dumper, **{"allow_unicode": True, "default_flow_style": None, **kwargs})


load = safe_load
dump = safe_dump

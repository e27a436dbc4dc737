"""``salt.utils.yaml`` for users' modules: PyYAML with Salt's rules.

Dates stay text, ``0644`` is the number 644, and a key that occurs twice in a map is an error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable
from typing import IO, TYPE_CHECKING

import yaml as _yaml
from yaml import YAMLError as YAMLError
from yaml import parser as parser
from yaml import scanner as scanner
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, ScalarNode

__all__ = ["SaltYamlSafeLoader", "YAMLError", "dump", "load", "parser", "safe_dump", "safe_load", "scanner"]

_DUMPERS = "statecore.loader.compat.utils.yamldumper"

# libyaml's classes if it is installed, else PyYAML's pure Python classes.
if TYPE_CHECKING:
    from yaml import SafeDumper as _BaseDumper
    from yaml import SafeLoader as _BaseLoader
else:
    _BaseLoader = getattr(_yaml, "CSafeLoader", _yaml.SafeLoader)
    _BaseDumper = getattr(_yaml, "CSafeDumper", _yaml.SafeDumper)


class SaltYamlSafeLoader(_BaseLoader):
    """Loader of PyYAML that reads YAML by Salt's rules."""

    def construct_scalar(self, node: ScalarNode | MappingNode) -> str:
        """Return the text of a scalar node. Leading zeros of a decimal number are removed."""
        if node.tag == "tag:yaml.org,2002:int" and not node.value.startswith(("0b", "0x")):
            node.value = node.value.lstrip("0") or "0"
        return super().construct_scalar(node)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """Return the map of a mapping node. Raise ConstructorError for a key that occurs twice or is not hashable."""
        self.flatten_mapping(node)
        found: dict[Hashable, object] = {}
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


class _Dumper(_BaseDumper):
    """Writes subclasses of dict, list and str as plain YAML, and every object of another type as null."""


_Dumper.add_multi_representer(dict, _yaml.SafeDumper.represent_dict)
_Dumper.add_multi_representer(list, _yaml.SafeDumper.represent_list)
_Dumper.add_multi_representer(str, _yaml.SafeDumper.represent_str)
# The key None stands for every other type. PyYAML's stubs do not know that.
_add_representer: Callable[..., None] = _Dumper.add_representer
_add_representer(None, lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", "NULL"))


def safe_load(
    stream: str | bytes | IO[str] | IO[bytes], Loader: type[_BaseLoader] | None = SaltYamlSafeLoader
) -> object:
    """Return the data of a YAML text or open file. Raise YAMLError if it is not valid YAML."""
    return _yaml.load(stream, Loader=Loader or SaltYamlSafeLoader)


def safe_dump(data: object, stream: IO[str] | IO[bytes] | None = None, **kwargs: object) -> object:
    """Return data as YAML text, or write it to the open file ``stream`` and return None."""
    write: Callable[..., object] = _yaml.dump
    return write(data, stream, Dumper=_Dumper, **{"allow_unicode": True, "default_flow_style": None, **kwargs})


load = safe_load
dump = safe_dump


def __getattr__(name: str) -> object:
    """Return the attribute ``name`` of ``salt.utils.yamldumper``, because Salt has the dumpers in this module too."""
    if name.startswith("__") or not hasattr(module := importlib.import_module(_DUMPERS), name):
        raise AttributeError(f"'salt.utils.yaml.{name}' is not part of the compatibility package for Salt modules")
    return getattr(module, name)

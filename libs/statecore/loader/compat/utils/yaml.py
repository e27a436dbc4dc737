"""``salt.utils.yaml`` for users' modules: PyYAML with Salt's rules.

Dates stay text, ``0644`` is the number 644, and a key that occurs twice in a map is an error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import IO, Any

from statecore.model import yaml as _yaml
from statecore.model.yaml import YAMLError as YAMLError
from statecore.model.yaml import parser as parser
from statecore.model.yaml import scanner as scanner

__all__ = ["SaltYamlSafeLoader", "YAMLError", "dump", "load", "parser", "safe_dump", "safe_load", "scanner"]

_DUMPERS = "statecore.loader.compat.utils.yamldumper"


class SaltYamlSafeLoader(_yaml.SaltLoader):
    """Loader of PyYAML that reads YAML by Salt's rules, with the bounds of Saltern."""


class _Dumper(_yaml.FastDumper):
    """Writes subclasses of dict, list and str as plain YAML, and every object of another type as null."""


_Dumper.add_multi_representer(dict, _yaml.SafeDumper.represent_dict)
_Dumper.add_multi_representer(list, _yaml.SafeDumper.represent_list)
_Dumper.add_multi_representer(str, _yaml.SafeDumper.represent_str)
# The key None stands for every other type. PyYAML's stubs do not know that.
_add_representer: Callable[..., None] = _Dumper.add_representer
_add_representer(None, lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", "NULL"))


def safe_load(stream: str | bytes | IO[str] | IO[bytes], Loader: type[Any] | None = SaltYamlSafeLoader) -> object:
    """Return the data of a YAML text or open file. Raise YAMLError if it is not valid YAML or exceeds a bound."""
    return _yaml.load_by(stream, Loader or SaltYamlSafeLoader)


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

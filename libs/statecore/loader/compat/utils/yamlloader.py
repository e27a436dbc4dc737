"""``salt.utils.yamlloader`` for users' modules: reads YAML; a key that occurs twice is an error."""

from __future__ import annotations

from typing import IO, Any

from statecore.loader.compat.utils.yaml import SaltYamlSafeLoader
from statecore.model import yaml

__all__ = ["SaltYamlSafeLoader", "load", "safe_load"]


def load(stream: str | bytes | IO[Any], Loader: Any = SaltYamlSafeLoader) -> Any:
    """Return the data of a YAML text or open file. Raise yaml.YAMLError if it is not valid YAML."""
    return yaml.load_by(stream, Loader)


def safe_load(stream: str | bytes | IO[Any], Loader: Any = SaltYamlSafeLoader) -> Any:
    """Return the data of a YAML text or open file. Raise yaml.YAMLError if it is not valid YAML."""
    return yaml.load_by(stream, Loader)

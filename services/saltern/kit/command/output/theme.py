"""``color_theme``: a YAML file of colour names (RED, LIGHT_GREEN, ...) and the codes to show them with (``"0;35"``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from saltern.kit.config.master import ConfigError


def read_theme(path: str) -> Mapping[str, Any]:
    """Name -> code. Raises ConfigError for a file that cannot be read, or is no such mapping."""
    try:
        with open(path, "rb") as file:
            theme = yaml.safe_load(file)
    except OSError as error:
        raise ConfigError(f"color_theme {path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"color_theme {path}: not valid YAML: {error}") from error
    if not isinstance(theme, dict):
        raise ConfigError(f"color_theme {path}: must hold `COLOR: code` lines")
    return theme

"""Files of options that users name: a YAML or JSON map of option names to values."""

from __future__ import annotations

from pathlib import Path

from statecore.model import yaml
from statecore.model.errors import StatecoreError
from statecore.model.option_types import type_errors


class OptionFileError(StatecoreError):
    """A file of options cannot be used. The message names the file, and the line if there is one."""


def read_map(path: str) -> dict[str, object]:
    """Return the map in a YAML or JSON file; {} for an empty file. Raise OptionFileError if the file cannot be read, is
    not valid YAML, or is not a map.
    """
    try:
        data = yaml.load(Path(path).read_text("utf-8"), yaml.SLS)
    except OSError as error:
        raise OptionFileError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionFileError(f"{path} is not UTF-8 text: byte {error.start}") from error
    except yaml.YamlFault as error:
        raise OptionFileError(f"{path}:{error.line}: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise OptionFileError(f"{path} must hold values by name, not a {type(data).__name__}")
    return {str(name): value for name, value in data.items()}


def checked(options: dict[str, object], path: str) -> dict[str, object]:
    """Return the options if each has the type that it must have. Raises OptionFileError, which names the file ``path``."""
    if faults := type_errors(options):
        raise OptionFileError(f"{path}: {'; '.join(faults)}")
    return options

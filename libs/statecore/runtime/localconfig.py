"""File of the argument ``localconfig`` of state functions: options that replace the minion's options for one run."""

from __future__ import annotations

from pathlib import Path

from statecore.model.errors import InvocationError
from statecore.model.option_types import type_errors
from statecore.render import yaml
from statecore.render.yaml_bounds import YamlFault


def read_localconfig(path: str) -> dict[str, object]:
    """Return the options in the file of the argument ``localconfig`` of ``state.apply``, as a map of name to value.

    Raises InvocationError, with file and line, if the file is unreadable or not a YAML map.
    """
    try:
        data = yaml.load(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InvocationError(f"localconfig: {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvocationError(f"localconfig: {path} is not UTF-8 text: byte {error.start}") from error
    except YamlFault as error:
        raise InvocationError(f"localconfig: {path}:{error.line}: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InvocationError(f"localconfig: {path} must hold options by name, not a {type(data).__name__}")
    options = {str(name): value for name, value in data.items()}
    if faults := type_errors(options):
        raise InvocationError(f"localconfig: {path}: {'; '.join(faults)}")
    return options

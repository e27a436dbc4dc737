"""File of the argument ``localconfig`` of state functions: options that replace the minion's options for one run."""

from __future__ import annotations

from statecore.model.errors import InvocationError
from statecore.runtime.option_files import OptionFileError, checked, read_map


def read_localconfig(path: str) -> dict[str, object]:
    """Return the options in the file of the argument ``localconfig`` of ``state.apply``, as a map of name to value.

    Raises InvocationError, with file and line, if the file is unreadable or not a YAML map.
    """
    try:
        return checked(read_map(path), path)
    except OptionFileError as error:
        raise InvocationError(f"localconfig: {error}") from error

"""The file that keeps the minion's schedule across restarts: ``<config dir>/minion.d/_schedule.conf``, in Salt's
format.

The minion reads it with its configuration. This module writes it, and reads it while the minion does not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from statecore.host.content import atomic_file
from statecore.model import yaml


class ScheduleFileError(Exception):
    """Error: the file of the minion's schedule cannot be read or written. The text holds its path and the reason."""


def load(file: Path, key: str = "schedule") -> dict[str, object]:
    """Return the map that the schedule file has under ``key``; {} if there is no file. Raises ScheduleFileError."""
    try:
        saved = yaml.load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, yaml.YamlFault) as error:
        raise ScheduleFileError(f"{file}: cannot be read: {error}") from error
    whole = saved.get(key) if isinstance(saved, dict) else saved
    if whole is None:
        return {}
    if not isinstance(whole, dict):
        raise ScheduleFileError(f"{file}: must hold `{key}:` and a map, not {whole!r}")
    return whole


def save(file: Path, whole: Mapping[str, object], key: str = "schedule") -> None:
    """Replace the schedule file atomically. Names that begin with ``_`` are not written. Raises ScheduleFileError."""
    kept = {name: _without_notes(data) for name, data in whole.items() if not str(name).startswith("__")}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_file.write(file, yaml.dump({key: kept}, allow_unicode=True))
    except (OSError, yaml.YAMLError) as error:
        raise ScheduleFileError(f"{file}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _without_notes(data: object) -> object:
    if not isinstance(data, Mapping):
        return data
    return {key: value for key, value in data.items() if not str(key).startswith("_")}

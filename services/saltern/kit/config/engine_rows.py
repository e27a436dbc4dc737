"""Reads the option ``engines``: the programs that run beside a minion or a master. Salt: salt/engines/__init__.py"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from saltern.kit.config.reading import ConfigError

#: Names of engines of Salt that do not run here -> the reason.
NOT_HERE: Mapping[str, str] = {
    "reactor": "the role reactor reads the option `reactor`; reactions of minions do not exist",
    "thorium": "thorium is not here; use the reactor",
}


class EngineRow(NamedTuple):
    """One configured engine: its name, the module that it runs, and the arguments of the module's ``start``."""

    name: str
    module: str
    arguments: Mapping[str, Any]


def engine_rows(option: object) -> list[EngineRow]:
    """Return the configured engines, in their order.

    ``option`` is a map of name to arguments, or a list of such maps and of names. The argument ``engine_module`` names the
    module, so that a module can run several times under names of its own; the second engine of a name is called
    ``NAME (2)``. Raises ConfigError.
    """
    entries = [{name: given} for name, given in option.items()] if isinstance(option, Mapping) else option or []
    if not isinstance(entries, list):
        raise ConfigError(f"engines: must be a list or a map, not a {type(entries).__name__}")
    rows: dict[str, EngineRow] = {}
    for row in map(_row, entries):
        same = [name for name in rows if name == row.name or name.startswith(f"{row.name} (")]
        name = f"{row.name} ({len(same) + 1})" if same else row.name
        rows[name] = row._replace(name=name)
    return list(rows.values())


def _row(entry: object) -> EngineRow:
    if isinstance(entry, str):
        return EngineRow(entry, entry, {})
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise ConfigError(f"engines: {entry!r} is neither a name nor `name: {{arguments}}`")
    name, given = next(iter(entry.items()))
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"engines: the arguments of {name} must be a map, not {given!r}")
    arguments = {str(key): value for key, value in (given or {}).items()}
    module = str(arguments.pop("engine_module", name))
    return EngineRow(str(name), module, arguments)

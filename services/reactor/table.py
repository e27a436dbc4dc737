"""Which reactor SLS belong to which tags, as it stands now: the option ``reactor``, and what operators change while it runs.

Changes are asked for by events ``salt/reactors/manage/<order>``, which minions may not fire, and last until the reactor ends
(Salt: salt/utils/reactor.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from saltwire import tags
from services.kit.config import ConfigError
from services.reactor.reactions import prefixes

#: Tag glob -> files, in the order in which they were configured; a glob may come twice.
Rows: TypeAlias = list[dict[str, Any]]


def rows_of(option: Any) -> Rows:
    """The rows of the option ``reactor``: a list of them, or the path of a YAML file that holds one. Raises ConfigError."""
    where = "reactor"
    if isinstance(option, str):
        where = option
        try:
            option = yaml.safe_load(Path(option).read_bytes())
        except OSError as error:
            raise ConfigError(f"reactor: {where} cannot be read: {error.strerror}") from error
        except (yaml.YAMLError, ValueError) as error:
            raise ConfigError(f"reactor: {where} is not valid YAML: {error}") from error
    rows = [] if option is None else option
    if not isinstance(rows, list):
        raise ConfigError(f"{where}: must be a list of `tag glob: files`, not a {type(rows).__name__}")
    for row in rows:
        if not isinstance(row, Mapping) or not all(
            isinstance(tag, str) and _is_files(files) for tag, files in row.items()
        ):
            raise ConfigError(f"{where}: {row!r} is no `tag glob: file or list of files`")
    return [dict(row) for row in rows]


def _is_files(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value))


class ReactorTable:
    """The rows, and whether this reactor reacts at all."""

    def __init__(self, rows: Rows, master: str) -> None:
        self.rows = rows
        self.master = master
        self.is_leader = True

    def files(self) -> list[Mapping[str, Sequence[str]]]:
        """The rows with lists of files."""
        return [
            {tag: [files] if isinstance(files, str) else list(files) for tag, files in row.items()} for row in self.rows
        ]

    def wanted(self) -> list[str]:
        """Prefixes of tags that have to be heard."""
        return sorted({*prefixes(self.files()), tags.REACTOR_ORDERS})

    def obey(self, tag: str, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """Does what the event orders; the event that answers it. None for an event that orders nothing."""
        order = tag.removeprefix(tags.REACTOR_ORDERS)
        if order == tag or order not in _ORDERS:
            return None
        return _ORDERS[order](self, data)

    def _list(self, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        return tags.REACTOR_ORDERS + "list-results", {"reactors": self.rows}

    def _add(self, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        event, files = data.get("event"), data.get("reactors")
        if not isinstance(event, str) or not _is_files(files):
            result = {"status": False, "comment": "A tag glob and a list of reactor files are needed."}
        elif any(event in row for row in self.rows):
            result = {"status": False, "comment": "Reactor already exists."}
        else:
            self.rows.append({event: files})
            result = {"status": True, "comment": "Reactor added."}
        return tags.REACTOR_ORDERS + "add-complete", {"reactors": self.rows, "result": result}

    def _delete(self, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        result: dict[str, Any] = {"status": False, "comment": "Reactor does not exists."}
        for row in self.rows:
            if data.get("event") in row:
                del row[data["event"]]
                self.rows = [each for each in self.rows if each]
                result = {"status": True, "comment": "Reactor deleted."}
                break
        return tags.REACTOR_ORDERS + "delete-complete", {"reactors": self.rows, "result": result}

    def _is_leader(self, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        return tags.REACTOR_ORDERS + "leader/value", {"result": self.is_leader}

    def _set_leader(self, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        if data.get("id") == self.master:
            self.is_leader = bool(data.get("value", True))
        return self._is_leader(data)


#: Last part of an order's tag -> what obeys it.
_ORDERS: Mapping[str, Callable[[ReactorTable, Mapping[str, Any]], tuple[str, dict[str, Any]]]] = {
    "list": ReactorTable._list,
    "add": ReactorTable._add,
    "delete": ReactorTable._delete,
    "is_leader": ReactorTable._is_leader,
    "set_leader": ReactorTable._set_leader,
}

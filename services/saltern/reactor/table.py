"""The table of reactions: the option ``reactor``, and the changes that operators make while the reactor runs.

Operators change it by events ``salt/reactors/manage/<order>``, which minions may not fire. Changes last until all reactors
have ended. Salt: salt/utils/reactor.py
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence

from saltern.kit.config.master import ConfigError
from saltern.kit.config.reactor_rows import Rows, is_files, rows_of
from saltwire import tags


def digest(rows: Rows) -> str:
    """Return a hash that identifies the option ``reactor``.

    An empty option gives an empty text, so that an idle reactor does not load OpenSSL.
    """
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest() if rows else ""


class ReactorTable:
    """The rows {tag glob: reactor SLS files} of all reactors, and whether the reactors react at all."""

    def __init__(self, rows: Rows, master: str) -> None:
        self._configured = rows
        self.rows = [dict(row) for row in rows]
        self.master = master
        self.is_leader = True

    def files(self) -> list[Mapping[str, Sequence[str]]]:
        """Return the table of reactions as a list of rows, each a map of tag glob to a list of reactor SLS files."""
        return [
            {tag: [files] if isinstance(files, str) else list(files) for tag, files in row.items()} for row in self.rows
        ]

    def wanted(self) -> list[str]:
        """Return the tag globs of the events that must be kept in Redis for the reactor."""
        return sorted({*(glob for row in self.rows for glob in row), tags.REACTOR_ORDERS + "*"})

    def text(self) -> str:
        """Return the table of reactions as JSON, in the form that the reactors share through Redis."""
        return json.dumps({"configured": digest(self._configured), "rows": self.rows, "is_leader": self.is_leader})

    def take(self, text: str) -> bool:
        """Load the table of reactions that the reactors share, from JSON.

        Return False and change nothing if it belongs to another configuration or cannot be parsed.
        """
        try:
            found = json.loads(text)
            if found["configured"] != digest(self._configured):
                return False
            self.rows, self.is_leader = rows_of(found["rows"]), bool(found["is_leader"])
        except (ValueError, TypeError, KeyError, ConfigError):
            return False
        return True

    def apply_order(self, tag: str, data: Mapping[str, object]) -> tuple[str, dict[str, object]] | None:
        """Apply an event that changes the table of reactions; return (tag, data) of the event that answers it.

        Return None for any other event.
        """
        order = tag.removeprefix(tags.REACTOR_ORDERS)
        if order == tag or order not in _ORDERS:
            return None
        return _ORDERS[order](self, data)

    def _list(self, data: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        return tags.REACTOR_ORDERS + "list-results", {"reactors": self.rows}

    def _add(self, data: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        event, files = data.get("event"), data.get("reactors")
        if not isinstance(event, str) or not is_files(files):
            result = {"status": False, "comment": "A tag glob and a list of reactor files are needed."}
        elif any(event in row for row in self.rows):
            result = {"status": False, "comment": "Reactor already exists."}
        else:
            self.rows.append({event: files})
            result = {"status": True, "comment": "Reactor added."}
        return tags.REACTOR_ORDERS + "add-complete", {"reactors": self.rows, "result": result}

    def _delete(self, data: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        result: dict[str, object] = {"status": False, "comment": "Reactor does not exists."}
        event = data.get("event")
        for row in self.rows:
            if isinstance(event, str) and event in row:
                del row[event]
                self.rows = [each for each in self.rows if each]
                result = {"status": True, "comment": "Reactor deleted."}
                break
        return tags.REACTOR_ORDERS + "delete-complete", {"reactors": self.rows, "result": result}

    def _is_leader(self, data: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        return tags.REACTOR_ORDERS + "leader/value", {"result": self.is_leader}

    def _set_leader(self, data: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        if data.get("id") == self.master:
            self.is_leader = bool(data.get("value", True))
        return self._is_leader(data)


#: Map of the last part of an order's tag to its function.
_ORDERS: Mapping[str, Callable[[ReactorTable, Mapping[str, object]], tuple[str, dict[str, object]]]] = {
    "list": ReactorTable._list,
    "add": ReactorTable._add,
    "delete": ReactorTable._delete,
    "is_leader": ReactorTable._is_leader,
    "set_leader": ReactorTable._set_leader,
}

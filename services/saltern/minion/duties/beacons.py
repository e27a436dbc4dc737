"""The beacons of the running minion: those of its configuration, of its pillar, and changes by ``beacons.*`` functions.

They run in a process of their own (``beacon_watch``), which fetches the list of beacons from this class and delivers their
events. As in Salt, a beacon of the configuration replaces one of the same name in pillar, and functions cannot change a
beacon of the pillar. Changes are lost at the end of the minion unless they are saved. Source: docs/execution.md#beacons
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from statecore.system.scheduling.schedule_file import ScheduleFileError, save

_LOG = logging.getLogger("saltern.minion")

#: Sends events, in the form of the ``events`` of ``_minion_event``.
SendEvents = Callable[[list[dict[str, object]]], None]


class Beacons:
    """The minion's beacons: a map of beacon name to options, from the configuration, the pillar and ``beacons.*``
    functions.
    """

    def __init__(self, configured: Mapping[str, object], file: Path, send_events: SendEvents) -> None:
        """Create the beacons of the option ``beacons`` (``configured``). ``file``: path that ``save`` writes.

        ``send_events``: sends a list of events to the master.
        """
        self._configured: dict[str, object] = copy.deepcopy(dict(configured))
        self._pillar: dict[str, object] = {}
        self._file = file
        self._send_events = send_events

    def update(self, pillar: Mapping[str, object]) -> None:
        """Replace the beacons of the old pillar by those of a new pillar."""
        beacons = pillar.get("beacons") or {}
        if not isinstance(beacons, Mapping):
            _LOG.error("pillar: beacons must be a map and are ignored: %r", beacons)
            beacons = {}
        self._pillar = dict(beacons)

    @property
    def whole(self) -> dict[str, object]:
        """Return the map of beacon name to options, with the key ``enabled``: whether beacons run at all."""
        return {**self._pillar, **self._configured}

    @property
    def any(self) -> bool:
        """Return whether at least one beacon is configured."""
        return any(name != "enabled" for name in self.whole)

    def manage(self, request: Mapping[str, object]) -> dict[str, object]:
        """Carry out a control request about beacons ({"verb": "add", "list", ...}), and return the map that answers it.

        Raise ValueError for an unknown verb.
        """
        verbs: Mapping[str, Callable[[Mapping[str, object]], dict[str, object]]] = {
            "list": self._list,
            "add": lambda request: self._put(
                request, "Cannot update beacon item {}, because it is configured in pillar."
            ),
            "modify": lambda request: self._put(request, "Cannot modify beacon item {}, it is configured in pillar."),
            "delete": self._delete,
            "enable": lambda request: self._switch_all(on=True),
            "disable": lambda request: self._switch_all(on=False),
            "enable_beacon": lambda request: self._switch(request, on=True),
            "disable_beacon": lambda request: self._switch(request, on=False),
            "reset": lambda request: self._reset(),
            "save": lambda request: self._save(),
            "look": self._looked,
        }
        verb = str(request.get("verb"))
        if verb not in verbs:
            raise ValueError(f"unknown verb {verb} for beacons; use one of {', '.join(verbs)}")
        return verbs[verb](request)

    def _list(self, request: Mapping[str, object]) -> dict[str, object]:
        pillar = self._pillar if request.get("include_pillar", True) else {}
        configured = self._configured if request.get("include_opts", True) else {}
        return {"beacons": {**pillar, **configured}}

    def _looked(self, request: Mapping[str, object]) -> dict[str, object]:
        """Send the events in the beacon process's request to the master, and disable the beacons that it names as ended.

        Return {"beacons": all beacons of the minion}.
        """
        events = request.get("events")
        if isinstance(events, list) and events:
            self._send_events(events)
        done = request.get("done")
        for name in done if isinstance(done, list) else ():
            if name in self._configured:
                self._switch({"name": name}, on=False)
        return {"beacons": self.whole}

    def _put(self, request: Mapping[str, object], refusal: str) -> dict[str, object]:
        name, config = str(request.get("name")), request.get("beacon_data")
        if name in self._pillar:
            return self._answer(refusal.format(name), complete=False)
        known = name in self._configured
        self._configured[name] = config
        return self._answer(f"Updating settings for beacon item: {name}" if known else f"Added new beacon item: {name}")

    def _delete(self, request: Mapping[str, object]) -> dict[str, object]:
        name = str(request.get("name"))
        if name in self._pillar:
            return self._answer(f"Cannot delete beacon item {name}, it is configured in pillar.", complete=False)
        if self._configured.pop(name, None) is None:
            return self._answer(f"Beacon item {name} not found.")
        return self._answer(f"Deleting beacon item: {name}")

    def _switch(self, request: Mapping[str, object], *, on: bool) -> dict[str, object]:
        name, able = str(request.get("name")), "enable" if on else "disable"
        if name in self._pillar:
            return self._answer(f"Cannot {able} beacon item {name}, it is configured in pillar.", complete=False)
        config = self._configured.get(name)
        if not isinstance(config, list):
            return self._answer(f"Beacon item {name} not found.", complete=False)
        rest = [entry for entry in config if not (isinstance(entry, Mapping) and "enabled" in entry)]
        self._configured[name] = [*rest, {"enabled": on}]
        return self._answer(f"{able[:-1].capitalize()}ing beacon item {name}")

    def _switch_all(self, *, on: bool) -> dict[str, object]:
        self._configured["enabled"] = on
        return self._answer("")

    def _reset(self) -> dict[str, object]:
        self._configured = {}
        return self._answer("Beacons have been reset")

    def _save(self) -> dict[str, object]:
        try:
            save(self._file, self._configured, "beacons")
        except ScheduleFileError as error:
            _LOG.error("%s", error)
            return {"unsaved": str(error), "file": str(self._file)}
        return {"unsaved": "", "file": str(self._file)}

    def _answer(self, comment: str, *, complete: bool = True) -> dict[str, object]:
        return {"complete": complete, "comment": comment, "beacons": self._configured}

"""Calls of a minion's beacons: which beacon is due, the events that it returns, its faults.

A beacon with a malformed configuration is logged once and left out. A beacon that raises sends its error as an event.
Other beacons go on. Salt: salt/beacons/__init__.py, Beacon.process

Source: docs/execution.md#beacons
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.errors import NotAvailable
from statecore.system.scheduling.beacon_config import merged

_LOG = logging.getLogger(__name__)

#: Prefix of the tags of a beacon's events, as in Salt.
_TAG = "salt/beacon/{id}/{name}/"

#: Options that say when to call the beacon; the beacon itself does not get them.
_WHEN = ("enabled", "interval", "disable_during_state_run")


def problem(loader: Loader, ctx: Context, name: str, config: object) -> str:
    """Return the reason why a beacon of the minion cannot run with this configuration; "" if it can run.

    A beacon module without the function ``validate`` takes any list.
    """
    if not isinstance(config, list):
        return f"Configuration for {name} beacon must be a list."
    module = _module(name, config)
    try:
        served = loader.module("beacons", module, ctx)
    except NotAvailable as missing:
        return f'Beacon "{module}" is not available{": " + missing.reason if missing.reason else "."}'
    if "beacon" not in served.functions:
        return f'Beacon "{module}" has no function beacon.'
    if "validate" not in served.functions:
        return ""
    valid, comment = served.bound("validate", ctx)(_shown(config))
    return "" if valid else str(comment)


@dataclass
class _Known:
    """A configured beacon: its configuration, the reason why it cannot run ("" if it can), the time of its next call."""

    config: object
    problem: str
    next_call: float


@dataclass
class BeaconRuns:
    """Calls the minion's beacons when they are due. Beacon modules keep data between calls in ``ctx.scratch``."""

    loader: Loader
    ctx: Context
    _known: dict[str, _Known] = field(default_factory=dict)

    def call_due(
        self, configured: Mapping[str, object], now: float, states_run: Callable[[], bool]
    ) -> tuple[list[dict[str, object]], list[str]]:
        """Call the beacons that are due. Return (events to fire, names of ``run_once`` beacons to disable).

        Each event is a map in the form of the command ``_minion_event``. ``configured`` maps beacon names to their
        configurations. ``now`` is in seconds of a monotonic clock. ``states_run`` returns True while a state run is in
        progress.
        """
        events: list[dict[str, object]] = []
        done: list[str] = []
        wanted = configured if configured.get("enabled", True) else {}
        for name in [name for name in self._known if self._known[name].config != wanted.get(name)]:
            self._close(name, self._known.pop(name).config)
        for name, config in wanted.items():
            if name != "enabled":
                happened = self._look(str(name), config, now, states_run)
                events += happened or ()
                if happened is not None and isinstance(config, list) and merged(config).get("run_once"):
                    done.append(str(name))
        return events, done

    def _look(
        self, name: str, config: object, now: float, states_run: Callable[[], bool]
    ) -> list[dict[str, object]] | None:
        """Call one beacon if it is due, and return its events; None if the beacon was not called."""
        known = self._known.get(name) or self._first(name, config, now)
        options = merged(config) if isinstance(config, list) else {}
        if known.problem or not options.get("enabled", True) or now < known.next_call:
            return None
        known.next_call = now + _interval(options)
        if options.get("disable_during_state_run") and states_run():
            self._close(name, config)
            return None
        module = _module(name, config)
        try:
            raw = self._call(module, "beacon", [*_shown(config), {"_beacon_name": name}])
        except Exception as error:  # noqa: BLE001 - a beacon of a user may raise anything; the others go on
            _LOG.error("the beacon %s failed: %s", name, error)
            data = {"id": self.ctx.opts["id"], "error": str(error)}
            return [{"tag": self._tag(name), "error": str(error), "data": data, "beacon_name": module}]
        return [self._event(name, module, data) for data in raw] if isinstance(raw, Iterable) else []

    def _first(self, name: str, config: object, now: float) -> _Known:
        why = problem(self.loader, self.ctx, name, config)
        if why:
            _LOG.error("the beacon %s is left out: %s", name, why)
        options = merged(config) if isinstance(config, list) else {}
        # As in Salt a beacon with an interval is first called after one interval.
        known = _Known(copy.deepcopy(config), why, now + _interval(options))
        self._known[name] = known
        return known

    def _event(self, name: str, module: str, data: object) -> dict[str, object]:
        if not isinstance(data, Mapping):
            raise TypeError(f"the beacon {name} must return maps, not {data!r}")
        body = dict(data)
        tag = self._tag(name) + str(body.pop("tag", ""))
        return {"tag": tag, "data": {"id": self.ctx.opts["id"], **body}, "beacon_name": module}

    def _tag(self, name: str) -> str:
        return _TAG.format(id=self.ctx.opts["id"], name=name)

    def _close(self, name: str, config: object) -> None:
        module = _module(name, config)
        if self.loader.has("beacons", f"{module}.close", self.ctx):
            try:
                self._call(module, "close", [*_shown(config), {"_beacon_name": name}])
            except Exception as error:  # noqa: BLE001 - as above
                _LOG.error("the beacon %s cannot be closed: %s", name, error)

    def _call(self, module: str, function: str, config: list[object]) -> object:
        served, name = self.loader.function("beacons", f"{module}.{function}", self.ctx)
        return served.bound(name, self.ctx)(config)


def _module(name: str, config: object) -> str:
    return str(merged(config).get("beacon_module") or name) if isinstance(config, list) else name


def _shown(config: object) -> list[object]:

    if not isinstance(config, list):
        return []
    entries = (
        {k: v for k, v in each.items() if k not in _WHEN} if isinstance(each, Mapping) else each for each in config
    )
    return [copy.deepcopy(entry) for entry in entries if entry]


def _interval(options: Mapping[str, object]) -> float:
    interval = options.get("interval") or 0
    return float(interval) if isinstance(interval, int | float) and not isinstance(interval, bool) else 0.0

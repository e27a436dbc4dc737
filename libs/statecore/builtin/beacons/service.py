"""Beacon ``service``: fires events with the status of services of the host."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypedDict

from statecore.model.context import Context
from statecore.system.scheduling.beacon_config import listed, merged


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``service`` is valid, comment). ``services`` maps each service
    name to a map of options.
    """
    if fault := listed(config, "service"):
        return False, fault
    services = merged(config).get("services")
    if services is None:
        return False, "Configuration for service beacon requires services."
    if not isinstance(services, Mapping):
        return False, "Services configuration item for service beacon must be a dictionary."
    if not all(isinstance(options, Mapping) for options in services.values()):
        return False, "Configuration for service beacon must be a list of dictionaries."
    for name, options in services.items():
        delay = options.get("delay", 0)
        if isinstance(delay, bool) or not isinstance(delay, int | float):
            return False, f"Configuration for service beacon: delay of {name} must be a number."
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events ``{name: {"running": bool}, "service_name": name}``, one for each service. The event's
    tag is the service name.

    Options of a service: ``onchangeonly`` (only when the status changes, and at the minion's start unless
    ``emitatstartup`` is false), ``delay`` (seconds that a change has to last), ``is_running_state`` (only if the
    service runs, or if it does not), ``uncleanshutdown`` (path of a pid file: report whether a stopped service has left
    it).
    """
    whole = merged(config)
    known = ctx.scratch.setdefault(f"{whole.get('_beacon_name', 'service')}.last", {})
    found = []
    for name, options in whole["services"].items():
        status = {"running": ctx.call("service.status", name)}
        if "uncleanshutdown" in options and not status["running"]:
            status["uncleanshutdown"] = ctx.host.path(str(options["uncleanshutdown"])).exists()
        if isinstance(options.get("is_running_state"), bool) and options["is_running_state"] != status["running"]:
            continue
        if options.get("onchangeonly") is not True or _has_changed(known, name, status, options):
            found.append({name: status, "service_name": name, "tag": name})
    return found


class _Known(TypedDict):
    running: object
    #: Time of the change that was not reported yet, in seconds of time.monotonic; None if the status was reported.
    since: float | None


def _has_changed(known: dict[str, _Known], name: str, status: Mapping[str, object], options: Mapping[str, Any]) -> bool:
    """Return True if a changed status of the service ``name`` must be reported now.

    A change is reported when it has lasted longer than the option ``delay`` (seconds). The first status counts as a change
    if ``emitatstartup`` is set.
    """
    delay, now = options.get("delay", 0), time.monotonic()
    last = known.get(name)
    if last is None or last["running"] != status["running"]:
        tell = last is not None or bool(options.get("emitatstartup", True))
        known[name] = {"running": status["running"], "since": now if tell and delay > 0 else None}
        return tell and delay <= 0
    if last["since"] is not None and round(now - last["since"]) > delay:
        last["since"] = None
        return True
    return False

"""Beacons of the running minion: Salt's ``beacons`` execution module.

Beacons that come from pillar can only be changed in pillar. Changes are lost when the minion stops, unless
``beacons.save`` is called.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import NotAvailable
from statecore.system.scheduling.beacon_config import merged


def list(
    ctx: Context, return_yaml: bool = True, include_pillar: bool = True, include_opts: bool = True, **kwargs: object
) -> str | dict[str, object]:
    """Return the minion's configured beacons as YAML text, or with ``return_yaml=False`` as a map of beacon name to
    options.

    include_pillar, include_opts
        False: leave out the beacons from pillar, or those from the configuration

    CLI Example:

        salt '*' beacons.list
    """
    found = _configured(ctx, include_pillar=include_pillar, include_opts=include_opts)
    return _text(found) if return_yaml else found


def list_available(ctx: Context, return_yaml: bool = True, **kwargs: object) -> object:
    """Return the names of the beacon modules that this host can use, as YAML text or with ``return_yaml=False`` as a
    list.

    CLI Example:

        salt '*' beacons.list_available
    """
    names = _available(ctx)
    return _text(names) if return_yaml else names


def add(ctx: Context, name: str, beacon_data: object, **kwargs: object) -> dict[str, object]:
    """Add a beacon to the running minion. Return a map with ``result`` (bool) and ``comment``.

    name
        name of the beacon module, or any name if ``beacon_data`` has ``beacon_module``
    beacon_data
        list of the beacon's options

    CLI Example:

        salt '*' beacons.add ps "[{'processes': {'nginx': 'stopped'}}]"
    """
    if name in _configured(ctx):
        return {"comment": f"Beacon {name} is already configured.", "result": True}
    if fault := _fault(ctx, name, beacon_data):
        return _refused(name, fault, "adding")
    if kwargs.get("test"):
        return {"comment": f"Beacon: {name} would be added.", "result": True}
    return _changed(ctx, {"verb": "add", "name": name, "beacon_data": beacon_data}, f"Added beacon: {name}.")


def modify(ctx: Context, name: str, beacon_data: object, **kwargs: object) -> dict[str, object]:
    """Replace the options of a beacon. Return a map with ``result`` (bool), ``comment`` and ``changes`` (the diff as
    text).

    CLI Example:

        salt '*' beacons.modify ps "[{'processes': {'nginx': 'running'}}]"
    """
    configured = _configured(ctx)
    if name not in configured:
        return {"comment": f"Beacon {name} is not configured.", "result": True}
    if fault := _fault(ctx, name, beacon_data):
        return _refused(name, fault, "modifying")
    if beacon_data == configured[name]:
        return {"comment": f"Job {name} in correct state", "result": True}
    diff = "".join(difflib.unified_diff(_lines(configured[name]), _lines(beacon_data)))
    if kwargs.get("test"):
        return {"comment": f"Beacon: {name} would be modified.", "result": True, "changes": {"diff": diff}}
    answer = _changed(ctx, {"verb": "modify", "name": name, "beacon_data": beacon_data}, f"Modified beacon: {name}.")
    return answer | ({"changes": {"diff": diff}} if answer["result"] else {})


def delete(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Remove a beacon from the running minion. Return a map with ``result`` (bool) and ``comment``.

    CLI Example:

        salt '*' beacons.delete ps
    """
    if kwargs.get("test"):
        return {"comment": f"Beacon: {name} would be deleted.", "result": True}
    return _changed(ctx, {"verb": "delete", "name": name}, f"Deleted beacon: {name}.")


def save(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Write all beacons except those from pillar to a configuration file of the minion, so that they exist after a
    restart. Return a map with ``result`` (False if the file cannot be written) and ``comment``.

    CLI Example:

        salt '*' beacons.save
    """
    done = ctx.minion.manage("beacons", {"verb": "save"})
    if done["unsaved"]:
        comment = f"Unable to write to beacons file at {done['file']}. Check permissions. {done['unsaved']}"
        return {"comment": comment, "result": False}
    return {"comment": f"Beacons saved to {done['file']}.", "result": True}


def enable(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Let the minion run its beacons again. Return a map with ``result`` (bool) and ``comment``.

    CLI Example:

        salt '*' beacons.enable
    """
    if kwargs.get("test"):
        return {"comment": "Beacons would be enabled.", "result": True}
    return _changed(ctx, {"verb": "enable"}, "Enabled beacons on minion.")


def disable(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Let the minion run no beacon any more, until ``beacons.enable``. Return a map with ``result`` (bool) and
    ``comment``.

    CLI Example:

        salt '*' beacons.disable
    """
    if kwargs.get("test"):
        return {"comment": "Beacons would be disabled.", "result": True}
    return _changed(ctx, {"verb": "disable"}, "Disabled beacons on minion.")


def enable_beacon(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Let the minion run one beacon again. Return a map with ``result`` (bool) and ``comment``.

    CLI Example:

        salt '*' beacons.enable_beacon ps
    """
    return _switch(ctx, name, kwargs, on=True)


def disable_beacon(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Let the minion run one beacon no more, until ``beacons.enable_beacon``. Return a map with ``result`` (bool)
    and ``comment``.

    CLI Example:

        salt '*' beacons.disable_beacon ps
    """
    return _switch(ctx, name, kwargs, on=False)


def reset(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Remove all beacons of the minion except those from pillar. Return a map with ``result`` (bool) and
    ``comment``.

    CLI Example:

        salt '*' beacons.reset
    """
    if kwargs.get("test"):
        return {"comment": "Beacons would be reset.", "result": True}
    return _changed(ctx, {"verb": "reset"}, "Beacon configuration reset.")


# --------------------------------------------------------------------------------------------- helpers


def _configured(ctx: Context, *, include_pillar: bool = True, include_opts: bool = True) -> dict[str, object]:
    asked = {"verb": "list", "include_pillar": include_pillar, "include_opts": include_opts}
    found: dict[str, object] = ctx.minion.manage("beacons", asked)["beacons"]
    return found


def _available(ctx: Context) -> object:
    return sorted(name.partition(".")[0] for name in ctx.catalog.names("beacons") if name.partition(".")[2] == "beacon")


def _text(beacons: object) -> str:
    text: str = yaml.dump({"beacons": beacons}, default_flow_style=False)
    return text


def _fault(ctx: Context, name: str, config: object) -> str:
    """Return the reason why a beacon cannot run with the configuration ``config``, "" if it can. For an unknown beacon
    the text starts with ``Beacon "``.
    """
    if not isinstance(config, type([])):
        return f"Configuration for {name} beacon must be a list."
    module = str(merged(config).get("beacon_module") or name)
    try:
        ctx.catalog.function(f"{module}.beacon", "beacons")
    except NotAvailable as missing:
        return f'Beacon "{module}" is not available.' + (f" {missing.reason}" if missing.reason else "")
    try:
        validate = ctx.catalog.function(f"{module}.validate", "beacons")
    except NotAvailable:
        return ""
    entries: Sequence[object] = config
    own = [entry for entry in entries if not (isinstance(entry, Mapping) and "enabled" in entry)]
    valid, comment = validate(own)
    return "" if valid else str(comment)


def _refused(name: str, fault: str, doing: str) -> dict[str, object]:
    if fault.startswith('Beacon "'):
        return {"comment": fault, "result": False}
    return {"comment": f"Beacon {name} configuration invalid, not {doing}.\n{fault}", "result": False}


def _lines(config: object) -> Sequence[str]:
    entries = config if isinstance(config, Sequence) and not isinstance(config, str) else (config,)
    return [f"{key}:{value}\n" for entry in entries if isinstance(entry, Mapping) for key, value in entry.items()]


def _changed(ctx: Context, request: Mapping[str, object], comment: str) -> dict[str, object]:
    done = ctx.minion.manage("beacons", request)
    if not done["complete"]:
        return {"comment": done["comment"], "result": False}
    return {"comment": comment, "result": True}


def _switch(ctx: Context, name: str, kwargs: Mapping[str, object], *, on: bool) -> dict[str, object]:
    able = "enable" if on else "disable"
    if not name:
        return {"comment": "Beacon name is required.", "result": False}
    if kwargs.get("test"):
        return {"comment": f"Beacon {name} would be {able}d.", "result": True}
    if name not in _configured(ctx):
        return {"comment": f"Beacon {name} is not currently configured.", "result": False}
    return _changed(ctx, {"verb": f"{able}_beacon", "name": name}, f"{able.capitalize()}d beacon {name} on minion.")

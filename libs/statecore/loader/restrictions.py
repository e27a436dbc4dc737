"""What a minion's options take out of its modules: ``disable_modules`` and its kin, ``whitelist_modules`` and that of states.

What is disabled is there for nobody. What ``whitelist_modules`` does not name is not there for jobs, nor for who writes an SLS
(templates, slots, guards, ``module.run``), but for modules and states: ``file.managed`` works without ``file`` in the list.
Source: salt/loader/__init__.py (minion_mods, states) and salt/loader/lazy.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from statecore.loader.providers import OURS

#: Kind -> the option that names files (or modules) of it that are not loaded.
DISABLED: Mapping[str, str] = {
    "modules": "disable_modules",
    "returners": "disable_returners",
    "states": "disable_states",
    "grains": "disable_grains",
    "beacons": "disable_beacons",
    "executors": "disable_executors",
    "utils": "disable_utils",
}

#: Kind -> the option that names the only modules of it. That of execution modules is no matter of loading: see above.
ONLY: Mapping[str, str] = {"states": "whitelist_state_modules"}


def disabled(opts: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Kind -> names of files and modules that are not there."""
    found = {kind: _names(opts.get(option)) for kind, option in DISABLED.items()}
    return {kind: names | {OURS[name] for name in names if name in OURS} for kind, names in found.items() if names}


def only(opts: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Kind -> the modules that are there alone, of kinds that have such a list."""
    return {kind: names for kind, option in ONLY.items() if (names := _names(opts.get(option)))}


def _names(value: Iterable[Any] | None) -> frozenset[str]:
    return frozenset(str(each) for each in value or ())

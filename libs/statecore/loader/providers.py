"""Which file is to serve a module, where somebody has said so: the option ``providers``, the argument ``provider`` of a state.

Salt: doc/ref/states/providers.rst. Names are those of files; Salt's names of its files mean ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

#: All that was chosen, as a key.
Choice: TypeAlias = tuple[tuple[str, str], ...]

#: Salt's file -> ours.
OURS: Mapping[str, str] = {
    "systemd_service": "service_systemd",
    "systemd": "service_systemd",
    "debian_service": "service_sysv",
    "rh_service": "service_sysv",
    "linux_service": "service_sysv",
    "gentoo_service": "service_openrc",
    "supervisord": "service_supervisord",
    "aptpkg": "pkg_apt",
    "yumpkg": "pkg_rpm",
    "debian_ip": "ip_ifupdown",
    "rh_ip": "ip_ifcfg",
    "netplan_ip": "ip_netplan",
    "useradd": "user",
    "groupadd": "group",
    "linux_shadow": "shadow",
    "linux_sysctl": "sysctl",
    "cmdmod": "cmd",
    "sysmod": "sys",
    "ini_manage": "ini",
    "virtualenv_mod": "virtualenv",
    "x509_v2": "x509",
}


def provider(opts: Mapping[str, Any], module: str) -> str:
    """The file that was chosen for a module, "" where none was."""
    chosen = opts.get("providers")
    name = chosen.get(module) if isinstance(chosen, Mapping) else None
    return OURS.get(str(name), str(name)) if name else ""


def choice(opts: Mapping[str, Any]) -> Choice:
    """(module, file) of all that was chosen."""
    named = opts.get("providers")
    if not named:
        return ()
    return tuple(sorted((str(key), str(value)) for key, value in named.items())) if isinstance(named, Mapping) else ()


def chosen(opts: Mapping[str, Any], state: str, wanted: Any) -> dict[str, Any]:
    """The options as a state that names its ``provider`` sees them: a file, or maps of module to file. Raises ValueError for
    anything else."""
    rows = wanted if isinstance(wanted, list) else [{state: wanted} if isinstance(wanted, str) else wanted]
    found = dict(opts.get("providers") or {})
    for row in rows:
        if not isinstance(row, Mapping) or not all(isinstance(each, str) for pair in row.items() for each in pair):
            raise ValueError(f"provider must name a file, or map modules to files, not {wanted!r}")
        found |= row
    return {**opts, "providers": found}


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

"""Options that choose or disable module files: ``providers``, ``disable_modules`` and similar options, and a state's
``provider``.

The options contain file names of modules. Salt's file names are translated to our file names (``OURS``). Salt:
doc/ref/states/providers.rst
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

#: The option ``providers`` as a hashable cache key: sorted (module, file) pairs.
Choice: TypeAlias = tuple[tuple[str, str], ...]

#: Salt's file name -> our file name.
OURS: Mapping[str, str] = {
    "systemd_service": "service_systemd",
    "systemd": "service_systemd",
    "debian_service": "service_sysv",
    "rh_service": "service_sysv",
    "linux_service": "service_sysv",
    "gentoo_service": "service_openrc",
    "supervisord": "service_supervisord",
    "aptpkg": "pkg_apt",
    "dpkg_lowpkg": "lowpkg",
    "rpm_lowpkg": "lowpkg_rpm",
    "yumpkg": "pkg_rpm",
    "zypperpkg": "pkg_zypper",
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


def provider(opts: Mapping[str, object], module: str) -> str:
    """Return the module file that the option ``providers`` chooses for a module name such as ``pkg``; "" if it chooses
    none.

    The result is the file's name without suffix, such as ``pkg_apt``.
    """
    chosen = opts.get("providers")
    name = chosen.get(module) if isinstance(chosen, Mapping) else None
    return OURS.get(str(name), str(name)) if name else ""


def choice(opts: Mapping[str, object]) -> Choice:
    """Return the option ``providers`` as sorted (module name, file name) pairs, which can be a cache key; () if it is
    not set.
    """
    named = opts.get("providers")
    if not named:
        return ()
    return tuple(sorted((str(key), str(value)) for key, value in named.items())) if isinstance(named, Mapping) else ()


def chosen(opts: Mapping[str, object], state: str, wanted: object) -> dict[str, object]:
    """Return the minion's options with a state's argument ``provider`` merged into the option ``providers``.

    ``wanted`` is the value of the argument: a file name, a map of module name to file name, or a list of such maps.
    Raise ValueError for any other value.
    """
    rows = wanted if isinstance(wanted, list) else [{state: wanted} if isinstance(wanted, str) else wanted]
    already = opts.get("providers")
    found = dict(already) if isinstance(already, Mapping) else {}
    for row in rows:
        if not isinstance(row, Mapping) or not all(isinstance(each, str) for pair in row.items() for each in pair):
            raise ValueError(f"provider must name a file, or map modules to files, not {wanted!r}")
        found |= row
    return {**opts, "providers": found}


#: Kind -> the option that lists files or modules of this kind that are not loaded.
DISABLED: Mapping[str, str] = {
    "modules": "disable_modules",
    "returners": "disable_returners",
    "states": "disable_states",
    "grains": "disable_grains",
    "beacons": "disable_beacons",
    "executors": "disable_executors",
    "utils": "disable_utils",
}

#: Kind -> the option that lists the only modules of this kind that are loaded. ``whitelist_modules`` (execution
#: modules) is not here, because it limits calls, not loading.
ONLY: Mapping[str, str] = {"states": "whitelist_state_modules"}


def disabled(opts: Mapping[str, object]) -> dict[str, frozenset[str]]:
    """Map of kind ("modules", "states" ...) to the names of modules and module files that options such as
    ``disable_modules`` disable.
    """
    found = {kind: _names(opts.get(option)) for kind, option in DISABLED.items()}
    return {kind: names | {OURS[name] for name in names if name in OURS} for kind, names in found.items() if names}


def only(opts: Mapping[str, object]) -> dict[str, frozenset[str]]:
    """Map of kind to the only module names that may be loaded (option ``whitelist_state_modules``). Kinds without limit
    are left out.
    """
    return {kind: names for kind, option in ONLY.items() if (names := _names(opts.get(option)))}


def _names(value: object) -> frozenset[str]:
    return frozenset(str(each) for each in value) if isinstance(value, Iterable) else frozenset()

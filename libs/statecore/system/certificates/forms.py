"""The forms in which Salt takes the values of extensions: OpenSSL's configuration strings, lists and maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.system.certificates import names


def words(value: Any) -> tuple[list[str], bool]:
    """(the words of ``critical, a, b``, or of a list, or the keys of a map that are true; whether critical is one)."""
    if isinstance(value, str):
        found = [each.strip() for each in value.split(",")]
    elif isinstance(value, Mapping):
        found = [str(name) for name, on in value.items() if on]
    else:
        found = [str(each).strip() for each in (value if isinstance(value, list | tuple) else [value])]
    return [each for each in found if each not in ("critical", "")], "critical" in found


def settings(value: Any) -> tuple[dict[str, Any], bool]:
    """(name -> value of ``critical, a:1, b`` or of a map, whether critical)."""
    if isinstance(value, Mapping):
        return {str(name): each for name, each in value.items() if name != "critical"}, bool(value.get("critical"))
    found, critical = words(value)
    pairs = (each.partition(":") for each in found)
    return {name.strip(): setting.strip() if colon else "__present__" for name, colon, setting in pairs}, critical


def pairs(value: Any) -> tuple[list[tuple[str, Any]], bool]:
    """((type, value) of ``critical, type:value, …``, of a list of such, or of maps; whether critical)."""
    if isinstance(value, Mapping):
        return [(str(kind), each) for kind, each in value.items() if kind != "critical"], bool(value.get("critical"))
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    found: list[tuple[str, Any]] = []
    critical = False
    for each in listed:
        if isinstance(each, Mapping):
            critical = critical or bool(each.get("critical"))
            found += [(str(kind), one) for kind, one in each.items() if kind != "critical"]
        elif str(each).strip() == "critical":
            critical = True
        else:
            found.append(names.pair(each))
    return found, critical


def listed(value: Any) -> list[Any]:
    """A list as it is; [] for None; a list of anything else."""
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]

"""``salt.returners``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statecore.system.returner_settings import settings_of


def get_returner_options(
    virtualname: str = "",
    ret: Mapping[str, Any] | None = None,
    attrs: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Option -> its value, of those in ``attrs`` (option -> name in the configuration) that are set or in ``defaults``.

    ``profile_attr`` and ``profile_attrs``: the option that names a map with more of them.
    """
    option: Callable[..., Any] = kwargs.get("__salt__", {}).get("config.option") or _from(kwargs.get("__opts__") or {})
    defaults = kwargs.get("defaults") or {}
    found = {}
    for name, key in (attrs or {}).items():
        value = settings_of(option, virtualname, _without_kwargs(ret), {key: None})[key]
        if value is not None or name in defaults:
            found[name] = defaults[name] if value is None else value
    profile = option(found[kwargs["profile_attr"]], {}) if found.get(kwargs.get("profile_attr") or "") else {}
    if profile:
        found |= {
            name: profile.get(f"{virtualname}.{key}") for name, key in (kwargs.get("profile_attrs") or {}).items()
        }
    return found | dict((ret or {}).get("ret_kwargs") or {})


def _without_kwargs(ret: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (ret or {}).items() if key != "ret_kwargs"}


def _from(opts: Mapping[str, Any]) -> Callable[..., Any]:
    return lambda name, default=None: opts.get(name, default)

"""``salt.returners`` for users' modules: reads the options of a user's returner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statecore.system.returner_settings import settings_of


def get_returner_options(
    virtualname: str = "",
    ret: Mapping[str, object] | None = None,
    attrs: Mapping[str, str] | None = None,
    *,
    profile_attr: str = "",
    profile_attrs: Mapping[str, str] | None = None,
    defaults: Mapping[str, object] | None = None,
    __salt__: Mapping[str, Callable[..., Any]] | None = None,
    __opts__: Mapping[str, object] | None = None,
    **_: object,
) -> dict[str, object]:
    """Map of each option of a user's returner to its value. ``attrs`` maps the option to its name in the configuration.

    Options that are not set have the value from ``defaults``, or are left out. ``profile_attr`` is the option that
    names a configured map (a profile); ``profile_attrs`` maps further options to their names in this profile.
    """
    option: Callable[..., Any] = (__salt__ or {}).get("config.option") or _from(__opts__ or {})
    given = (ret or {}).get("ret_kwargs")
    defaults = defaults or {}
    found: dict[str, object] = {}
    for name, key in (attrs or {}).items():
        value = settings_of(option, virtualname, _without_kwargs(ret), {key: None})[key]
        if value is not None or name in defaults:
            found[name] = defaults[name] if value is None else value
    profile = option(found[profile_attr], {}) if found.get(profile_attr or "") else {}
    if profile:
        found |= {name: profile.get(f"{virtualname}.{key}") for name, key in (profile_attrs or {}).items()}
    return found | (dict(given) if isinstance(given, Mapping) else {})


def _without_kwargs(ret: Mapping[str, object] | None) -> dict[str, object]:
    return {key: value for key, value in (ret or {}).items() if key != "ret_kwargs"}


def _from(opts: Mapping[str, object]) -> Callable[..., object]:
    return lambda name, default=None: opts.get(name, default)

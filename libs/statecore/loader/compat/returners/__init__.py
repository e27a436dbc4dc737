"""``salt.returners``."""

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
    """Option -> its value, of those in ``attrs`` (option -> name in the configuration) that are set or in ``defaults``.

    ``profile_attr`` and ``profile_attrs``: the option that names a map with more of them.
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

"""Settings of a returner: ``NAME.OPTION`` in configuration, grains or pillar, or a map ``NAME`` in pillar.

A job's ``ret_config: other`` (``--return_config``, ``return_config`` of a schedule) reads ``other.NAME.OPTION`` first.
The job's ``ret_kwargs`` override all of them.

Salt: salt/returners/__init__.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def settings_of(
    option: Callable[..., object], name: str, ret: Mapping[str, object] | None, defaults: Mapping[str, object]
) -> dict[str, object]:
    """Map of each option in ``defaults`` to its value for the returner ``name`` and this job.

    ``option`` is the function ``config.option``. ``ret`` is the job's return, or None. Keys of the job's ``ret_kwargs``
    override the others.
    """
    profile = str((ret or {}).get("ret_config") or "")
    found = {key: _setting(option, name, profile, key, default) for key, default in defaults.items()}
    given = (ret or {}).get("ret_kwargs")
    return found | (dict(given) if isinstance(given, Mapping) else {})


def _setting(option: Callable[..., object], name: str, profile: str, key: str, default: object) -> object:
    for prefix in [f"{profile}.{name}", name] if profile else [name]:
        whole = option(prefix, {})
        value = whole.get(key) if isinstance(whole, Mapping) else None
        value = option(f"{prefix}.{key}") if value in (None, "") else value
        if value not in (None, ""):
            return value
    return default

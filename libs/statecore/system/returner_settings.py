"""Settings of a returner: ``NAME.OPTION`` in configuration, grains or pillar, or a map ``NAME`` in pillar.

A job's ``ret_config: other`` (``--return_config``, ``return_config`` of a schedule) reads ``other.NAME.OPTION`` first.
The job's ``ret_kwargs`` override all of them.

Salt: salt/returners/__init__.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from statecore.model.substitution import segment


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


def with_grains(text: str, grains: Mapping[str, object], *, path: bool = False) -> str:
    """Return a text of the settings with each ``{grain}`` replaced by the grain of this name, or by nothing if there is none.

    ``path``: the text is a path; raises UnsafeValue for a grain that is not one name of a path.
    """

    def value(found: re.Match[str]) -> str:
        given = grains.get(found[1], "")
        return segment(given, f"the grain {found[1]}") if path and given not in ("", None) else str(given)

    return re.sub(r"\{([^{}]*)\}", value, text)


#: Keys of a return that choose a returner's settings, such as its server and its file.
_CHOOSES = frozenset({"ret_config", "ret_kwargs"})


def without_settings(data: Mapping[str, object]) -> dict[str, object]:
    """Return the data of a return or an event without what chooses settings of returners. The data is a minion's own: on the
    master, it must not choose the server, the file or the credentials.
    """
    return {name: value for name, value in data.items() if name not in _CHOOSES}

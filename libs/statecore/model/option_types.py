"""Types of a minion's options, for commands that read a configuration file which no minion has checked yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """A type of a minion option's value: its name for messages, and a function that tells if a value has the type."""

    words: str
    fits: Callable[[object], bool]


def _texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


TEXT = Kind("a text", lambda value: isinstance(value, str))
NUMBER = Kind("a number, 0 or more", _number)
LIST = Kind("a list of texts", _texts)
MAP = Kind("a map", lambda value: isinstance(value, Mapping))
MAPS = Kind(
    "a list of maps", lambda value: isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
)
FLAG_OR_LIST = Kind("true, false or a list of texts", lambda value: isinstance(value, bool) or _texts(value))
ROOTS = Kind(
    "a map of environments to lists of directories",
    lambda value: isinstance(value, Mapping) and all(_texts(paths) for paths in value.values()),
)
LIST_OR_MAP = Kind("a list or a map", lambda value: isinstance(value, list | Mapping))

#: Option -> type of its value. null means: not set. Flags are not listed: any value is true or false.
OPTIONS: Mapping[str, Kind] = {
    **dict.fromkeys(
        (
            *("cachedir", "conf_file", "decrypt_pillar_default", "decrypt_pillar_delimiter", "default_top"),
            *("extension_modules", "gpg_keydir", "hash_type", "host_root", "id", "pillar_source_merging_strategy"),
            *("pillarenv", "renderer", "saltenv", "state_top", "state_top_saltenv", "top_file_merging_strategy"),
        ),
        TEXT,
    ),
    **dict.fromkeys(("ext_pillar_timeout", "jinja_time_limit", "state_max_parallel"), NUMBER),
    **dict.fromkeys(
        (
            *("decrypt_pillar_renderers", "disabled_requisites", "env_order", "module_dirs", "on_demand_ext_pillar"),
            *("pillar_dirs", "render_dirs", "renderer_blacklist", "renderer_whitelist", "top_dirs"),
        ),
        LIST,
    ),
    **dict.fromkeys(
        ("global_state_conditions", "grains", "jinja_env", "jinja_sls_env", "master_tops", "nodegroups"), MAP
    ),
    "decrypt_pillar": LIST_OR_MAP,
    "ext_pillar": MAPS,
    "file_roots": ROOTS,
    "state_unknown_arguments": Kind("warn or error", lambda value: value in ("warn", "error")),
    "pillar_roots": ROOTS,
    "state_aggregate": FLAG_OR_LIST,
}


def type_errors(options: Mapping[str, object]) -> list[str]:
    """Return one sentence for each minion option in ``options`` whose value has the wrong type; [] without errors."""
    found = {name: (kind, options[name]) for name, kind in OPTIONS.items() if options.get(name) is not None}
    return [
        f"'{name}' must be {kind.words}, not the {type(value).__name__} {value!r}"
        for name, (kind, value) in found.items()
        if not kind.fits(value)
    ]

"""Look-up of a value in the files of an SDB profile, for the drivers ``yaml`` and ``json``."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.model.values import merge, traverse

log = logging.getLogger(__name__)


def value_of(ctx: Context, key: str, profile: Mapping[str, object], parse: Callable[[str], object]) -> object:
    """Return the value at the path ``key`` of the profile's files, merged in their order; None if there is none.

    ``parse`` reads a file's text and raises ValueError for a malformed one. Such a file raises CommandError; a missing
    file is logged and left out, as in Salt.
    """
    settings = profile.get("merge")
    how = settings if isinstance(settings, Mapping) else {}
    data: object = {}
    named = profile.get("files")
    for name in named if isinstance(named, list) else [named] if named else []:
        try:
            text = ctx.host.path(str(name)).read_text("utf-8")
        except FileNotFoundError:
            log.error("File '%s' not found (driver %s of the SDB)", name, profile["driver"])
            continue
        except (OSError, HostError, UnicodeDecodeError) as error:
            raise CommandError(f"{name}: cannot be read by the SDB driver {profile['driver']}: {error}") from error
        try:
            found = parse(text)
        except ValueError as error:
            raise CommandError(f"{name}: {error}") from error
        if not isinstance(found, Mapping):
            raise CommandError(f"{name}: the SDB driver {profile['driver']} needs a map, not {type(found).__name__}")
        data = merge(data, found, str(how.get("strategy", "smart")), lists=bool(how.get("merge_lists", False)))
    value = traverse(data, key, None)
    if profile.get("gpg"):
        # JSON is YAML, and the first renderer of the pipe reads it.
        value = ctx.templates.data(json.dumps(value), "yaml|gpg", {}, saltenv=ctx.saltenv, source=f"sdb value {key}")
    return value

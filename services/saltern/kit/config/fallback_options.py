"""The few options that are known where a configuration cannot be used: those by which a process says why.

A file that is no YAML, or holds an option that does not exist, still has lines; a variable still has its text. What else they say
is nobody's concern here: a process that stands on these options ends.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from saltern.kit.config.reading import ENV_PREFIX, config_directory
from saltern.kit.config.state_options import StateOptions
from saltern.kit.process.logs import LEVELS

#: Option -> what its value looks like.
_LOOKS: Mapping[str, str] = {
    "health_host": r"[0-9A-Za-z.:-]+",
    "health_port": r"\d{1,5}",
    "config_error_pause": r"\d{1,6}",
    "log_format": "text|json",
    "log_level": "|".join(LEVELS),
}

_LINE = re.compile(r"^(\w+):[ \t]*(['\"]?)([^'\"#\s]+)\2[ \t]*(?:#.*)?$", re.MULTILINE)


def spared_options(file_name: str, config_dir: str | None = None, env: Mapping[str, str] | None = None) -> StateOptions:
    """Probes, logs and ``config_error_pause`` as far as files (``file_name``: master or minion) and variables can be read."""
    given = os.environ if env is None else env
    values: dict[str, str] = {}
    for text in _texts(config_directory(config_dir, given), file_name):
        values |= {name: value for name, _, value in _LINE.findall(text)}
    values |= {
        name.removeprefix(ENV_PREFIX).lower(): value for name, value in given.items() if name.startswith(ENV_PREFIX)
    }
    usable = {name: values[name] for name, look in _LOOKS.items() if re.fullmatch(look, values.get(name, ""))}
    numbers = {name: int(value) for name, value in usable.items() if value.isdigit()}
    return StateOptions(**usable | numbers)


def _texts(directory: Path, file_name: str) -> Iterator[str]:
    # What cannot be read says nothing: that it cannot be read is what the process has to say.
    paths = [directory / file_name]
    with contextlib.suppress(OSError):
        paths += sorted((directory / f"{file_name}.d").glob("*.conf"))
    for path in paths:
        with contextlib.suppress(OSError):
            yield path.read_text("utf-8", errors="replace")

"""The static grains file: grains set by ``grains.setval`` and kept across restarts.

A YAML file beside the minion's configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from statecore.host.content import atomic_file
from statecore.model import yaml
from statecore.model.errors import CommandError


def path(opts: Mapping[str, object]) -> Path | None:
    """Return the path of the static grains file: the option ``grains_file``, else ``grains`` in the directory of
    ``conf_file``.

    None if neither option is set.
    """
    if opts.get("grains_file"):
        return Path(str(opts["grains_file"]))
    if not opts.get("conf_file"):
        return None
    configured = Path(str(opts["conf_file"]))
    return (configured if configured.is_dir() else configured.parent) / "grains"


def read(file: Path) -> dict[str, object]:
    """Return the grains in the static grains file; {} if there is no file.

    Raises CommandError if it cannot be read or is not a YAML map.
    """
    try:
        grains = yaml.load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, yaml.YamlFault) as error:
        raise CommandError(f"Unable to read existing grains file {file}: {error}") from error
    if grains is None:
        return {}
    if not isinstance(grains, dict):
        raise CommandError(f"The grains file {file} holds a {type(grains).__name__} where a map is expected")
    return grains


def write(file: Path, grains: Mapping[str, object]) -> None:
    """Replace the static grains file atomically, so that a reader never sees a partial file.

    Raises CommandError if it cannot be written.
    """
    text = yaml.dump(dict(grains), default_flow_style=False, allow_unicode=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_file.write(file, text)
    except OSError as error:
        raise CommandError(f"Unable to write to grains file at {file}: {error.strerror}") from error

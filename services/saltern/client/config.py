"""What ``salt.config`` is, for scripts: the options of the master's and the minion's configuration as maps."""

from __future__ import annotations

from pathlib import Path

from saltern.kit.config.master import as_opts, load_client
from saltern.kit.config.minion_options import load_minion
from saltern.kit.config.reading import ConfigError
from statecore.clients.errors import SaltConfigurationError


def master_config(path: str | None = None) -> dict[str, object]:
    """Return the options in the master's configuration file, with defaults. ``path``: the file or its directory; by
    default SALT_CONFIG_DIR, else /etc/salt. Raise SaltConfigurationError if it cannot be read.
    """
    try:
        return as_opts(load_client(_directory(path)))
    except ConfigError as error:
        raise SaltConfigurationError(str(error)) from error


def client_config(path: str | None = None) -> dict[str, object]:
    """Return the options that clients of the master use: those of ``master_config``."""
    return master_config(path)


def minion_config(path: str | None = None) -> dict[str, object]:
    """Return the options in the minion's configuration file, with defaults, as ``master_config`` does."""
    try:
        return as_opts(load_minion(_directory(path)))
    except ConfigError as error:
        raise SaltConfigurationError(str(error)) from error


def _directory(path: str | None) -> str | None:
    if not path:
        return None
    return path if Path(path).is_dir() else str(Path(path).parent)

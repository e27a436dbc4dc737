"""Reads the master's configuration. The minion's is read by ``minion_options``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from saltern.kit.config.master_options import ClientOptions, MasterOptions
from saltern.kit.config.reading import (
    ENV_PREFIX,
    ConfigError,
    as_opts,
    check_option,
    conf_file,
    config_directory,
    gpg_keys,
    notes_of,
    read_options,
    shown,
    with_notes,
)
from saltern.kit.config.state_options import StateOptions

__all__ = [
    "ENV_PREFIX",
    "ClientOptions",
    "ConfigError",
    "MasterOptions",
    "StateOptions",
    "as_opts",
    "check_master_option",
    "config_directory",
    "key_directory",
    "load_client",
    "load_master",
    "shown",
]


def load_master(config_dir: str | None = None, env: Mapping[str, str] | None = None) -> MasterOptions:
    """Return the options of a master role, read from the file ``master`` and the environment.

    ``gpg_keydir`` and ``conf_file`` are filled in. Raises ConfigError.
    """
    options = read_options(MasterOptions, "master", config_dir, os.environ if env is None else env)
    paths: dict[str, Any] = {
        "gpg_keydir": gpg_keys(options, config_dir, env),
        "conf_file": conf_file(options, "master", config_dir, env),
    }
    return with_notes(dataclasses.replace(options, **paths), notes_of(options))


def check_master_option(name: str, value: Any) -> None:
    """Check that the master's configuration may set option ``name`` to ``value``.

    Raises ConfigError where no such option exists or the value has another type.
    """
    check_option(MasterOptions, name, value)


def load_client(config_dir: str | None = None) -> ClientOptions:
    """Return the options of the operators' commands (salt, salt-key, salt-run), read from the master's file. Raises ConfigError."""
    return load_master(config_dir)


def key_directory(options: MasterOptions, role: str, config_dir: str | None = None) -> Path:
    """Return the directory that holds the key files of a master role, as ``saltern keygen`` writes it."""
    return Path(options.key_dir) if options.key_dir else config_directory(config_dir) / "keys" / role

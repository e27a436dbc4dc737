"""Reads the master's configuration. The minion's is read by ``minion_options``."""

from __future__ import annotations

import contextlib
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
    public_options,
    read_options,
    shown,
    with_notes,
)
from saltern.kit.config.redis_address import OPERATOR_LOGIN, own_redis_url, sentinel_url
from saltern.kit.config.state_options import StateOptions
from statecore.model.file_name import FileName

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
    "load_whole_master",
    "operators_redis",
    "public_options",
    "redis_socket",
    "redis_socket_url",
    "shown",
]


#: Name of the socket in ``redis_dir`` of the Redis that salt-master starts.
_REDIS_SOCKET = "redis.sock"

#: Option -> default of a master that runs on one machine: only minions come from elsewhere. No number of workers, and no URL of
#: Redis, is a choice of its own.
_ON_ONE_MACHINE: Mapping[str, Any] = {"internal_interface": "127.0.0.1", "worker_processes": 0}

#: Options whose value names a file of a role's key directory.
_FILE_NAMES = ("master_sign_key_name", "master_pubkey_signature")


def load_master(config_dir: str | None = None, env: Mapping[str, str] | None = None) -> MasterOptions:
    """Return the options of a master role, read from the file ``master`` and the environment.

    ``gpg_keydir`` and ``conf_file`` are filled in, and ``redis_url`` if salt-master runs a Redis of its own. Raises ConfigError.
    """
    options = _read(config_dir, env, {})
    if options.redis_url:
        return options
    url = redis_socket_url(options) if _is_socket(redis_socket(options)) else MasterOptions.redis_url
    return _replaced(options, redis_url=url)


def load_whole_master(config_dir: str | None = None, env: Mapping[str, str] | None = None) -> MasterOptions:
    """Return the options of ``salt-master``, which runs all roles on one machine. They are read as by ``load_master``,
    with other defaults.

    ``redis_url`` is empty if it is not set. Internal ports listen on loopback, unless ``internal_interface`` is set.
    The number of workers is ``worker_threads``, unless ``worker_processes`` is set. Raises ConfigError.
    """
    options = _read(config_dir, env, _ON_ONE_MACHINE)
    return _replaced(options, worker_processes=options.worker_processes or max(options.worker_threads, 1))


def redis_socket(options: MasterOptions) -> Path:
    """Return the path of the Unix socket of the Redis that salt-master itself starts."""
    return Path(options.redis_dir) / _REDIS_SOCKET


def redis_socket_url(options: MasterOptions) -> str:
    """Return the URL (``unix://...``) of the Redis that salt-master itself starts, for the option ``redis_url``."""
    return f"unix://{redis_socket(options)}"


def _read(config_dir: str | None, env: Mapping[str, str] | None, defaults: Mapping[str, Any]) -> MasterOptions:
    given = os.environ if env is None else env
    options = read_options(MasterOptions, "master", config_dir, given, {"redis_url": "", **defaults})
    for name in _FILE_NAMES:
        try:
            FileName(getattr(options, name))
        except ValueError as error:
            raise ConfigError(f"option '{name}' must name a file of the key directory: {error}") from error
    return _replaced(
        options,
        redis_url=sentinel_url(options) or options.redis_url,
        gpg_keydir=gpg_keys(options, config_dir, env),
        conf_file=conf_file(options, "master", config_dir, env),
    )


def _replaced(options: MasterOptions, **values: Any) -> MasterOptions:
    """Return a copy of the options with these values replaced. The copy keeps the notes (remarks about the
    configuration).
    """
    return with_notes(dataclasses.replace(options, **values), notes_of(options))


def _is_socket(path: Path) -> bool:
    # Others than the master's user may not look into the directory.
    with contextlib.suppress(OSError):
        return path.is_socket()
    return False


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


def operators_redis(options: MasterOptions, config_dir: str | None = None) -> str:
    """Return the URL of Redis for operators' tools: with the operators' login if the directory of keys has it, else
    ``redis_url``.
    """
    return own_redis_url(options.redis_url, config_directory(config_dir) / "keys" / OPERATOR_LOGIN)

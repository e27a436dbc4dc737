"""The Redis that ``salt-master`` starts if the configuration has no ``redis_url``: it listens on a Unix socket in a
directory of the master's user.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from saltern.kit.config.master import ConfigError, MasterOptions, redis_socket, redis_socket_url
from saltern.kit.keys.redis_logins import ONE_URL, USERS_FILE, complete_logins
from saltern.kit.process.redis_server import find_program, render_conf, version_of
from statecore.host.content import private_files
from statecore.host.content.guarded_tree import GuardedTree

_LOG = logging.getLogger("saltern.master")

#: Bytes of the longest path of a Unix socket.
_SOCKET_BYTES = 107

#: Name of the configuration file, in the directory of the data.
_CONF = "redis.conf"


def prepared(options: MasterOptions, keys: Path) -> Callable[[], int]:
    """Write the configuration file of the Redis that ``salt-master`` starts. Return the function that the child
    process calls to become redis-server.

    ``keys``: directory of the keys of all roles, which gets a user of Redis for each role.

    Raises ConfigError if there is no redis-server, or if the directory of its data cannot be used.
    """
    directory, socket = Path(options.redis_dir), redis_socket(options)
    program = find_program()
    if program is None:
        raise ConfigError(
            "redis_url is not set, and there is no redis-server on PATH to start: install Debian's `redis-server`, or set redis_url"
        )
    if len(os.fsencode(socket)) > _SOCKET_BYTES:
        raise ConfigError(f"redis_dir: {socket}: longer than {_SOCKET_BYTES} bytes, so no socket can have this path")
    # Minion keys and jobs are in it: who writes there commands the minions.
    listens = f"port 0\nunixsocket {socket.name}\nunixsocketperm 700\nloglevel warning"
    try:
        tree = GuardedTree(keys)
        if not tree.exists(ONE_URL):
            complete_logins(tree, redis_socket_url(options), version_of(program), move=True)
            listens += f'\naclfile "{(keys / USERS_FILE).absolute()}"'
    except (OSError, ValueError) as error:
        _LOG.warning("Redis has one user for all roles, because a user for each role cannot be made: %s", error)
    try:
        private_files.top(directory)
        private_files.write(directory / _CONF, render_conf("Written by salt-master at each start.", listens, "."))
    except OSError as error:
        raise ConfigError(
            f"redis_dir: {error.filename}: {error.strerror}; name a directory that the master's user may write to, or set redis_url"
        ) from error
    return partial(_become, program, directory)


def _become(program: Path, directory: Path) -> int:
    """Change to ``directory`` and replace this process by redis-server, which reads its configuration there. Raises
    OSError.
    """
    os.chdir(directory)
    os.umask(0o077)
    os.execv(program, [program.name, _CONF])

"""The files of a lab: options of master and minions, keys, Redis configuration, and ``env`` for the shell."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path

from saltern.kit.keys.keygen import make_keys
from saltern.kit.keys.redis_logins import OPERATOR_URL, complete_logins, login_at
from saltern.kit.process.redis_server import version_of
from saltern.lab.plan import LOOPBACK, Paths, Settings
from saltern.lab.redis_server import redis_url, render_redis_conf
from statecore.host.content import atomic_file, private_files
from statecore.host.content.guarded_tree import GuardedTree
from statecore.model import yaml

_HEADER = "# Written by `saltern lab up`; what you change here is changed back. Add options in {name}.d/*.conf\n"

#: Event tag -> reaction SLS, used if the state tree has the file.
_REACTIONS: Mapping[str, str] = {"site/refresh": "reactor/refresh.sls"}

#: User of the lab's API, who may do everything.
API_USER = "admin"

_API_CLIENTS = (
    *("local", "local_async", "local_batch", "local_subset"),
    *("runner", "runner_async", "wheel", "wheel_async"),
)

#: Seconds between two sign-ins of a minion whose key is not accepted yet.
_ACCEPTANCE_WAIT = 1


def master_options(settings: Settings, paths: Paths) -> dict[str, object]:
    """Return the configuration options of the lab's master roles and operator commands."""
    ports = {
        name: port for name, port in settings.ports.items() if name not in ("redis_port", "health_port", "api_port")
    }
    reactor = [
        {tag: [str(settings.tree / path)]} for tag, path in _REACTIONS.items() if (settings.tree / path).is_file()
    ]
    return {
        "interface": LOOPBACK,
        "internal_interface": LOOPBACK,
        **ports,
        "redis_url": redis_url(settings.ports["redis_port"]),
        "cachedir": str(paths.cache),
        "log_level": "info",
        **_roots(settings),
        **({"reactor": reactor} if reactor else {}),
        **(_api_options(settings, paths) if settings.api else {}),
    }


def _api_options(settings: Settings, paths: Paths) -> dict[str, object]:
    users = {"^filename": str(paths.users), "^filetype": "text", API_USER: [".*", "@runner", "@wheel", "@jobs"]}
    return {
        "external_auth": {"file": users},
        "netapi_enable_clients": list(_API_CLIENTS),
        "rest_cherrypy": {"host": LOOPBACK, "port": settings.ports["api_port"], "disable_ssl": True},
    }


def minion_options(settings: Settings, paths: Paths, minion: str) -> dict[str, object]:
    """Return the configuration options of one of the lab's minions."""
    return {
        "id": minion,
        "master": LOOPBACK,
        "master_port": settings.ports["ret_port"],
        "publish_port": settings.ports["publish_port"],
        "pki_dir": str(paths.pki_of(minion)),
        "cachedir": str(paths.cache_of(minion)),
        "host_root": str(paths.host_of(minion)),
        # Absolute, because salt-call reads this file from another directory.
        "grains_file": str(paths.etc_of(minion) / "grains"),
        "acceptance_wait_time": _ACCEPTANCE_WAIT,
        # For salt-call --local.
        **_roots(settings),
    }


def _roots(settings: Settings) -> dict[str, object]:
    return {
        "file_roots": {"base": [str(settings.tree / "salt")]},
        "pillar_roots": {"base": [str(settings.tree / "pillar")]},
    }


def render_env(settings: Settings, paths: Paths, programs: Path, redis: str) -> str:
    """Return the text of ``.lab/env``, which a POSIX shell sources to use the lab.

    ``programs``: directory of the ``salt`` command. ``redis``: the operators' URL of Redis.
    """
    values = {
        "SALT_CONFIG_DIR": str(paths.etc),
        "SALTERN_PUBLISH_PORT": str(settings.ports["publish_port"]),
        "SALTERN_RET_PORT": str(settings.ports["ret_port"]),
        "SALTERN_REDIS_URL": redis,
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in values.items()]
    return (
        f'# . {shlex.quote(str(paths.env))}\nexport PATH={shlex.quote(str(programs))}:"$PATH"\n'
        + "\n".join(lines)
        + "\n"
    )


def write_all(settings: Settings, paths: Paths, redis_server: Path, programs: Path) -> str:
    """Write the lab's missing and changed files and return the operators' URL of Redis. Keys, hosts and data are kept.
    Raise OSError.
    """
    # Mode 0700: the directory holds keys, Redis' password and the supervisor's socket.
    private_files.top(paths.root)
    for directory in (paths.etc, paths.run, paths.log, paths.redis_data):
        private_files.directory(directory)
    make_keys(paths.etc / "keys")
    keys = GuardedTree(paths.etc / "keys")
    complete_logins(keys, redis_url(settings.ports["redis_port"]), version_of(redis_server), move=True)
    redis, _, _ = login_at(keys, OPERATOR_URL)
    if settings.api:
        write(paths.users, f"{API_USER}:{_password(paths.api_password)}\n")
    write(paths.etc / "master", _yaml("master", master_options(settings, paths)))
    write(paths.etc / "redis.conf", render_redis_conf(settings.ports["redis_port"]))
    for index, minion in enumerate(settings.minions):
        make_host(paths.host_of(minion), minion, index)
        paths.etc_of(minion).mkdir(parents=True, exist_ok=True)
        write(paths.etc_of(minion) / "minion", _yaml("minion", minion_options(settings, paths, minion)))
    # salt-call, after `. .lab/env`, acts as the first minion.
    point(paths.etc / "minion", paths.etc_of(settings.minions[0]) / "minion")
    point(paths.run / "redis-server", redis_server)
    write(paths.env, render_env(settings, paths, programs, redis))
    return redis


def write(path: Path, content: str) -> None:
    """Write a file of the lab atomically, readable by its owner only. Raise OSError."""
    private_files.write(path, content)


def point(link: Path, target: Path) -> None:
    """Make ``link`` a symbolic link to ``target``, replacing any file. Raise OSError."""
    with atomic_file.replacement(link) as new:
        new.symlink_to(target)


def _password(path: Path) -> str:
    if not path.exists():
        write(path, secrets.token_hex(16) + "\n")
    return path.read_text("utf-8").strip()


def _yaml(name: str, options: Mapping[str, object]) -> str:
    return _HEADER.format(name=name) + yaml.dump(dict(options), sort_keys=False, allow_unicode=True)


#: Operating systems of the hosts in turn, so that states that depend on grains can be tried.
_SYSTEMS: tuple[Mapping[str, str], ...] = (
    {
        "etc/os-release": (
            'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n'
            'VERSION="12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n'
        ),
        "etc/debian_version": "12.0\n",
    },
    {
        "etc/os-release": (
            'PRETTY_NAME="Ubuntu 24.04 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\n'
            'VERSION="24.04 LTS (Noble Numbat)"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
        ),
        "etc/debian_version": "trixie/sid\n",
    },
)

_DIRECTORIES = ("etc", "home", "root", "run", "tmp", "usr", "var/lib", "var/log", "var/tmp", "var/www")


def host_files(name: str, index: int, uid: int, gid: int) -> dict[str, str]:
    """Return {path: content} of the files that a lab's simulated host has at its start, such as etc/passwd and etc/hosts.

    The user who runs the lab is one of the host's users.
    """
    users = ["root:x:0:0:root:/root:/bin/sh"]
    groups = ["root:x:0:"]
    if uid:
        users.append(f"lab:x:{uid}:{gid}:runs the lab:/home/lab:/bin/sh")
    if gid:
        groups.append(f"lab:x:{gid}:")
    return {
        "etc/hostname": f"{name}\n",
        "etc/hosts": f"127.0.0.1\tlocalhost {name}\n",
        "etc/passwd": "\n".join(users) + "\n",
        "etc/group": "\n".join(groups) + "\n",
        **_SYSTEMS[index % len(_SYSTEMS)],
    }


def make_host(root: Path, name: str, index: int) -> None:
    """Create the missing directories and files of a host that a lab's minion manages. Existing files are kept. Raise OSError."""
    for directory in _DIRECTORIES:
        (root / directory).mkdir(parents=True, exist_ok=True)
    for path, content in host_files(name, index, os.geteuid(), os.getegid()).items():
        if not (root / path).exists():
            (root / path).write_text(content, "utf-8")

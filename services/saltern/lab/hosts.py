"""Throwaway hosts: plain directory trees that minions manage instead of the machine.

A tree has the files that a host is known by (os-release, hostname, passwd, group), so grains differ, and no shell: states
that are files work, and the grain ``userland`` is ``none``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: Systems that the hosts call themselves, in turn: a tree that looks at grains has something to tell apart.
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
    """Path below the root -> content, for a host called ``name``. Whoever runs the minion is a user of the host."""
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
    """Makes what is missing of a host; what states have changed there stays. Raises OSError."""
    for directory in _DIRECTORIES:
        (root / directory).mkdir(parents=True, exist_ok=True)
    for path, content in host_files(name, index, os.geteuid(), os.getegid()).items():
        if not (root / path).exists():
            (root / path).write_text(content, "utf-8")

"""What a machine holds: its files, packages, users, services; and how two machines differ."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.hosts.machine import Machine

#: Type and mode, owner, group, and what it holds: a hash, the target of a link, or nothing.
Entry: TypeAlias = tuple[str, int, int, str]

#: Path on the machine -> what is there.
Files: TypeAlias = dict[str, Entry]

#: Not compared at all: logs, caches, state of daemons that holds times and random names (probes compare what counts of it).
_SKIPPED = re.compile(
    r"/tmp/.*|/var/tmp/.*|/var/log/.*|/var/cache/.*|/var/lib/(systemd|docker|containerd|postgresql/15/main|dbus)/.*"
    r"|.*/__pycache__(/.*)?|/var/lib/apt/(lists|periodic)/.*|/var/lib/needrestart/.*|/var/lib/dpkg/lock.*"
    r"|/etc/salt(/.*)?"
)

#: Compared by type, mode and owner only: random or dated by nature.
_RANDOM = re.compile(
    r"/etc/machine-id|/etc/ssh/ssh_host_.*|/etc/ssl/(certs/ssl-cert-snakeoil.pem|private/.*)|/etc/pki/example/.*\.(key|crt)"
    r"|/usr/local/share/ca-certificates/site/authority.crt|/etc/ssl/certs/(ca-certificates.crt|authority.pem)"
    r"|/etc/ssl/certs/[0-9a-f]{8}\.0|/srv/shop/code/\.git/(index|logs/.*|FETCH_HEAD)|/etc/.*/?\.updated|/var/\.updated"
    r"|/etc/docker/key.json|/etc/iptables/rules.v[46]|/var/spool/cron/crontabs/.*"
    r"|/etc/ld.so.cache|/var/lib/dpkg/status(-old)?|/etc/passwd-|/etc/shadow-?|/etc/group-|/etc/gshadow-"
)

#: Words of a random hash in the name of a file: /etc/ssl/certs/1a2b3c4d.0 of a certificate that was just made.
_HASHED = re.compile(r"(?<=/etc/ssl/certs/)[0-9a-f]{8}(?=\.0$)")

#: What of a machine is compared besides files: name -> shell command. Equal output is equal.
FACTS: Mapping[str, str] = {
    "packages": "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'",
    "marks": "apt-mark showmanual; apt-mark showhold",
    "users": "getent passwd; getent group; cut -d: -f1,3-8 /etc/shadow",
    "enabled units": "systemctl list-unit-files --no-legend --no-pager | sort",
    # Without systemd's own: some run or fail once at boot, whatever a formula does.
    "active units": "systemctl list-units --all --no-legend --plain --no-pager --type=service,timer,socket,mount | "
    "awk '!/^(systemd-|user-|run-|e2scrub)/ {print $1, $2, $3, $4}' | sort",
}


def files(root: Path) -> Files:
    """Every file below the root of a machine that is not on another file system, apart from logs and caches."""
    device = root.stat().st_dev
    found: Files = {}
    for path, known in _walk(root, "", device):
        name = _HASHED.sub("HASH", path)
        holds = ""
        if stat.S_ISLNK(known.st_mode):
            holds = str(Path(f"{root}{path}").readlink())
        elif stat.S_ISREG(known.st_mode):
            holds = hashlib.sha256(Path(f"{root}{path}").read_bytes()).hexdigest()[:16]
        if _RANDOM.fullmatch(path):
            holds = "random"
        found[name] = (stat.filemode(known.st_mode), known.st_uid, known.st_gid, holds)
    return found


def _walk(root: Path, directory: str, device: int) -> Iterator[tuple[str, os.stat_result]]:
    for entry in sorted(os.scandir(f"{root}{directory or '/'}"), key=lambda entry: entry.name):
        path = f"{directory}/{entry.name}"
        known = entry.stat(follow_symlinks=False)
        if known.st_dev != device or _SKIPPED.fullmatch(path):
            continue
        yield path, known
        if stat.S_ISDIR(known.st_mode):
            yield from _walk(root, path, device)


def facts(machine: Machine, probes: Mapping[str, str]) -> dict[str, list[str]]:
    """What the commands of FACTS and of ``probes`` print on a machine, as lines."""
    return {
        name: machine.sh(f"exec 2>/dev/null; {command}", None).splitlines()
        for name, command in {**FACTS, **probes}.items()
    }


def differences(left: Mapping[str, object], right: Mapping[str, object]) -> list[str]:
    """A line for each name whose values differ, with both."""
    return [
        f"{name}: {left.get(name)} / {right.get(name)}"
        for name in sorted({*left, *right})
        if left.get(name) != right.get(name)
    ]


def line_differences(left: Mapping[str, Sequence[str]], right: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each line that only one of two machines printed: ``packages: -line`` for the left one, + for the right one."""
    return [
        f"{name}: {sign}{line}"
        for name in sorted({*left, *right})
        for sign, these, those in (("-", left, right), ("+", right, left))
        for line in these.get(name, ())
        if line not in those.get(name, ())
    ]

"""Prints the locked entries (version and hashes) of the Python packages that one image needs.

    python3 docker/locked.py SET [requirements.lock]

The lock at the root holds everything, what development needs too; an image installs its SET of it and nothing else,
with ``--require-hashes --no-deps``. That the sets are whole is checked by tests/container/test_locked.py.
Runs on a bare Python: nothing is installed where it is called.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

#: services' extra ``tracing``: the option of that name, loaded where it is switched on.
TRACING = (
    "certifi",
    "charset-normalizer",
    "googleapis-common-protos",
    "idna",
    "opentelemetry-api",
    "opentelemetry-exporter-http-transport",
    "opentelemetry-exporter-otlp-common",
    "opentelemetry-exporter-otlp-proto-common",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-proto",
    "opentelemetry-sdk",
    "opentelemetry-semantic-conventions",
    "protobuf",
    "requests",
    "typing-extensions",
    "urllib3",
)

#: What a managed host runs. No redis: a managed host has no road to Redis. mako and jmespath are statecore's extra
#: ``templates``: whoever runs an image cannot add them.
MINION = (
    "cffi",
    "croniter",
    "cryptography",
    "jinja2",
    "jmespath",
    "mako",
    "markupsafe",
    "msgpack",
    "packaging",
    "pycparser",
    "python-dateutil",
    "pyyaml",
    "pyzmq",
    "tzdata",
    *TRACING,
)

#: services' extra ``eauth``: the workers check passwords.
EAUTH = ("bcrypt", "ldap3", "libpass", "pyasn1", "pyjwt", "python-pam")

#: services' extra ``api``. The API has its own image: workers have none of it.
API = ("anyio", "click", "h11", "idna", "starlette", "typing-extensions", "uvicorn", "websockets")

SETS: dict[str, tuple[str, ...]] = {
    "minion": MINION,
    # async-timeout: redis asks for it on Python before 3.11.3, which Debian bookworm has.
    # google-re2: services' extra ``master``.
    "master": (*MINION, *EAUTH, "async-timeout", "google-re2", "redis"),
    "api": tuple(dict.fromkeys((*MINION, *API))),
    "build": ("editables", "hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"),
}


def entries(lock: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(name, text) of every entry of a requirements file; text holds the lines with the hashes."""
    name = ""
    lines: list[str] = []
    for line in lock:
        start = re.match(r"([A-Za-z0-9._-]+)==", line)
        if start:
            if name:
                yield name, "".join(lines)
            name, lines = start[1].lower(), []
        if name and not line.lstrip().startswith("#"):
            lines.append(line)
    if name:
        yield name, "".join(lines)


def select(lock: Iterable[str], names: Iterable[str]) -> str:
    """The entries of ``names``. Raises KeyError naming those that the lock does not hold."""
    locked = dict(entries(lock))
    missing = sorted(set(names) - set(locked))
    if missing:
        raise KeyError(", ".join(missing))
    return "".join(locked[name] for name in names)


def main(arguments: list[str]) -> int:
    """Prints one set; 64 for wrong usage, 1 where the lock lacks a name."""
    if not arguments or arguments[0] not in SETS or len(arguments) > 2:
        sys.stderr.write(f"usage: locked.py {'|'.join(SETS)} [requirements.lock]\n")
        return 64
    path = Path(arguments[1] if len(arguments) > 1 else "requirements.lock")
    try:
        with path.open(encoding="utf-8") as lock:
            sys.stdout.write(select(lock, SETS[arguments[0]]))
    except KeyError as error:
        sys.stderr.write(f"{path} does not hold {error.args[0]}: `make lock` writes it anew\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

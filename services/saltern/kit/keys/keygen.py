"""The command ``saltern keygen``: makes the missing keys of all roles and keeps existing ones.

``DIR/<role>/`` holds only what that role needs: ``curve.secret`` and ``known/`` for the internal links, and ``master.pem``,
``master.pub`` and ``master.secret`` for the roles that speak to minions, and ``events.key`` for the roles that keep and obey
events in Redis. Give each directory to its role as a secret (a volume, a
Kubernetes Secret); only the operator's machine keeps all of DIR. ``--secrets`` prints the directories as Kubernetes Secrets.
``--in-cluster``, in a pod, creates these Secrets without directories. ``--redis-host`` makes a password for Redis, too:
``DIR/redis/url`` for the roles that use Redis, and ``DIR/redis/users.acl`` for Redis (directive ``aclfile``).
``--redis-tls`` makes certificates in ``DIR/redis/tls`` and a URL with TLS. ``saltern rotate`` replaces what was made here.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import zmq

from saltern.kit.config.master import ConfigError
from saltern.kit.keys import kubernetes, secrets
from saltern.kit.keys.certificates import AUTHORITY, AUTHORITY_KEY, CLIENT, SERVER, Authority
from saltern.kit.keys.events_key import EVENT_ROLES, EVENTS_KEY, KEY_BYTES, OLD_EVENTS_KEY
from saltern.kit.keys.master_keys import SECRET_BYTES
from saltern.kit.links.sockets import LINKS, NAMES, OPERATOR
from saltwire.errors import OwnFault
from saltwire.keys import MAX_BITS, MIN_BITS, PrivateKey
from statecore.host.content import atomic_file
from statecore.model.option_parser import OptionParser

#: Roles that need the master's own keys.
SPEAK_TO_MINIONS = ("publisher", "mworker")

#: Bits of the master's key: what a public key may have to be understood.
_SMALLEST, _LARGEST = MIN_BITS, MAX_BITS


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern keygen``: make the missing keys. Return exit code 0, or 1 when the directory cannot be written."""
    parser = OptionParser(prog="saltern keygen", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="directory that the keys are put into")
    where.add_argument("--in-cluster", action="store_true", help="make Secrets of this pod's namespace, by its token")
    parser.add_argument("--keysize", type=_keysize, default=2048, help="bits of the master's key (default 2048)")
    parser.add_argument("--owner", type=_owner, default=None, metavar="UID:GID", help="numeric owner of the key files")
    parser.add_argument(
        "--operator",
        action="append",
        type=_operator,
        default=[],
        metavar="NAME",
        help="a key for an operator, in DIR/NAME, who may do what publisher_acl says; the reqserver and\n"
        "eventpublisher know it a second after they have the new DIR/<role>/known",
    )
    parser.add_argument(
        "--secrets", action="store_true", help="print DIR as Secrets, for `kubectl apply -f -` or for sealing"
    )
    parser.add_argument("--namespace", default="saltern", help="of the printed Secrets (default saltern)")
    parser.add_argument(
        "--redis-host",
        default="",
        metavar="HOST",
        help="make a password for the Redis at HOST too: files in DIR/redis; with --secrets or --in-cluster\n"
        "the Secret saltern-redis",
    )
    parser.add_argument(
        "--new-events-key",
        action="store_true",
        help="replace the key of events in Redis; roles still accept the one before, so no event is lost",
    )
    parser.add_argument(
        "--redis-tls",
        action="store_true",
        help="with --out and --redis-host: make an authority and certificates for TLS with Redis, in DIR/redis/tls",
    )
    arguments = parser.parse_args(argv)
    if arguments.redis_tls and not (arguments.out and arguments.redis_host and not arguments.secrets):
        parser.error("--redis-tls goes with --out and --redis-host")
    if arguments.operator and arguments.in_cluster:
        parser.error("--operator goes with --out: an operator's key belongs to no pod")
    try:
        if arguments.in_cluster:
            make = partial(make_keys, keysize=arguments.keysize, new_events_key=arguments.new_events_key)
            done = secrets.into_cluster(kubernetes.Cluster.of_this_pod(), make, arguments.redis_host)
            sys.stdout.write("".join(f"{line}\n" for line in done) or "all secrets are there already\n")
            return 0
        made = make_keys(
            arguments.out,
            keysize=arguments.keysize,
            owner=arguments.owner,
            operators=arguments.operator,
            new_events_key=arguments.new_events_key,
        )
        if arguments.secrets:
            sys.stdout.write(_printed(arguments.out, arguments.namespace, arguments.redis_host))
            return 0
        if arguments.redis_host:
            if arguments.redis_tls:
                made += make_redis_tls(arguments.out, [arguments.redis_host], owner=arguments.owner)
            made += make_redis_login(arguments.out, arguments.redis_host, owner=arguments.owner)
    except kubernetes.ClusterError as error:
        sys.stderr.write(f"saltern keygen: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"saltern keygen: {error.filename}: {error.strerror}\n")
        return 1
    except ConfigError as error:
        sys.stderr.write(f"saltern keygen: {error}\n")
        return 1
    sys.stdout.write("".join(f"made {path}\n" for path in made) or f"all keys are in {arguments.out} already\n")
    return 0


def _printed(directory: Path, namespace: str, redis_host: str) -> str:
    """Return the Kubernetes Secrets of all key directories as a JSON list, which is also valid YAML."""
    content = secrets.of_directory(directory)
    if redis_host:
        content[secrets.REDIS] = secrets.of_redis(redis_host)
    items = [secrets.manifest(name, data, namespace) for name, data in content.items()]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1) + "\n"


class _Files:
    """Writes key files. A file is readable by its owner alone from the first byte, and either complete or absent."""

    def __init__(self) -> None:
        self.made: list[Path] = []

    def put(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_file.write(path, content, 0o600)
        self.made.append(path)

    def create(self, path: Path, content: bytes) -> None:
        """Write a key file and its directory, and add its path to ``made``. A file that exists already is kept."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if atomic_file.create(path, content, 0o600):
            self.made.append(path)


def make_keys(
    directory: Path,
    *,
    keysize: int = 2048,
    owner: tuple[int, int] | None = None,
    operators: Sequence[str] = (),
    new_events_key: bool = False,
) -> list[Path]:
    """Make the missing key files of all roles below ``directory`` and return the paths of the new files. Existing
    files are kept.

    ``operators``: names of people who get a key of their own. ``keysize``: bits of the master's RSA key. ``owner``:
    (uid, gid) that all files get; None: no change. ``new_events_key``: replace the key of events; the replaced key is
    kept as ``events.key.old``. Raises OSError, and ConfigError for a malformed key file.
    """
    files = _Files()
    publics = _curve_keys(directory, files)
    for name in operators:
        _operator_keys(directory, name, publics, files)
    _master_keys(directory, keysize, files)
    _events_key(directory, files, renew=new_events_key)
    if owner is not None:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, *owner)
    return files.made


def make_redis_login(directory: Path, host: str, *, owner: tuple[int, int] | None = None) -> list[Path]:
    """Make the missing files of ``directory/redis`` and return the paths of the new or changed files.

    ``url`` holds the password and is readable by its owner alone; an existing ``url`` is kept, with its host. ``users.acl``
    is derived from ``url`` and holds only the password's hash; all users may read it, because Redis runs as a user of its
    own. Raises OSError, and ConfigError for a ``url`` without a password.
    """
    files = _Files()
    place = directory / "redis"
    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    url, users = place / "url", place / "users.acl"
    if not url.exists():
        files.create(url, secrets.of_redis(host, tls=_tls_files(place))["url"])
    password = urlsplit(url.read_text(encoding="utf-8").strip()).password
    if not password:
        raise ConfigError(f"{url}: no URL of Redis with a password; remove it to have a new password made")
    content = secrets.redis_users(password)
    if not users.exists() or users.read_bytes() != content:
        atomic_file.write(users, content, 0o644, exact=True)
        files.made.append(users)
    if owner is not None:
        for path in (place, url, users):
            os.chown(path, *owner)
    return files.made


def make_redis_tls(directory: Path, hosts: Sequence[str], *, owner: tuple[int, int] | None = None) -> list[Path]:
    """Make the missing files of ``directory/redis/tls`` and return the paths of the new files.

    ``hosts``: names and addresses by which the roles reach Redis; the roles compare them with Redis' certificate.
    Raises OSError, and ConfigError for a malformed authority.
    """
    files = _Files()
    place = directory / "redis" / "tls"
    if not (place / AUTHORITY_KEY).exists():
        authority = Authority.make()
        files.put(place / AUTHORITY, authority.pem)
        files.put(place / AUTHORITY_KEY, authority.key_pem)
    authority = Authority.read((place / AUTHORITY_KEY).read_bytes(), (place / AUTHORITY).read_bytes())
    for name, make in ((SERVER, partial(authority.server, hosts)), (CLIENT, authority.client)):
        if not (place / name).exists():
            files.put(place / name, make())
    if owner is not None:
        for path in (place, *place.iterdir()):
            os.chown(path, *owner)
    return files.made


def _tls_files(place: Path) -> tuple[str, str] | None:
    """Return the paths (authority's certificate, roles' certificate) for TLS to Redis; None if there are no such files."""
    files = place.absolute() / "tls"
    return (str(files / AUTHORITY), str(files / CLIENT)) if (files / CLIENT).exists() else None


def _curve_keys(directory: Path, files: _Files) -> dict[str, bytes]:
    publics = {name: _own_key(directory, name, files) for name in NAMES}
    for name in NAMES:
        for other, public in publics.items():
            _make_known(directory, name, other, public, files)
    return publics


def _operator_keys(directory: Path, name: str, publics: Mapping[str, bytes], files: _Files) -> None:
    """Write an operator's key directory, and the operator's public key into the directories of the servers that admit operators."""
    public = _own_key(directory, name, files)
    for server in sorted({row.server for row in LINKS.values() if row.operators}):
        _make_known(directory, name, server, publics[server], files)
        _make_known(directory, server, name, public, files)


def _own_key(directory: Path, name: str, files: _Files) -> bytes:
    """Return the public key of a role or operator; first make the secret key if it is missing."""
    secret = directory / name / "curve.secret"
    if not secret.exists():
        files.create(secret, zmq.curve_keypair()[1] + b"\n")
    return _public_of(secret)


def _make_known(directory: Path, name: str, other: str, public: bytes, files: _Files) -> None:
    known = directory / name / "known" / f"{other}.pub"
    # While a key is replaced there are two.
    if not known.exists() or public not in known.read_bytes().split():
        files.put(known, public + b"\n")


def _master_keys(directory: Path, keysize: int, files: _Files) -> None:
    # If two processes make the keys at once, the first file in this role's directory counts.
    decides = directory / SPEAK_TO_MINIONS[0]
    if _held(directory, "master.pem", SPEAK_TO_MINIONS) is None:
        files.create(decides / "master.pem", PrivateKey.generate(keysize).to_pem())
    if _held(directory, "master.secret", SPEAK_TO_MINIONS) is None:
        files.create(decides / "master.secret", os.urandom(SECRET_BYTES))
    pem, secret = (
        _held(directory, name, SPEAK_TO_MINIONS) or decides / name for name in ("master.pem", "master.secret")
    )
    contents = {
        "master.pem": pem.read_bytes(),
        "master.pub": (_read_pem(pem).public.pem + "\n").encode(),
        "master.secret": secret.read_bytes(),
    }
    _give(directory, SPEAK_TO_MINIONS, contents, files)


def _events_key(directory: Path, files: _Files, *, renew: bool) -> None:
    """Write the key of events into the directories of the roles that share it. If no directory has the key, make it.

    ``renew``: make a new key, and keep the replaced key as ``events.key.old``.
    """
    held, old = (_held(directory, name, EVENT_ROLES) for name in (EVENTS_KEY, OLD_EVENTS_KEY))
    if held is None:
        # If two processes make the key at once, the first file counts.
        held = directory / EVENT_ROLES[0] / EVENTS_KEY
        files.create(held, os.urandom(KEY_BYTES))
    contents = {EVENTS_KEY: held.read_bytes()} | ({OLD_EVENTS_KEY: old.read_bytes()} if old is not None else {})
    if renew:
        contents = {OLD_EVENTS_KEY: contents[EVENTS_KEY], EVENTS_KEY: os.urandom(KEY_BYTES)}
    _give(directory, EVENT_ROLES, contents, files)


def _give(directory: Path, roles: Sequence[str], contents: Mapping[str, bytes], files: _Files) -> None:
    """Write files ({name: content}) into the key directories of these roles. Files with the same content are left alone."""
    for role in roles:
        for name, content in contents.items():
            path = directory / role / name
            if not path.exists() or path.read_bytes() != content:
                files.put(path, content)


def _operator(text: str) -> str:
    if not OPERATOR.fullmatch(text) or text.lower() in NAMES:
        raise argparse.ArgumentTypeError(
            f"'{text}' cannot be an operator: letters, digits, '.', '-' and '_' (32 at most, the first a letter),"
            f" and no role ({', '.join(NAMES)})"
        )
    return text


def _held(directory: Path, name: str, roles: Sequence[str]) -> Path | None:
    """Return the path of a key file that these roles share, in the first role's directory that has it; None if no
    directory has it.

    It is copied into directories that lack it. Raise ConfigError if two directories have different files of
    this name.
    """
    held = [path for role in roles if (path := directory / role / name).exists()]
    if len({path.read_bytes() for path in held}) > 1:
        raise ConfigError(f"{' and '.join(map(str, held))} differ; remove the one that the master does not use")
    return held[0] if held else None


def _public_of(secret: Path) -> bytes:
    try:
        return zmq.curve_public(secret.read_bytes().strip())
    except (ValueError, zmq.ZMQError) as error:
        raise ConfigError(f"{secret}: not a CurveZMQ key: {error}; remove it to have a new one made") from error


def _read_pem(path: Path) -> PrivateKey:
    try:
        return PrivateKey.from_pem(path.read_bytes())
    except OwnFault as error:
        raise ConfigError(f"{path}: {error}; put the master's key back, minions know the master by it") from error


def _keysize(text: str) -> int:
    bits = int(text)
    if not _SMALLEST <= bits <= _LARGEST:
        raise argparse.ArgumentTypeError(f"must be {_SMALLEST} to {_LARGEST} bits, not {bits}")
    return bits


def _owner(text: str) -> tuple[int, int]:
    user, _, group = text.partition(":")
    try:
        return int(user), int(group or user)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be UID:GID in numbers, not '{text}'") from error

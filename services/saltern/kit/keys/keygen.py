"""The command ``saltern keygen``: makes the missing keys of all roles and keeps existing ones.

``DIR/<role>/`` holds only what that role needs: ``curve.secret`` and ``known/`` for the internal links, and ``master.pem``,
``master.pub`` and ``master.secret`` for the roles that speak to minions, and ``events.key`` for the roles that keep and obey
events in Redis. Give each directory to its role as a secret (a volume, a
Kubernetes Secret); only the operator's machine keeps all of DIR. ``--secrets`` prints the directories as Kubernetes Secrets.
``--in-cluster``, in a pod, creates these Secrets without directories.

``--redis-host`` makes a user of Redis for each role: ``DIR/ROLE/redis.url`` for the role, ``DIR/redis-operator/redis.url`` for
operators, and ``DIR/redis/users.acl`` for Redis (directive ``aclfile``). ``--redis-tls`` makes certificates in ``DIR/redis/tls``
and URLs with TLS. ``saltern rotate`` replaces what was made here.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import zmq

from saltern.kit.config.master import ConfigError
from saltern.kit.keys import kubernetes, redis_logins, secrets
from saltern.kit.keys.certificates import AUTHORITY, AUTHORITY_KEY, CLIENT, SERVER, Authority
from saltern.kit.keys.events_key import EVENT_ROLES, EVENTS_KEY, KEY_BYTES, OLD_EVENTS_KEY
from saltern.kit.keys.master_keys import SECRET_BYTES
from saltern.kit.links.sockets import LINKS, NAMES, OPERATOR
from saltwire.errors import OwnFault
from saltwire.keys import MAX_BITS, MIN_BITS, PrivateKey
from statecore.host.content.guarded_tree import GuardedTree, Owner
from statecore.model.option_parser import OptionParser

_LOG = logging.getLogger("saltern.keys")

#: Files for Redis, below the directory of all keys.
_REDIS = "redis"
_TLS = f"{_REDIS}/tls"

#: Roles that need the master's own keys.
SPEAK_TO_MINIONS = ("publisher", "mworker")

#: File that roles share -> the roles.
_SHARED: Mapping[str, Sequence[str]] = {
    "master.pem": SPEAK_TO_MINIONS,
    "master.secret": SPEAK_TO_MINIONS,
    EVENTS_KEY: EVENT_ROLES,
    OLD_EVENTS_KEY: EVENT_ROLES,
}

#: Bits of the master's key: what a public key may have to be understood.
_SMALLEST, _LARGEST = MIN_BITS, MAX_BITS


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern keygen``: make the missing keys. Return exit code 0, or 1 when the directory cannot be written."""
    parser = OptionParser(prog="saltern keygen", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="DIR", help="directory that the keys are put into")
    where.add_argument("--in-cluster", action="store_true", help="make Secrets of this pod's namespace, by its token")
    parser.add_argument("--keysize", type=_keysize, default=2048, help="bits of the master's key (default 2048)")
    parser.add_argument(
        "--owner", type=owner_ids, default=None, metavar="UID:GID", help="numeric owner of the key files"
    )
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
        help="HOST, HOST:PORT or a URL: make a user of Redis for each role and for operators, too: DIR/ROLE/redis.url,\n"
        "DIR/redis-operator/redis.url, and DIR/redis/users.acl for Redis; with --secrets or --in-cluster also the\n"
        "Secret saltern-redis",
    )
    parser.add_argument(
        "--redis-version",
        type=_version,
        default=redis_logins.SHIPPED_VERSION,
        metavar="MAJOR.MINOR",
        help="of Redis, whose rules users.acl has to follow (default 7.0; 6.2 knows no keys that a user may only read)",
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
        if arguments.redis_host:
            if arguments.redis_tls:
                made += make_redis_tls(arguments.out, [arguments.redis_host], owner=arguments.owner)
            made += make_redis_login(
                arguments.out, arguments.redis_host, owner=arguments.owner, version=arguments.redis_version
            )
        if arguments.secrets:
            sys.stdout.write(_printed(arguments.out, arguments.namespace, arguments.redis_host))
            return 0
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
        content[secrets.REDIS] = secrets.of_redis(directory)
    items = [secrets.manifest(name, data, namespace) for name, data in content.items()]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1) + "\n"


class _Files:
    """The key files below one directory. A file is readable by its owner alone from the first byte, and either complete or absent.

    The directory may belong to the roles' user, who may have planted links in it: ``GuardedTree`` refuses them.
    """

    def __init__(self, directory: Path, owner: tuple[int, int] | None) -> None:
        self.directory = directory
        self.tree = GuardedTree(directory, None if owner is None else Owner(*owner))
        self.made: list[Path] = []

    def put(self, name: str, content: bytes, mode: int = 0o600) -> None:
        """Write a key file and its directory, and add its path to ``made``."""
        self.tree.put(name, content, mode)
        self.made.append(self.directory / name)

    def create(self, name: str, content: bytes) -> None:
        """Write a key file and its directory, and add its path to ``made``. A file that exists already is kept."""
        if self.tree.create(name, content):
            self.made.append(self.directory / name)

    def give(self) -> None:
        """Give files that root made before to the owner, and log the files that root does not give."""
        for path in self.tree.give():
            _LOG.warning("%s: not given to the roles' user, because it lies in a directory of another user", path)


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
    (uid, gid) that all files get; None: new files of root get the owner of their directory. ``new_events_key``: replace
    the key of events; the replaced key is kept as ``events.key.old``. Raises OSError, and ConfigError for a malformed key
    file.
    """
    files = _Files(directory, owner)
    files.tree.make_top()
    publics = _curve_keys(files)
    for name in operators:
        _operator_keys(name, publics, files)
    _master_keys(keysize, files)
    _events_key(files, renew=new_events_key)
    files.give()
    return files.made


def check_keys(directory: Path) -> None:
    """Check that ``make_keys`` can use the files that are below ``directory`` already. Write nothing. Raises OSError, and
    ConfigError for a malformed key file.
    """
    files = _Files(directory, None)
    for name in NAMES:
        if files.tree.exists(f"{name}/curve.secret"):
            _public_of(files, f"{name}/curve.secret")
    for name, roles in _SHARED.items():
        _held(files, name, roles)


def give_keys(directory: Path, owner: tuple[int, int]) -> None:
    """Give the keys that root brought below ``directory`` to ``owner`` (uid, gid). Raises OSError for a file that is not given."""
    _Files(directory, owner).give()


def make_redis_login(
    directory: Path,
    host: str,
    *,
    owner: tuple[int, int] | None = None,
    version: tuple[int, int] = redis_logins.SHIPPED_VERSION,
) -> list[Path]:
    """Make the missing logins for Redis below ``directory``, and Redis' file of users, and return the paths of the new or
    changed files (``redis_logins.complete_logins``).

    ``host``: HOST, HOST:PORT or a URL. ``version``: of Redis (major, minor). All users may read ``redis/users.acl``, which holds
    hashes, because Redis runs as a user of its own. Raises OSError, and ConfigError for a URL without a password.
    """
    files = _Files(directory, owner)
    files.tree.make_directory(_REDIS, 0o755)
    names = redis_logins.complete_logins(files.tree, redis_logins.address_of(host, _tls_files(files)), version)
    files.made += [directory / name for name in names]
    files.give()
    return files.made


def make_redis_tls(directory: Path, hosts: Sequence[str], *, owner: tuple[int, int] | None = None) -> list[Path]:
    """Make the missing files of ``directory/redis/tls`` and return the paths of the new files.

    ``hosts``: names and addresses by which the roles reach Redis; the roles compare them with Redis' certificate.
    Raises OSError, and ConfigError for a malformed authority.
    """
    files = _Files(directory, owner)
    # Redis, which reads its certificate there, may be a user of its own.
    files.tree.make_directory(_REDIS, 0o755)
    if not files.tree.exists(f"{_TLS}/{AUTHORITY_KEY}"):
        authority = Authority.make()
        files.put(f"{_TLS}/{AUTHORITY}", authority.pem)
        files.put(f"{_TLS}/{AUTHORITY_KEY}", authority.key_pem)
    authority = Authority.read(files.tree.read(f"{_TLS}/{AUTHORITY_KEY}"), files.tree.read(f"{_TLS}/{AUTHORITY}"))
    for name, make in ((SERVER, partial(authority.server, hosts)), (CLIENT, authority.client)):
        if not files.tree.exists(f"{_TLS}/{name}"):
            files.put(f"{_TLS}/{name}", make())
    files.give()
    return files.made


def _tls_files(files: _Files) -> tuple[str, str] | None:
    """Return the paths (authority's certificate, roles' certificate) for TLS to Redis; None if there are no such files."""
    place = files.directory.absolute() / _TLS
    return (str(place / AUTHORITY), str(place / CLIENT)) if files.tree.exists(f"{_TLS}/{CLIENT}") else None


def _curve_keys(files: _Files) -> dict[str, bytes]:
    publics = {name: _own_key(name, files) for name in NAMES}
    for name in NAMES:
        for other, public in publics.items():
            _make_known(name, other, public, files)
    return publics


def _operator_keys(name: str, publics: Mapping[str, bytes], files: _Files) -> None:
    """Write an operator's key directory, and the operator's public key into the directories of the servers that admit operators."""
    public = _own_key(name, files)
    for server in sorted({row.server for row in LINKS.values() if row.operators}):
        _make_known(name, server, publics[server], files)
        _make_known(server, name, public, files)


def _own_key(name: str, files: _Files) -> bytes:
    """Return the public key of a role or operator; first make the secret key if it is missing."""
    secret = f"{name}/curve.secret"
    if not files.tree.exists(secret):
        files.create(secret, zmq.curve_keypair()[1] + b"\n")
    return _public_of(files, secret)


def _make_known(name: str, other: str, public: bytes, files: _Files) -> None:
    known = f"{name}/known/{other}.pub"
    # While a key is replaced there are two.
    if not files.tree.exists(known) or public not in files.tree.read(known).split():
        files.put(known, public + b"\n")


def _master_keys(keysize: int, files: _Files) -> None:
    # If two processes make the keys at once, the first file in this role's directory counts.
    decides = SPEAK_TO_MINIONS[0]
    if _held(files, "master.pem", SPEAK_TO_MINIONS) is None:
        files.create(f"{decides}/master.pem", PrivateKey.generate(keysize).to_pem())
    if _held(files, "master.secret", SPEAK_TO_MINIONS) is None:
        files.create(f"{decides}/master.secret", os.urandom(SECRET_BYTES))
    pem, secret = (
        _held(files, name, SPEAK_TO_MINIONS) or f"{decides}/{name}" for name in ("master.pem", "master.secret")
    )
    contents = {
        "master.pem": files.tree.read(pem),
        "master.pub": (_read_pem(files, pem).public.pem + "\n").encode(),
        "master.secret": _random_bytes(files, secret, SECRET_BYTES),
    }
    _give(SPEAK_TO_MINIONS, contents, files)


def _events_key(files: _Files, *, renew: bool) -> None:
    """Write the key of events into the directories of the roles that share it. If no directory has the key, make it.

    ``renew``: make a new key, and keep the replaced key as ``events.key.old``.
    """
    held, old = (_held(files, name, EVENT_ROLES) for name in (EVENTS_KEY, OLD_EVENTS_KEY))
    if held is None:
        # If two processes make the key at once, the first file counts.
        held = f"{EVENT_ROLES[0]}/{EVENTS_KEY}"
        files.create(held, os.urandom(KEY_BYTES))
    contents = {EVENTS_KEY: _random_bytes(files, held, KEY_BYTES)}
    if old is not None:
        contents[OLD_EVENTS_KEY] = _random_bytes(files, old, KEY_BYTES)
    if renew:
        contents = {OLD_EVENTS_KEY: contents[EVENTS_KEY], EVENTS_KEY: os.urandom(KEY_BYTES)}
    _give(EVENT_ROLES, contents, files)


def _give(roles: Sequence[str], contents: Mapping[str, bytes], files: _Files) -> None:
    """Write files ({name: content}) into the key directories of these roles. Files with the same content are left alone."""
    for role in roles:
        for name, content in contents.items():
            path = f"{role}/{name}"
            if not files.tree.exists(path) or files.tree.read(path) != content:
                files.put(path, content)


def _operator(text: str) -> str:
    if not OPERATOR.fullmatch(text) or text.lower() in NAMES:
        raise argparse.ArgumentTypeError(
            f"'{text}' cannot be an operator: letters, digits, '.', '-' and '_' (32 at most, the first a letter),"
            f" and no role ({', '.join(NAMES)})"
        )
    return text


def _held(files: _Files, name: str, roles: Sequence[str]) -> str | None:
    """Return the name of a key file that these roles share, in the first role's directory that has it; None if no
    directory has it.

    It is copied into directories that lack it. Raise ConfigError if two directories have different files of
    this name.
    """
    held = [path for role in roles if files.tree.exists(path := f"{role}/{name}")]
    if len({files.tree.read(path) for path in held}) > 1:
        paths = " and ".join(str(files.directory / path) for path in held)
        raise ConfigError(f"{paths} differ; remove the one that the master does not use")
    return held[0] if held else None


def _random_bytes(files: _Files, name: str, size: int) -> bytes:
    """Return the content of a key file of random bytes. Raise ConfigError if it does not have ``size`` bytes: what is
    copied to other roles must be a key.
    """
    content = files.tree.read(name)
    if len(content) != size:
        raise ConfigError(f"{files.directory / name}: must hold {size} bytes, holds {len(content)}")
    return content


def _public_of(files: _Files, secret: str) -> bytes:
    try:
        return zmq.curve_public(files.tree.read(secret).strip())
    except (ValueError, zmq.ZMQError) as error:
        path = files.directory / secret
        raise ConfigError(f"{path}: not a CurveZMQ key: {error}; remove it to have a new one made") from error


def _read_pem(files: _Files, name: str) -> PrivateKey:
    try:
        return PrivateKey.from_pem(files.tree.read(name))
    except OwnFault as error:
        path = files.directory / name
        raise ConfigError(f"{path}: {error}; put the master's key back, minions know the master by it") from error


def _keysize(text: str) -> int:
    bits = int(text)
    if not _SMALLEST <= bits <= _LARGEST:
        raise argparse.ArgumentTypeError(f"must be {_SMALLEST} to {_LARGEST} bits, not {bits}")
    return bits


def owner_ids(text: str) -> tuple[int, int]:
    """Return (uid, gid) of the text ``UID:GID`` or ``UID``. Raises ArgumentTypeError for any other text."""
    user, _, group = text.partition(":")
    try:
        return int(user), int(group or user)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be UID:GID in numbers, not '{text}'") from error


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    try:
        return int(major), int(minor or 0)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be MAJOR.MINOR in numbers, not '{text}'") from error

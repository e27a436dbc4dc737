"""Fuzz targets: each door of a role, and each parser of what a peer, a tree or an archive holds.

A target takes bytes and returns. It may raise only the errors that its code documents (they are caught here). Any other
exception, a hang and a growth of memory is a finding. ``tests/fuzz/run.py`` lets libFuzzer choose the bytes; ``test_corpus.py``
plays the kept ones.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from masterstore import values
from masterstore.errors import StoreCorrupt
from masterstore.record_mac import PUBLICATION, Records
from saltern.kit.command.arguments import parse_arguments, read_arguments
from saltern.kit.keys.master_keys import record_mac
from saltern.kit.links import event_bus
from saltern.mworker.commands.received_files import FileRefused, store
from saltern.reqserver import clear_header
from saltwire.crypticle import Crypticle, SerialGate
from saltwire.envelope import open_request, parse_request
from saltwire.errors import OwnFault, PeerFault
from saltwire.file_transfer import Download, MissingFile
from saltwire.handshake import SignIn, parse_sign_in
from saltwire.keys import PrivateKey, PublicKey, clean_pem, derive_key_string
from saltwire.pack import packb, unpack_event, unpackb
from saltwire.pillar_transfer import open_pillar
from saltwire.publication import open_job
from statecore.compile import compile_high
from statecore.host.host import Host
from statecore.host.rooted_path import RootedPath, lexists
from statecore.model import yaml
from statecore.model.errors import CommandError, HostError, StatecoreError, TargetError
from statecore.sources.tree_roots import TreeRoot
from statecore.system.hostfiles import archives
from statecore.targeting.match import MATCHERS, Subject, compile_target
from tests.fuzz.growth import grows, shape_of
from tests.fuzz.parsers import GROUPS, PARSERS

Target = Callable[[bytes], None]

_KEY = Crypticle(derive_key_string(b"k" * 32, purpose="fuzz", epoch=1))
_NONCE: Final = "0123456789abcdef" * 2


@cache
def _private() -> PrivateKey:
    return PrivateKey.from_pem((Path(__file__).parent / "key.pem").read_bytes())


@cache
def _public() -> PublicKey:
    return _private().public


# ------------------------------------------------------------------------------------------------------------ the wire


def request(data: bytes) -> None:
    """Port 4506: a request as strangers send it, before and after its decryption."""
    clear_header.of_minion(data)
    with contextlib.suppress(PeerFault):
        envelope = parse_request(data)
        if envelope.enc == "clear":
            if isinstance(envelope.load, dict):
                parse_sign_in(envelope.load, version=envelope.version)
        else:
            _open(data)


def sealed_request(data: bytes) -> None:
    """Port 4506: a request that an accepted minion has encrypted; the bytes are its load."""
    sealed = _KEY.encrypt(b"pickle::" + data)
    _open(packb({"enc": "aes", "load": sealed, "version": 3, "id": "web1"}))


def _open(payload: bytes) -> None:
    with contextlib.suppress(PeerFault):
        open_request(
            parse_request(payload),
            session_keys=lambda _: [_KEY],
            shared_keys=[_KEY],
            public_pem_of=lambda _: _public().pem,
            now=1_700_000_000.0,
            ttl=60,
            minimum_version=2,
            tok_cache={},
        )


def operator_request(data: bytes) -> None:
    """Port 4507: a request of an operator."""
    clear_header.of_operator(data)
    with contextlib.suppress(PeerFault):
        unpackb(data)


def sign_in_reply(data: bytes) -> None:
    """The master's answer to a sign-in, as a minion reads it."""
    SignIn("web1", _private(), None).feed(data)


def publication(data: bytes) -> None:
    """Port 4505: a publication as a stranger on the path sends it."""
    with contextlib.suppress(PeerFault):
        open_job(data, _KEY, gate=SerialGate(), master_pub=_public(), verify=True)


def sealed_publication(data: bytes) -> None:
    """Port 4505: a publication whose encryption and signature are right; the bytes are the job."""
    sealed = _KEY.encrypt(b"pickle::" + data)
    with contextlib.suppress(PeerFault):
        open_job(packb({"enc": "aes", "load": sealed}), _KEY, gate=SerialGate())


def crypticle(data: bytes) -> None:
    """Bytes that should be encrypted and authenticated."""
    with contextlib.suppress(PeerFault):
        _KEY.loads(data, _NONCE)


def pillar(data: bytes) -> None:
    """The master's answer to a request for pillar, as a minion reads it."""
    with contextlib.suppress(PeerFault):
        open_pillar(
            data,
            private_key=_private(),
            master_pub=_public(),
            nonce=_NONCE,
            enc_algo="OAEP-SHA1",
            sig_algo="PKCS1v15-SHA1",
        )


def event(data: bytes) -> None:
    """Ports 4512 and 4513: a frame of the event bus."""
    with contextlib.suppress(PeerFault):
        unpack_event(data)
    event_bus.unpack(data)


def message(data: bytes) -> None:
    """msgpack: what was read can be written, and read again."""
    with contextlib.suppress(PeerFault):
        value = unpackb(data)
        unpackb(packb(value))


def file_chunk(data: bytes) -> None:
    """A chunk of a file, as a minion reads it."""
    with contextlib.suppress(PeerFault, MissingFile):
        Download("init.sls", "base").feed(unpackb(data))


def public_key(data: bytes) -> None:
    """A public key that a minion sends."""
    with contextlib.suppress(UnicodeDecodeError, PeerFault, OwnFault):
        PublicKey.from_pem(clean_pem(data.decode()))


# ------------------------------------------------------------------------------------------------- commands and targets


def target(data: bytes) -> None:
    """A target expression: the first byte chooses its type."""
    subject = Subject("web1.example", {"os": "Debian", "roles": ["web"], "ipv4": ["10.0.0.1"]}, {"a": {"b": "c"}})
    kinds = sorted(MATCHERS)
    with contextlib.suppress(TargetError, UnicodeDecodeError):
        kind = kinds[data[0] % len(kinds)] if data else "glob"
        # Python's expressions backtrack; peers get a linear engine, which its own tests attack.
        if "pcre" not in kind and kind != "compound":
            compile_target(data[1:].decode(), kind, nodegroups={"one": "web*", "two": "N@one"})(subject)


def arguments(data: bytes) -> None:
    """Arguments of a job, as an operator types them and as a publication carries them."""
    with contextlib.suppress(UnicodeDecodeError, PeerFault, ValueError):
        parse_arguments(data.decode().split("\n"))
    with contextlib.suppress(PeerFault, ValueError):
        sent = unpackb(data)
        if isinstance(sent, list):
            read_arguments(sent)


def stored_value(data: bytes) -> None:
    """A value that somebody wrote into Redis."""
    with contextlib.suppress(StoreCorrupt):
        values.loads(data, "key")
    with contextlib.suppress(StoreCorrupt):
        values.loads_map(data, "key")
    with contextlib.suppress(StoreCorrupt):
        Records(record_mac(b"m" * 32)).check(PUBLICATION, data[64:], data[:64], "key")
        raise AssertionError("a record passed without the key")


# -------------------------------------------------------------------------------------------------------- trees and hosts


def sls(data: bytes) -> None:
    """An SLS file: YAML, then high data through every pass of the compiler."""
    with contextlib.suppress(UnicodeDecodeError, yaml.YamlFault):
        text = data.decode()
        yaml.key_positions(text)
        high = yaml.load(text, yaml.SLS)
        if isinstance(high, dict):
            with contextlib.suppress(StatecoreError):
                compile_high(high, {"state_auto_order": True})


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    made = Path(tempfile.mkdtemp(prefix="fuzz-", dir=where))
    try:
        (made / "outside").mkdir()
        (made / "outside/victim").write_text("untouched")
        (made / "root").mkdir()
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _untouched(made: Path) -> None:
    assert sorted(path.name for path in made.iterdir()) == ["outside", "root"]
    assert [path.name for path in (made / "outside").iterdir()] == ["victim"]
    victim = made / "outside/victim"
    assert victim.read_text() == "untouched"
    assert victim.stat().st_nlink == 1


def archive(data: bytes) -> None:
    """An archive of a hostile server, extracted: nothing outside of the target changes."""
    with _directory() as made:
        path = made / "outside/victim"
        for form in ("tar", "zip"):
            source = made / "root/archive"
            source.write_bytes(data)
            target_of_it = made / "root/target"
            target_of_it.mkdir(exist_ok=True)
            with contextlib.suppress(CommandError):
                archives.contents(source, form, strip=data[0] % 3 if data else 0)
            with contextlib.suppress(CommandError):
                archives.extract(source, form, target_of_it, strip=data[-1] % 3 if data else 0)
        _untouched(made)
        assert stat.S_IMODE(path.stat().st_mode) & 0o111 == 0


#: Operations on a path of a mounted host, chosen by a byte.
_OPERATIONS: tuple[Callable[[Host, str, str], object], ...] = (
    lambda host, path, text: host.path(path).read_bytes(),
    lambda host, path, text: host.path(path).write_bytes(b"written"),
    lambda host, path, text: host.path(path, follow=False).symlink_to(text),
    lambda host, path, text: host.path(path).mkdir(parents=True, exist_ok=True),
    lambda host, path, text: host.path(path, follow=False).unlink(),
    lambda host, path, text: host.path(path, follow=False).rename(host.path(text, follow=False)),
    lambda host, path, text: host.path(path, follow=False).hardlink_to(host.path(text, follow=False)),
    lambda host, path, text: host.path(path).chmod(0o777),
    lambda host, path, text: list(host.path(path).iterdir()),
    lambda host, path, text: lexists(host.path(path)),
)


def host_paths(data: bytes) -> None:
    """Operations on a mounted host, one a line: a byte, a path, a space, a link's text. Nothing outside is read or written."""
    with _directory() as made:
        host = Host(made / "root")
        for line in data.split(b"\n")[:16]:
            path, _, text = line[1:].decode("utf-8", "surrogateescape").partition(" ")
            # Links to the outside are what a hostile host has.
            text = text.replace("OUT", str(made / "outside"))
            path = path.replace("OUT", str(made / "outside"))
            with contextlib.suppress(OSError, HostError, ValueError, TypeError):
                found = _OPERATIONS[line[0] % len(_OPERATIONS) if line else 0](host, f"/{path}", text or ".")
                assert found != b"untouched"
                if isinstance(found, list):
                    assert all(isinstance(each, RootedPath) and each.name != "victim" for each in found)
        _untouched(made)


def pushed_file(data: bytes) -> None:
    """The path of a file that a minion pushes."""
    with _directory() as made, contextlib.suppress(PeerFault, FileRefused, OSError, ValueError):
        (made / "root/link").symlink_to("../outside")
        try:
            store(TreeRoot(str(made / "root")), unpackb(data), b"pushed", 0)
        finally:
            _untouched(made)


# ------------------------------------------------------------------------------------------- cost of longer and longer texts

#: Largest text of a measurement in characters. Quadratic time shows far below it.
_LONGEST_TEXT = 32_768


def _growth(names: Sequence[str]) -> Target:
    """Return a target: the bytes describe a shape (``shape_of``); the time of a parser must not grow faster than its length."""

    def target(data: bytes) -> None:
        found = shape_of(data)
        if found is not None:
            number, shape = found
            fault = grows(PARSERS[names[number % len(names)]], shape, _LONGEST_TEXT)
            assert not fault, f"{names[number % len(names)]}: {fault}"

    return target


TARGETS: Mapping[str, Target] = {name: _growth(parsers) for name, parsers in GROUPS.items()} | {
    each.__name__: each
    for each in (
        *(request, sealed_request, operator_request, sign_in_reply, publication, sealed_publication, crypticle, pillar),
        *(
            event,
            message,
            file_chunk,
            public_key,
            target,
            arguments,
            stored_value,
            sls,
            archive,
            host_paths,
            pushed_file,
        ),
    )
}

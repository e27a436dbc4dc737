"""What a master imports of redis-py, each time in a process of its own: what is imported already cannot be imported less."""

from __future__ import annotations

import contextlib
import datetime
import select
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from importlib import metadata
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_SECONDS = 120

#: Uses of the store: a value, a script, a pipeline, what is said of the client at the server.
_USES = """
import sys
from masterstore.client import Client

client = Client(sys.argv[1], timeout=30.0, client_name="parts")
client.call("set", "parts", 1)
script = client.redis.register_script("return redis.call('GET', KEYS[1])")
assert script(keys=["parts"]) == b"1"
with client.redis.pipeline(transaction=True) as pipe:
    pipe.evalsha(script.sha, 1, "parts")
    pipe.delete("parts")
    assert pipe.execute() == [b"1", 1]
mine = [one for one in client.call("client_list") if one["name"] == "parts"]
"""


def told(program: str, *arguments: str, path: Path | None = None) -> str:
    """What a program of Python prints."""
    words = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """One server: redis-py's other clients know no URL of a Redis Cluster."""
    return redis_server


@pytest.mark.redis
def test_a_store_at_work_has_loaded_what_it_needs(redis_url: str) -> None:
    heads = ("asyncio", "opentelemetry", "email", "zipfile", "redis.cluster", "redis.asyncio.client")
    found = told(_USES + f"print(*[name for name in {heads!r} if name in sys.modules])", redis_url)
    assert found == "", "a master that only keeps its memory has loaded these"


@pytest.mark.redis
def test_redis_is_told_which_client_it_is(redis_url: str) -> None:
    said = told(_USES + "print(mine[0].get('lib-ver', ''))", redis_url)
    # Redis 7.2 and later keep it.
    assert said in ("", metadata.version("redis"))


#: What somebody else in the process may do with redis-py, in this order.
_WHOLE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from masterstore import redis_parts
import redis

assert type(redis).__name__ == "_Package"
with ThreadPoolExecutor(8) as pool:
    assert len(set(pool.map(lambda _: redis.RedisCluster, range(64)))) == 1
assert redis.RedisCluster.__module__ == "redis.cluster"
from redis import *
assert RedisCluster is redis.RedisCluster
assert redis.Redis is redis_parts.Redis and redis.ConnectionError is redis_parts.ConnectionError
import asyncio
from redis import event
from redis._parsers import base
assert base.IncompleteReadError is asyncio.IncompleteReadError
assert event.asyncio.Lock is asyncio.Lock
assert not hasattr(redis, "no_such_name") and not hasattr(redis.asyncio, "no_such_name")
print(redis.__version__)
"""


def test_who_wants_more_of_it_has_it_whole() -> None:
    assert told(_WHOLE) == metadata.version("redis")


@pytest.mark.redis
def test_the_other_client_works_once_it_is_whole(redis_url: str) -> None:
    program = """
    import sys
    from masterstore import redis_parts
    import asyncio
    import redis.asyncio

    async def asked():
        client = redis.asyncio.Redis.from_url(sys.argv[1])
        said = await client.ping()
        await client.aclose()
        return said

    print(asyncio.run(asked()))
    """
    assert told(program, redis_url) == "True"


def test_what_was_imported_before_stays_as_it_is() -> None:
    assert (
        told("import redis\nfrom masterstore import redis_parts\nprint(redis.Redis is redis_parts.Redis, type(redis))")
        == "True <class 'module'>"
    )


def certificate(directory: Path) -> Path:
    """Key and certificate of 127.0.0.1 that vouches for itself, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(
        name, name, key.public_key(), 1, now - datetime.timedelta(1), now + datetime.timedelta(1)
    )
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    pem = serialization.Encoding.PEM
    path = directory / "tls.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.sign(key, hashes.SHA256()).public_bytes(pem)
    )
    return path


@contextlib.contextmanager
def over_tls(pem: Path, port: int) -> Iterator[tuple[int, list[object]]]:
    """A port that speaks TLS and passes on what it hears to ``port``; who came."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    came: list[object] = []

    def passed(one: socket.socket) -> None:
        with (
            context.wrap_socket(one, server_side=True) as secure,
            socket.create_connection(("127.0.0.1", port)) as plain,
        ):
            ends = {secure: plain, plain: secure}
            while all(_moved(end, ends[end]) for end in select.select(list(ends), [], [])[0]):
                pass

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                one, address = server.accept()
                came.append(address)
                threading.Thread(target=passed, args=(one,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)


def _moved(source: socket.socket, target: socket.socket) -> bool:
    """Whether there was something. A record of TLS is at most 16 kB, so nothing is left behind in it."""
    data = source.recv(65536)
    target.sendall(data)
    return bool(data)


#: A connection from the pool is asked first whether it is still good: over TLS that is an exception of ssl's own.
_KEPT = """
import sys
{imported}
client = {client}
for _ in range(3):
    assert client.set("a", 1)
"""


@pytest.mark.redis
@pytest.mark.parametrize(
    ("imported", "client"),
    [
        ("from masterstore.client import Client", "Client(sys.argv[1], timeout=30.0, client_name='parts').redis"),
        ("import masterstore.redis_parts\nfrom redis.client import Redis", "Redis.from_url(sys.argv[1])"),
    ],
    ids=["the store", "somebody else"],
)
def test_a_connection_over_tls_is_kept(tmp_path: Path, redis_url: str, imported: str, client: str) -> None:
    pem = certificate(tmp_path)
    with over_tls(pem, urlsplit(redis_url).port or 6379) as (port, came):
        told(_KEPT.format(imported=imported, client=client), f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={pem}")
    assert len(came) == 1


#: A redis-py that cannot do without its ``__init__``.
_OTHER = {
    "__init__.py": "WHOLE = 1\n",
    "asyncio/__init__.py": "",
    "client.py": "from redis import WHOLE\nclass Pipeline: ...\nclass Redis: ...\n",
    "backoff.py": "class NoBackoff: ...\n",
    "connection.py": "class SSLConnection: ...\ndef parse_url(): ...\n",
    "crc.py": "def key_slot(): ...\n",
    "exceptions.py": "".join(
        f"class {name}(Exception): ...\n"
        for name in (
            *(
                "ClusterDownError",
                "ConnectionError",
                "MovedError",
                "NoScriptError",
                "RedisError",
                "ResponseError",
                "TimeoutError",
            ),
        )
    ),
    "retry.py": "class Retry: ...\n",
    "sentinel.py": "class Sentinel: ...\nclass SentinelManagedConnection: ...\n",
}


def test_a_version_that_needs_all_is_imported_whole(tmp_path: Path) -> None:
    for name, text in _OTHER.items():
        (tmp_path / "redis" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "redis" / name).write_text(text, "utf-8")
    program = "from masterstore import redis_parts\nimport redis\nprint(redis.WHOLE, redis.__file__)"
    assert told(program, path=tmp_path) == f"1 {tmp_path / 'redis' / '__init__.py'}"

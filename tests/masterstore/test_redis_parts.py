"""What a master imports of redis-py, each time in a process of its own: what is imported already cannot be imported less."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

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
    script(keys=["parts"], client=pipe)
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


#: A redis-py that cannot do without its ``__init__``.
_OTHER = {
    "__init__.py": "WHOLE = 1\n",
    "asyncio/__init__.py": "",
    "client.py": "from redis import WHOLE\nclass Redis: ...\n",
    "backoff.py": "class NoBackoff: ...\n",
    "connection.py": "class SSLConnection: ...\ndef parse_url(): ...\n",
    "exceptions.py": "".join(
        f"class {name}(Exception): ...\n"
        for name in ("ConnectionError", "NoScriptError", "RedisError", "ResponseError", "TimeoutError")
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

"""Finding 38.16: a small compressed value in Redis takes the memory of a worker."""

from __future__ import annotations

import ast
import json
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masterstore import keys, large_returns
from masterstore.errors import StoreCorrupt
from masterstore.store import Store
from tests.services.mworker.conftest import Worker

ROOT = Path(__file__).parents[2]

#: Attack -> Python expression of the text that zlib compresses.
BOMBS = {
    "a gigabyte of one letter": """b'{"return":"' + b"x" * (1 << 30) + b'"}'""",
    "half a gigabyte of spaces": """b'{' + b" " * (1 << 29) + b'}'""",
    "millions of empty lists": """b'{"return":[' + b"[]," * 20_000_000 + b"[]]}\"""",
    "millions of empty maps": """b'{"return":[' + b"{}," * 20_000_000 + b"[]]}\"""",
    "millions of numbers": """b'{"return":[' + b"1," * 30_000_000 + b"1]}\"""",
    "millions of texts": """b'{"return":[' + b'"a",' * 15_000_000 + b"1]}\"""",
    "millions of keys": """b'{"return":{' + b",".join(b'"%d":1' % n for n in range(6_000_000)) + b"}}\"""",
    "millions of texts without commas": """b'{"return":[' + b'"[' * 30_000_000""",
    "quotation marks": """b'"' * 120_000_000""",
    "lists behind an escaped quotation mark": """b'{"return":["\\\\\\\\",' + b"[]," * 20_000_000 + b"[]]}\"""",
}

#: Most memory, MiB, by which the reader may grow, and CPU seconds.
MOST_MIB, MOST_SECONDS = 700, 12

_READER = """
import resource, sys
from masterstore import large_returns
from masterstore.errors import StoreCorrupt
data = open(sys.argv[1], "rb").read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    large_returns.unpacked(data, "salt:large:1")
    told = "read"
except StoreCorrupt as error:
    told = "refused"
print(told, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize("text", BOMBS.values(), ids=list(BOMBS))
def test_a_small_value_takes_little_memory(tmp_path: Path, text: str) -> None:
    # Made in a process of its own, as the maximum of memory is the process's.
    place = tmp_path / "data"
    make = f"import sys, zlib\nopen(sys.argv[1], 'wb').write(zlib.compress({text}, 1))"
    subprocess.run([sys.executable, "-c", make, str(place)], check=True, timeout=120)

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))

    done = subprocess.run(
        [sys.executable, "-c", _READER, str(place)], capture_output=True, text=True, timeout=120, preexec_fn=limits
    )
    told, grown = done.stdout.split()
    assert told == "refused"
    assert int(grown) < MOST_MIB


@pytest.mark.redis
def test_many_values_of_one_job_take_no_more_together(
    new_worker: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Store = new_worker().store
    monkeypatch.setattr(large_returns, "MOST_MEMORY", 1 << 20)
    jid = "20260101000000000001"
    whole = json.dumps({"return": "x" * 200_000, "id": "m"}).encode()
    with store._client.calling() as server:
        for number in range(8):
            name = f"m{number}"
            server.hset(keys.ret(jid), name, json.dumps({"return": "a note", "__large__": len(whole)}))
            server.hset(keys.large(jid), name, zlib.compress(whole))
    found = store.jobs.returns(jid)
    assert len(found) == 8
    read = [name for name, ret in found.items() if ret["return"] != "a note"]
    assert 1 <= len(read) <= 2


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "value", ["x" * 3_000_000, [["a", 'b"c\\', {"d": 1}]] * 20_000, {"k": ["\\" * 1000, '"'] * 100}]
)
def test_a_large_return_is_read_as_it_was_stored(value: Any) -> None:
    ret = {"id": "web1", "return": value, "retcode": 0}
    small, data = large_returns.packed(ret, 1000, "salt:large:1")
    assert data
    assert large_returns.is_large(json.loads(small))
    assert large_returns.unpacked(data, "salt:large:1") == ret


@pytest.mark.ordinary
def test_a_return_that_no_reader_takes_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_returns, "MOST_BYTES", 5000)
    small, data = large_returns.packed({"id": "web1", "return": "x" * 6000}, 1000, "salt:large:1")
    assert data == b""
    assert "not stored" in json.loads(small)["return"]
    with pytest.raises(StoreCorrupt, match="larger than"):
        large_returns.unpacked(zlib.compress(b"{" + b" " * 6000 + b"}"), "salt:large:1")


#: Calls that decompress without a bound of their output.
_UNBOUNDED = {
    "zlib.decompress",
    "gzip.decompress",
    "bz2.decompress",
    "lzma.decompress",
    "brotli.decompress",
    "zstd.decompress",
}


@pytest.mark.ordinary
def test_nothing_is_decompressed_without_a_bound() -> None:
    """The whole tree: a decompressor has ``max_length``. Salt's interface for users' own modules is theirs."""
    found = []
    for path in sorted([*ROOT.glob("libs/**/*.py"), *ROOT.glob("services/**/*.py")]):
        if path.name == "gzip_util.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "decompress":
                named = ast.unparse(node.func)
                bounded = len(node.args) == 2 or any(word.arg == "max_length" for word in node.keywords)
                if named in _UNBOUNDED or not bounded:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []

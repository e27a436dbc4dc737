"""msgpack of the wire and of the bus: exact bytes, decoding where it can, and one kind of error for everything else."""

from __future__ import annotations

import base64
import json
import sys
from collections import OrderedDict
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltwire import pack
from saltwire.errors import OwnFault, PeerFault
from saltwire.pack import octets, pack_event, packb, text, unpack_event, unpackb

# ------------------------------------------------------------------------------------------------------------------ to bytes

#: (value, exact wire bytes): the old specification, docs/protocol.md#msgpack.
PACKED: dict[str, tuple[Any, bytes]] = {
    "none": (None, b"\xc0"),
    "booleans": ([True, False], b"\x92\xc3\xc2"),
    "short text": ("abc", b"\xa3abc"),
    "bytes as text": (b"abc", b"\xa3abc"),
    "31 chars still fixstr": ("a" * 31, b"\xbf" + b"a" * 31),
    "32 chars raw16, not str8": ("a" * 32, b"\xda\x00\x20" + b"a" * 32),
    "300 bytes raw16, not bin": (b"\xff" * 300, b"\xda\x01\x2c" + b"\xff" * 300),
    "65536 bytes raw32": (b"x" * 65536, b"\xdb\x00\x01\x00\x00" + b"x" * 65536),
    "tuple": ((1, 2), b"\x92\x01\x02"),
    "set, in order": ({"b", "a"}, b"\x92\xa1a\xa1b"),
    "frozenset": (frozenset({"a"}), b"\x91\xa1a"),
    "integer keys": ({1: "a"}, b"\x81\x01\xa1a"),
    "ordered map": (OrderedDict(b=1, a=2), b"\x82\xa1b\x01\xa1a\x02"),
    "foreign map": (MappingProxyType({"a": 1}), b"\x81\xa1a\x01"),
    "largest integer": (2**64 - 1, b"\xcf" + b"\xff" * 8),
    "smallest integer": (-(2**63), b"\xd3\x80" + b"\x00" * 7),
    "integer beyond 64 bits": (2**64, b"\xb418446744073709551616"),
    "integer beyond 64 bits, inside": ([{"n": 2**64}], b"\x91\x81\xa1n\xb418446744073709551616"),
    "negative beyond 64 bits": (-(2**63) - 1, b"\xb4-9223372036854775809"),
    "time": (datetime(2020, 1, 2, 3, 4, 5, 6), b"\xc7\x18\x4e20200102T03:04:05.000006"),
    "time with zone": (datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC), b"\xc7\x18\x4e20200102T03:04:05.000006"),
    "day": (date(2020, 1, 2), b"\xc7\x18\x4e20200102T00:00:00.000000"),
    "complex number as its text": (1j, b"\xa21j"),
    "undecodable text goes as it came": ("a\udcff", b"\xa2a\xff"),
    "undecodable text as a key": ({"\udcff": 2**64}, b"\x81\xa1\xff\xb418446744073709551616"),
}


@pytest.mark.parametrize(("value", "expected"), PACKED.values(), ids=PACKED.keys())
def test_packs_exactly(value: Any, expected: bytes) -> None:
    assert packb(value) == expected


def test_text_that_no_encoding_holds_is_packed_all_the_same() -> None:
    # A lone surrogate comes out of JSON (``"\\ud800"``); a result that has one must not be lost.
    assert unpackb(packb({"a": json.loads('"x\\ud800"')})) == {"a": "x?"}


def test_a_tuple_as_key_beside_text_that_cannot_be_encoded() -> None:
    packed = packb({(1, 2): "\udcff"})
    assert msgpack.unpackb(packed, raw=True, use_list=False, strict_map_key=False) == {(1, 2): b"\xff"}


def test_what_cannot_be_packed_is_our_own_fault() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(OwnFault, match=r"nest"):
        packb(endless)
    deep: Any = 2**64
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(OwnFault, match=r"nest"):
        packb(deep)


# ---------------------------------------------------------------------------------------------------------------- from bytes

#: (bytes, value, value when raw). docs/protocol.md#msgpack
UNPACKED: dict[str, tuple[bytes, Any, Any]] = {
    "text": (b"\xa3abc", "abc", b"abc"),
    "bytes that are no text": (b"\xa2\xff\xfe", b"\xff\xfe", b"\xff\xfe"),
    "new text": (b"\xd9\x03abc", "abc", b"abc"),
    "new bytes": (b"\xc4\x03abc", "abc", b"abc"),
    "keys and values": (b"\x81\xa1k\x91\xa1v", {"k": ["v"]}, {"k": [b"v"]}),
    "key that is no text": (b"\x81\xa1\xff\x01", {b"\xff": 1}, {b"\xff": 1}),
    "integer key": (b"\x81\x05\xa1v", {5: "v"}, {5: b"v"}),
    "time": (
        b"\xc7\x18\x4e20200102T03:04:05.000006",
        datetime(2020, 1, 2, 3, 4, 5, 6),
        datetime(2020, 1, 2, 3, 4, 5, 6),
    ),
    "unknown extension": (b"\xd4\x05z", b"z", b"z"),
    "constant": (b"\xc7\x0a\x4f\x92\xa7NOT_SET\xc0", ["NOT_SET", None], ["NOT_SET", None]),
}


@pytest.mark.parametrize(("data", "value", "raw"), UNPACKED.values(), ids=UNPACKED.keys())
def test_unpacks(data: bytes, value: Any, raw: Any) -> None:
    found = unpackb(data)
    # An unknown extension is handed on as bytes; those that are text become text like all others.
    assert found == value or (isinstance(value, bytes) and octets(found) == value)
    assert unpackb(data, raw=True) == raw


#: What is not one msgpack value of ours.
BAD: dict[str, bytes] = {
    "nothing": b"",
    "reserved byte": b"\xc1",
    "cut text": b"\xa5abc",
    "cut map": b"\x82\xa1a\x01",
    "more than one": b"\x01\x02",
    "array of four billion": b"\xdd\xff\xff\xff\xff",
    "map of four billion": b"\xdf\xff\xff\xff\xff",
    "bytes of four billion": b"\xc6\xff\xff\xff\xff",
    "list as key": b"\x81\x91\x01\x01",
    "map as key": b"\x81\x80\x01",
    "time that is none": b"\xc7\x03\x4eabc",
    "time that is no text": b"\xc7\x01\x4e\xff",
    "constant without value": b"\xc7\x09\x4f\x92\xa7NOT_SET",
    "timestamp of odd size": b"\xc7\x05\xff12345",
    "timestamp with a year of nanoseconds": b"\xd7\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    "800 nested lists": b"\x91" * 800 + b"\x01",
    "5000 nested lists": b"\x91" * 5000 + b"\x01",
    "800 nested maps": b"\x81\xa1a" * 800 + b"\x01",
    "a constant of nested lists": b"\xc8\x03\xe9\x4f" + b"\x91" * 1000 + b"\x01",
    "http": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("raw", [False, True], ids=["decoded", "raw"])
def test_what_is_no_message_is_the_peers_fault(data: bytes, raw: bool) -> None:
    with pytest.raises(PeerFault):
        unpackb(data, raw=raw)


def test_a_message_may_be_as_large_as_the_limit_and_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "MAX_MESSAGE", 100)
    whole = packb("x" * 97)
    assert len(whole) == 100
    assert unpackb(whole) == "x" * 97
    with pytest.raises(PeerFault, match="101 bytes"):
        unpackb(packb("x" * 98))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8) | st.integers(0, 9), inner, max_size=5)
    ),
    max_leaves=15,
)


def as_received(value: Any) -> Any:
    """The oracle: what a value has become on the other side."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, list):
        return [as_received(item) for item in value]
    if isinstance(value, dict):
        return {key: as_received(item) for key, item in value.items()}
    return value


@given(PLAIN)
def test_what_is_packed_arrives(value: Any) -> None:
    assert unpackb(packb(value)) == as_received(value)


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=400)
def test_any_bytes_give_a_value_or_the_peers_fault(data: bytes, raw: bool) -> None:
    try:
        value = unpackb(data, raw=raw)
    except PeerFault:
        return
    packb(value)


# -------------------------------------------------------------------------------------------------------------------- events


def test_an_event_in_bytes() -> None:
    assert pack_event("a/b", {"k": b"v", "t": "w"}) == b"a/b\n\n\x82\xa1k\xc4\x01v\xa1t\xa1w"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"text": "ä", "bytes": b"\xff\xfe", "deep": [{"n": None}]},
        {1: 2},
        {"undecodable": "a\udcff"},
        {"newlines": "\n\n"},
        {"when": datetime(2020, 1, 2, 3, 4, 5, 6)},
    ],
    ids=str,
)
def test_an_event_arrives(data: dict[str, Any]) -> None:
    assert unpack_event(pack_event("salt/ä", data)) == ("salt/ä", data)


@pytest.mark.parametrize(
    ("value", "arrives"),
    [(2**70, str(2**70)), ({"b", "a"}, ["a", "b"]), (json.loads('"\\ud800"'), "?")],
    ids=["integer", "set", "surrogate"],
)
def test_an_event_with_what_msgpack_does_not_know(value: Any, arrives: Any) -> None:
    assert unpack_event(pack_event("t", {"v": value})) == ("t", {"v": arrives})


@pytest.mark.parametrize(
    "frame",
    [b"", b"tag", b"tag\n\n", b"tag\n\n\xa1a", b"tag\n\n\x80\x80", b"\xff\n\n\x80", b"\x80", b"t\n\n" + b"\x91" * 2000],
    ids=["nothing", "tag alone", "no map", "a text", "two maps", "tag no text", "map alone", "too deep"],
)
def test_what_is_no_event_is_the_peers_fault(frame: bytes) -> None:
    with pytest.raises(PeerFault, match="not an event"):
        unpack_event(frame)


@given(st.binary(max_size=100))
def test_any_frame_gives_an_event_or_the_peers_fault(tail: bytes) -> None:
    for frame in (tail, b"tag\n\n" + tail, b"tag\n\n\x81\xa1a" + tail):
        try:
            tag, data = unpack_event(frame)
        except PeerFault:
            continue
        assert isinstance(tag, str)
        assert isinstance(data, dict)


# ---------------------------------------------------------------------------------------------------------- fields of a load


@pytest.mark.parametrize(
    ("value", "as_text", "as_octets"),
    [
        ("ä", "ä", "ä".encode()),
        (b"\xff", "\udcff", b"\xff"),
        ("\udcff", "\udcff", b"\xff"),
        ("", "", b""),
        (None, None, None),
        (5, None, None),
        (["a"], None, None),
    ],
)
def test_fields_that_may_be_text_or_bytes(value: Any, as_text: str | None, as_octets: bytes | None) -> None:
    assert text(value) == as_text
    assert octets(value) == as_octets


# -------------------------------------------------------------------------------------------------------------------- oracle

_SALT_READS = """
import base64, json, sys, salt.payload
print(json.dumps([repr(salt.payload.loads(base64.b64decode(line))) for line in sys.stdin.read().split()]))
"""
_SALT_WRITES = """
import base64, datetime, json, salt.payload
values = {"b": b"\\xff\\xfe", "t": "\\u00e4", "l": (1, 2), "big": 2 ** 64, "n": None, 5: [True, 1.5],
          "when": datetime.datetime(2020, 1, 2, 3, 4, 5, 6)}
print(base64.b64encode(salt.payload.dumps(values)).decode())
"""


@pytest.mark.oracle
def test_salt_reads_what_we_pack(oracle: Any) -> None:
    values = [{"a": [1, "ä", None], 5: "x" * 40}, b"\xff\xfe", 2**64, datetime(2020, 1, 2, 3, 4, 5, 6), "bad load"]
    lines = "\n".join(base64.b64encode(packb(value)).decode() for value in values)
    read = json.loads(oracle.run("python", "-c", _SALT_READS, stdin=lines))
    assert read == [repr(value) if not isinstance(value, int) else repr(str(value)) for value in values]


@pytest.mark.oracle
def test_we_read_what_salt_packs(oracle: Any) -> None:
    assert unpackb(base64.b64decode(oracle.run("python", "-c", _SALT_WRITES))) == {
        "b": b"\xff\xfe",
        "t": "ä",
        "l": [1, 2],
        "big": str(2**64),
        "n": None,
        5: [True, 1.5],
        "when": datetime(2020, 1, 2, 3, 4, 5, 6),
    }


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1a"])
def test_how_deep_a_message_may_nest_is_no_matter_of_the_stack(level: bytes, raw: bool) -> None:
    """What is read must fit onto the bus and into the store, too, which end at 511 levels."""
    before = sys.getrecursionlimit()
    for limit in (before, 10_000):
        sys.setrecursionlimit(limit)
        try:
            assert packb(unpackb(level * 400 + b"\xc0", raw=raw)) == level * 400 + b"\xc0"
            for levels in (401, 511, 900):
                with pytest.raises(PeerFault, match="nests too deeply"):
                    unpackb(level * levels + b"\xc0", raw=raw)
        finally:
            sys.setrecursionlimit(before)

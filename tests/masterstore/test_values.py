"""JSON as it is kept: what comes back, and what is no JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masterstore import values
from masterstore.errors import StoreCorrupt, StoreError

#: (value, what it is after it was kept).
KEPT: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "text": ("ä", "ä"),
    "bytes that are text": (b"abc", "abc"),
    "other bytes": (b"\xff\xfe", {"__bytes__": "//4="}),
    "tuple": ((1, 2), [1, 2]),
    "set, in order": ({"b", "a"}, ["a", "b"]),
    "mixed set": ({1, "a"}, [1, "a"]),
    "time": (datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC), "2020-01-02T03:04:05+00:00"),
    "day": (date(2020, 1, 2), "2020-01-02"),
    "foreign map": (MappingProxyType({"a": 1}), {"a": 1}),
    "complex number": (1j, "1j"),
    "integer keys": ({1: "a"}, {"1": "a"}),
    "bytes keys": ({b"k": 1}, {"k": 1}),
    "tuple keys": ({(1, 2): {b"k": b"v"}}, {"(1, 2)": {"k": "v"}}),
    "large integer": (2**70, 2**70),
    "undecodable text": ("a\udcff", "a\udcff"),
    "lone surrogate": ("\ud800", "\ud800"),
    "deep bytes": ([{"a": [b"\xff"]}], [{"a": [{"__bytes__": "/w=="}]}]),
}


@pytest.mark.parametrize(("value", "kept"), KEPT.values(), ids=KEPT.keys())
def test_values_come_back(value: Any, kept: Any) -> None:
    packed = values.dumps(value)
    # Bytes are bytes again.
    assert values.loads(packed, "k") == values.loads(packed.encode(), "k") == (value if "bytes__" in packed else kept)
    # It goes to Redis as UTF-8, and any tool reads it.
    assert json.loads(packed.encode()) == kept


@pytest.mark.parametrize("value", [{"__bytes__": "no"}, {"__bytes__": 5}, {"__bytes__": "//4=", "a": 1}, "__bytes__"])
def test_what_only_looks_like_bytes_stays(value: Any) -> None:
    assert values.loads(values.dumps(value), "k") == value


def test_text_stays_readable_for_people() -> None:
    assert values.dumps({"a": "ä"}) == '{"a": "ä"}'


def test_what_contains_itself_is_an_error_of_the_store() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(StoreError, match="nest"):
        values.dumps(endless)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"\x80", b"nope", b"1 2", b"[" * 100_000, b"'a'"], ids=lambda d: repr(d[:8])
)
def test_what_is_no_json(data: bytes) -> None:
    with pytest.raises(StoreCorrupt, match="the key some:key in Redis cannot be read") as caught:
        values.loads(data, "some:key")
    assert caught.value.key == "some:key"


@pytest.mark.parametrize("data", [b"1", b"null", b'"text"', b"[]", b"true", b"{"])
def test_what_is_no_map(data: bytes) -> None:
    with pytest.raises(StoreCorrupt, match="some:key"):
        values.loads_map(data, "some:key")


@given(st.binary(max_size=40))
def test_any_bytes_are_json_or_corrupt(data: bytes) -> None:
    for load in (values.loads, values.loads_map):
        try:
            load(data, "k")
        except StoreCorrupt:
            continue

"""Minion ids at the door: what joins to a directory and stays in it, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltwire.errors import PeerFault
from saltwire.ids import is_minion_id, minion_id
from saltwire.pack import packb, unpackb

GOOD = ("a", "web-1.example.com", "WEB_1", "a:b", "a b", "ä", "...", "..a", "a..", "a" * 255, "ä" * 127)

BAD = {
    "empty": "",
    "this directory": ".",
    "parent": "..",
    "slash": "a/b",
    "rooted": "/etc/passwd",
    "up": "../a",
    "backslash": "a\\b",
    "NUL": "a\0b",
    "glob of all": "*",
    "glob": "web?",
    "glob of characters": "web[1-3]",
    "list": "web1,web2",
    "lines": "a\nb",
    "256 characters": "a" * 256,
    "255 characters of two bytes": "ä" * 255,
    "no UTF-8": b"\xff".decode("utf-8", "surrogateescape"),
    "bytes": b"a",
    "none": None,
    "number": 5,
    "true": True,
    "a list": ["a"],
    "map": {"a": 1},
}


@pytest.mark.parametrize("value", GOOD, ids=lambda value: value[:20])
def test_accepted(value: str) -> None:
    assert is_minion_id(value)
    assert minion_id(value) == value


@pytest.mark.parametrize("value", BAD.values(), ids=BAD.keys())
def test_refused(value: object) -> None:
    assert not is_minion_id(value)
    with pytest.raises(PeerFault, match="is no minion id") as caught:
        minion_id(value)
    assert caught.value.reply == packb("bad load")


@given(st.text(max_size=300) | st.binary(max_size=20))
def test_what_is_accepted_is_the_name_of_a_file(value: object) -> None:
    if is_minion_id(value):
        assert isinstance(value, str)
        assert 0 < len(value.encode()) <= 255
        assert not set("/\\\0*?[],\n") & set(value)
        assert value not in (".", "..")
        assert unpackb(packb(value)) == value

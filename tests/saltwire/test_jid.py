"""Job ids: made from a clock, always rising, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltwire.jid import is_jid, jid_time, new_jid, next_jid

NOW = datetime(2026, 7, 8, 9, 10, 11, 120034, tzinfo=UTC).timestamp()
JID = "20260708091011120034"


def test_a_moment_as_jid_and_back() -> None:
    assert new_jid(NOW) == JID
    assert jid_time(JID) == datetime(2026, 7, 8, 9, 10, 11, 120034, tzinfo=UTC)
    assert jid_time(JID + "_4711") == jid_time(JID)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("", JID),
        ("20260708091011120033", JID),
        (JID, "20260708091011120035"),
        # The clock went back: the last one counts.
        ("20260708091011999999", "20260708091012000000"),
        ("20261231235959999999", "20270101000000000000"),
        (JID + "_12", "20260708091011120035"),
    ],
)
def test_the_next_jid(last: str, expected: str) -> None:
    assert next_jid(NOW, last) == expected


@given(st.lists(st.floats(0, 4e9), min_size=1, max_size=30))
def test_jids_rise_whatever_the_clock_does(moments: list[float]) -> None:
    last = ""
    for moment in moments:
        jid = next_jid(moment, last)
        assert jid > last
        assert is_jid(jid)
        last = jid


@pytest.mark.parametrize("value", [JID, JID + "_1", JID + "_host-1.2", "00010101000000000000", "20240229000000000000"])
def test_jids(value: str) -> None:
    assert is_jid(value)


NO_JIDS = {
    "empty": "",
    "19 digits": JID[:-1],
    "21 digits": JID + "0",
    "no time": "20261301000000000000",
    "no leap day": "20250229000000000000",
    "year 0": "00000101000000000000",
    "underscore alone": JID + "_",
    "other mark": JID + "-1",
    "slash": JID + "_a/b",
    "colon": JID + "_a:b",
    "space": JID + "_a b",
    "newline": JID + "\n",
    "newline behind": JID + "_1\n",
    "NUL": JID + "_\0",
    "glob": JID + "_*",
    "other digits": "\u0662" * 20,
    "letters": "a" * 20,
    "sign": "-" + JID[1:],
    "spaces": " " * 20,
    "req": "req",
    "no end": JID + "_" + "a" * 1000,
    "none": None,
    "number": int(JID),
    "bytes": JID.encode(),
    "list": [JID],
}


@pytest.mark.parametrize("value", NO_JIDS.values(), ids=NO_JIDS.keys())
def test_no_jids(value: object) -> None:
    assert not is_jid(value)


@pytest.mark.parametrize("value", ["", "abc", "2026", "20261301000000000000"])
def test_the_time_of_what_is_no_jid(value: str) -> None:
    with pytest.raises(ValueError):
        jid_time(value)


@given(st.text(max_size=30) | st.from_regex(r"\A[0-9]{19,21}[_ -]?\w{0,5}\Z"))
def test_a_jid_is_a_time_and_a_safe_name(value: str) -> None:
    if is_jid(value):
        jid_time(value)
        assert not set(value) & set("/:*\\\0 \n")

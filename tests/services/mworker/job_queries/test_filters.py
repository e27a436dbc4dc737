"""Words as a filter of jobs: each word, in each form; what cannot be read is named."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import filter as matching
from typing import Any

import pytest

from masterstore.job_filter import JobFilter
from saltern.mworker.job_queries.filters import MOST_MINIONS, NAMES, FilterFault, filter_of

#: 2026-01-02 00:00:00 UTC.
NOW = 1767312000000
DAY = 86_400_000
KNOWN = ("web1", "web2", "db1", *(f"many{number}" for number in range(MOST_MINIONS + 1)))


def like(globs: Sequence[str]) -> list[str]:
    return sorted({name for glob in globs for name in matching(KNOWN, glob)})


def read(**words: Any) -> JobFilter:
    return filter_of(words, NOW, like)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ({}, {}),
        ({"after": None, "user": "", "state": None}, {}),
        ({"after": "2026-01-01"}, {"after_ms": NOW - DAY}),
        ({"after": "2026-01-01T00:00:00"}, {"after_ms": NOW - DAY}),
        ({"after": "2026-01-01T01:00:00+01:00"}, {"after_ms": NOW - DAY}),
        ({"after": "2026, Jan 01 00:00:00.001000"}, {"after_ms": NOW - DAY + 1}),
        ({"after": "20260101000000002000"}, {"after_ms": NOW - DAY + 2}),
        ({"after": "1d", "before": "12h"}, {"after_ms": NOW - DAY, "before_ms": NOW - DAY // 2}),
        ({"before": "1h30m"}, {"before_ms": NOW - 5_400_000}),
        ({"limit": 7}, {"limit": 7}),
        ({"limit": "7"}, {"limit": 7}),
        ({"cursor": "20260101000000002000"}, {"cursor": "20260101000000002000"}),
        ({"function": "state.*,test.ping"}, {"functions": ("state.*", "test.ping")}),
        ({"function": ["state.*", "a.b"]}, {"functions": ("state.*", "a.b")}),
        ({"user": "root, ann"}, {"users": ("root", "ann")}),
        ({"target": "web1,db1"}, {"targets": ("web1,db1",)}),
        ({"target": ["web1", "db1"]}, {"targets": ("web1,db1",)}),
        ({"minion": "web1,nobody"}, {"minions": ("web1", "nobody")}),
        ({"minion": "web*,db1"}, {"minions": ("db1", "web1", "web2")}),
        ({"minion": "*"}, {}),
        ({"minion": "none*"}, {"minions": ("none*",)}),
        ({"success": True}, {"success": True}),
        ({"success": "false"}, {"success": False}),
        ({"state": "lost,offline"}, {"states": ("lost", "offline")}),
    ],
    ids=str,
)
def test_words(words: dict[str, Any], fields: dict[str, Any]) -> None:
    assert read(**words) == JobFilter(**fields)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"minions": "web1"}, "'minions' is no filter of jobs; the nearest is 'minion'. There are after, before"),
        ({"after": "yesterday"}, "after: 'yesterday' is not a time; write it as"),
        ({"after": 2026}, "after: '2026' is not a time"),
        ({"before": "2026-13-01"}, "before: '2026-13-01' is not a time"),
        ({"before": "-2h"}, "before: '-2h' is not a time"),
        ({"after": "99999999999d"}, "after: '99999999999d' is not a time"),
        ({"after": "1h", "before": "2h"}, "after (1h) is not earlier than before (2h)"),
        ({"limit": 0}, "limit must be a whole number from 1 to 100000, not 0"),
        ({"limit": "many"}, "not 'many'"),
        ({"limit": 2.5}, "not 2.5"),
        ({"limit": True}, "not True"),
        ({"limit": 10**30}, "limit must be"),
        ({"cursor": "7"}, "cursor: '7' is not a JID"),
        ({"function": {"a": 1}}, "function is a name, names with commas, or a list"),
        ({"function": [["a"]]}, "function is a name"),
        ({"user": "root,,ann"}, "user: a name is empty in 'root,,ann'"),
        ({"target": {"a": 1}}, "target is a target as it was written"),
        ({"minion": "many*"}, f"minion: {MOST_MINIONS + 1} minions are like many*"),
        ({"success": "maybe"}, "success must be True or False, not 'maybe'"),
        ({"success": 1}, "success must be True or False, not 1"),
        (
            {"state": "losst"},
            "state: 'losst' is no state that jobs are found by; the nearest is 'lost'. There are running",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_named(words: dict[str, Any], said: str) -> None:
    with pytest.raises(FilterFault) as caught:
        read(**words)
    assert said in str(caught.value)


def test_every_name_is_read() -> None:
    values = {
        "after": "2h",
        "before": "1h",
        "limit": 3,
        "cursor": "20260101000000002000",
        "success": True,
        "state": "lost",
    }
    assert len(NAMES) == 10
    for name in NAMES:
        assert read(**{name: values.get(name, "x")}) != JobFilter(), name

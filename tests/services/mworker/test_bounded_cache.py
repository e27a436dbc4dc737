"""A cache that is bounded by bytes."""

from __future__ import annotations

import pytest

from saltern.mworker.bounded_cache import BoundedCache


def cache(most: int) -> BoundedCache[bytes]:
    return BoundedCache(most, len)


def test_the_entry_that_was_used_least_recently_goes_first() -> None:
    kept = cache(30)
    for name in "abc":
        kept[name] = b"x" * 10
    assert kept["a"] == b"x" * 10
    kept["d"] = b"x" * 10
    assert (sorted(kept), kept.bytes) == (["a", "c", "d"], 30)


def test_a_new_value_replaces_the_old_one_and_its_bytes() -> None:
    kept = cache(30)
    kept["a"] = b"x" * 10
    kept["a"] = b"x" * 25
    assert (kept.bytes, len(kept)) == (25, 1)
    del kept["a"]
    assert (kept.bytes, kept.get("a")) == (0, None)
    with pytest.raises(KeyError):
        del kept["a"]


def test_the_newest_entry_stays_however_large_it_is() -> None:
    kept = cache(30)
    kept["a"] = b"x" * 10
    kept["b"] = b"x" * 100
    assert list(kept) == ["b"]


def test_many_minions_do_not_take_more_than_the_bound() -> None:
    kept = cache(1000)
    for number in range(5000):
        kept[f"minion-{number}"] = b"x" * 10
        assert kept.bytes <= 1000
    assert len(kept) == 100
    assert kept["minion-4999"] == b"x" * 10
    assert "minion-0" not in kept

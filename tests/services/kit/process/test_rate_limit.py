"""Limits on the rate of a sender, with a clock of the test."""

from __future__ import annotations

from saltern.kit.process.rate_limit import Rate, RateLimiter


def used(limiter: RateLimiter, now: float, number: int, *units: float, sender: str = "web1") -> int:
    """Return how many of ``number`` requests the sender may send at this time."""
    return sum(limiter.admit(sender, now, *units) for _ in range(number))


def test_a_burst_then_the_rate() -> None:
    limiter = RateLimiter(Rate(8, 5))
    # The one more is the one that uses up the burst.
    assert used(limiter, 100.0, 1000, 1) == 41
    assert used(limiter, 100.0, 1000, 1) == 0
    assert used(limiter, 101.0, 1000, 1) == 8
    assert used(limiter, 1000.0, 1000, 1) == 41


def test_below_the_rate_nothing_is_refused() -> None:
    limiter = RateLimiter(Rate(8, 5))
    assert all(limiter.admit("web1", 100 + number / 8, 1) for number in range(5000))


def test_one_large_request_passes_and_is_paid_afterwards() -> None:
    limiter = RateLimiter(Rate(0, 0), Rate(1000, 2))
    assert limiter.admit("web1", 0.0, 1, 50_000)
    assert limiter.wait("web1", 0.0) == 48
    assert not limiter.admit("web1", 47.0, 1, 1)
    assert limiter.admit("web1", 48.0, 1, 1)


def test_each_limit_counts() -> None:
    limiter = RateLimiter(Rate(10, 1), Rate(1000, 1))
    assert used(limiter, 0.0, 100, 1, 500) == 3
    assert used(limiter, 100.0, 100, 1, 1) == 11


def test_senders_are_limited_one_by_one() -> None:
    limiter = RateLimiter(Rate(10, 1))
    assert used(limiter, 0.0, 100, 1) == 11
    assert used(limiter, 0.0, 100, 1, sender="web2") == 11


def test_memory_is_bounded() -> None:
    limiter = RateLimiter(Rate(10, 1), most_senders=100)
    for number in range(1000):
        limiter.charge(number, 0.0, 1)
    assert len(limiter) == 100


def test_without_limits_nothing_is_remembered() -> None:
    limiter = RateLimiter(Rate(0, 1), Rate(0, 1))
    assert used(limiter, 0.0, 100, 1, 10**9) == 100
    assert len(limiter) == 0

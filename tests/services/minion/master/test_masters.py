"""Which masters there are, in which order, and where what is theirs is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.master import ConfigError
from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.master.masters import Masters, address, after_loss, at_once, in_order, listed

THREE = ["a", "b:4600", "c"]


def options(master: Any, **more: Any) -> MinionOptions:
    return MinionOptions(id="web1", master=master, **more)


@pytest.mark.parametrize(
    ("master", "more", "together", "order"),
    [
        ("a", {}, (), ["a"]),
        (["a"], {}, (), ["a"]),
        (["a", " a ", ""], {}, (), ["a"]),
        (THREE, {}, tuple(THREE), THREE),
        (THREE, {"master_type": "failover"}, (), THREE),
        ("a", {"master_type": "failover"}, (), ["a"]),
        # The checksum of web1 is 2 by three.
        (THREE, {"master_type": "distributed"}, (), ["c", "a", "b:4600"]),
        (THREE, {"master_type": "failover", "random_master": True}, (), ["c", "b:4600", "a"]),
        (THREE, {"master_type": "failover", "master_shuffle": True}, (), ["c", "b:4600", "a"]),
        (THREE, {"master_type": "failover", "random_master": True, "master_failback": True}, (), ["a", "c", "b:4600"]),
        (THREE, {"random_master": True, "master_failback": True}, tuple(THREE), ["c", "b:4600", "a"]),
    ],
)
def test_masters(master: Any, more: dict[str, Any], together: tuple[str, ...], order: list[str]) -> None:
    assert at_once(options(master, **more)) == together
    assert in_order(options(master, **more), shuffle=list.reverse) == order


@pytest.mark.parametrize(
    ("master", "more", "said"),
    [
        ([], {}, "the list of masters is empty"),
        ("", {}, "the list of masters is empty"),
        ("a:0", {}, "0 is no port"),
        ("a:99999", {}, "99999 is no port"),
        ("a:b", {}, "neither a host nor host:port"),
        ("tcp://a", {}, "neither a host nor host:port"),
        ("a", {"master_type": "fun"}, "'fun' is not supported; use one of str, failover, distributed, func, disable"),
    ],
)
def test_what_cannot_be_used(master: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        listed(options(master, **more))


@pytest.mark.parametrize(
    ("master", "found"),
    [
        ("salt", ("salt", 4506)),
        ("salt:4600", ("salt", 4600)),
        ("10.0.0.1", ("10.0.0.1", 4506)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("::1", ("[::1]", 4506)),
        ("[::1]", ("[::1]", 4506)),
        ("[2001:db8::1]:4600", ("[2001:db8::1]", 4600)),
    ],
)
def test_addresses(master: str, found: tuple[str, int]) -> None:
    assert address(master, 4506) == found


@pytest.mark.parametrize(
    ("lost", "order"), [("a", ["b", "c", "a"]), ("b", ["a", "c", "b"]), ("c", ["a", "b", "c"]), ("x", ["a", "b", "c"])]
)
def test_whom_we_lost_comes_last(lost: str, order: list[str]) -> None:
    assert after_loss(["a", "b", "c"], lost) == order


def test_where_things_are_kept() -> None:
    alone = Masters("a")
    assert (alone.state("/c"), alone.other_states("/c")) == (Path("/c"), [])
    one_of = Masters("[::1]:4506", ("a", "[::1]:4506", "../b"))
    assert one_of.state("/c") == Path("/c/masters/___1__4506")
    assert one_of.other_states("/c") == [Path("/c/masters/a"), Path("/c/masters/.._b")]

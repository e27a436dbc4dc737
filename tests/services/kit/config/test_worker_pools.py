"""worker_pools: Salt's rules, and what is told of a configuration that breaks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.config.worker_pools import ONE_POOL, own_pool, read_pools, unknown_commands
from saltern.kit.links.deadlines import read_deadlines

GOOD = {"auth": {"worker_count": 1, "commands": ["_auth"]}, "default": {"worker_count": 4, "commands": ["*"]}}


def rest(**more: Any) -> dict[str, Any]:
    return {"rest": {"worker_count": 1, "commands": ["*"]}, **more}


def test_pools_are_read() -> None:
    pools = read_pools(MasterOptions(worker_pools=GOOD))
    assert (pools.names, pools.several) == (("auth", "default"), True)
    assert [pools.of(cmd) for cmd in ("_auth", "_return", "")] == ["auth", "default", "default"]


@pytest.mark.parametrize("options", [{}, {"worker_pools": GOOD, "worker_pools_enabled": False}, {"worker_pools": {}}])
def test_one_pool_is_the_default(options: dict[str, Any]) -> None:
    assert read_pools(MasterOptions(**options)) == ONE_POOL
    assert not ONE_POOL.several


#: Configuration -> what is said of it.
WRONG: list[tuple[dict[Any, Any], str]] = [
    ({"a": {"worker_count": 1, "commands": ["_auth"]}}, "no pool has the command '*'"),
    (rest(a={"worker_count": 1, "commands": ["*"]}), "the command '*' is in the pools 'rest' and 'a'"),
    (rest(a={"worker_count": 1, "commands": ["x", "x"]}), "the command 'x' is in the pools 'a' and 'a'"),
    (rest(a={"worker_count": 0, "commands": ["x"]}), "pool 'a': worker_count must be a whole number from 1 up, not 0"),
    (rest(a={"worker_count": "2", "commands": ["x"]}), "worker_count must be a whole number"),
    (rest(a={"worker_count": True, "commands": ["x"]}), "worker_count must be a whole number"),
    (rest(a={"commands": ["x"]}), "worker_count must be a whole number from 1 up, not None"),
    (rest(a={"worker_cont": 1, "commands": ["x"]}), "unknown setting 'worker_cont'; the nearest is 'worker_count'"),
    (rest(a={"worker_count": 1, "commands": []}), "commands must be a list with at least one command, not []"),
    (rest(a={"worker_count": 1, "commands": "_auth"}), "commands must be a list"),
    (rest(a={"worker_count": 1, "commands": [7]}), "a command is text, not 7"),
    (rest(a=3), "pool 'a' must be a map of worker_count and commands, not 3"),
    (rest(**{"a/b": {"worker_count": 1, "commands": ["x"]}}), "must be no path"),
    (rest(**{"..": {"worker_count": 1, "commands": ["x"]}}), "must be no path"),
    (rest(**{"": {"worker_count": 1, "commands": ["x"]}}), "a pool's name is text"),
    ({5: {}, **rest()}, "a pool's name is text, not 5"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_pools(MasterOptions(worker_pools=given))
    assert said in str(caught.value)
    assert str(caught.value).startswith("worker_pools:")


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read_pools(MasterOptions(worker_pools={"a": {"worker_count": 0, "commands": []}}))
    assert str(caught.value).count("\n") == 3


def test_a_workers_own_pool() -> None:
    pools = read_pools(MasterOptions(worker_pools=GOOD))
    assert own_pool(MasterOptions(worker_pool="auth"), pools) == "auth"
    assert own_pool(MasterOptions(), pools) == ""
    with pytest.raises(ConfigError, match="no pool 'aut', but auth, default; the nearest is 'auth'"):
        own_pool(MasterOptions(worker_pool="aut"), pools)


def test_commands_that_are_none_are_told() -> None:
    pools = read_pools(MasterOptions(worker_pools=rest(a={"worker_count": 1, "commands": ["_retrun", "_auth"]})))
    assert unknown_commands(pools, frozenset({"_return", "_auth"})) == [
        "pool 'a': there is no command '_retrun'; the nearest is '_return'"
    ]


def test_deadlines_are_times() -> None:
    assert read_deadlines(MasterOptions(request_deadlines={"_pillar": 7}))["_pillar"] == 7
    assert read_deadlines(MasterOptions())["_auth"] == 20
    with pytest.raises(ConfigError, match="_pillar must be a whole number of seconds from 1 up, not 0"):
        read_deadlines(MasterOptions(request_deadlines={"_pillar": 0}))


_ASK_SALT = """
import json, sys
from salt.config.worker_pools import validate_worker_pools_config
for line in sys.stdin:
    try:
        print(json.dumps(bool(validate_worker_pools_config({"worker_pools": json.loads(line)}))), flush=True)
    except ValueError as error:
        print(json.dumps(False), flush=True)
"""


@pytest.mark.oracle
def test_salt_takes_and_refuses_the_same() -> None:
    """But for settings that it does not know, and true as a number."""
    given = [GOOD, *(one for one, said in WRONG if "worker_cont'" not in said and 5 not in one), {"a": GOOD["default"]}]
    given = [one for one in given if not any(row.get("worker_count") is True for row in one.values() if row != 3)]
    python = Path(os.environ["SALTERN_ORACLE"]) / "bin" / "python"
    lines = "\n".join(map(json.dumps, given))
    done = subprocess.run(
        [python, "-c", _ASK_SALT], input=lines, capture_output=True, text=True, timeout=60, check=True
    )
    salts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [ours(one) for one in given] == salts, sys.stderr.write(done.stderr)


def ours(given: dict[str, Any]) -> bool:
    try:
        return bool(read_pools(MasterOptions(worker_pools=given)))
    except ConfigError:
        return False

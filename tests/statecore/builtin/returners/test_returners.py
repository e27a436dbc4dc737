"""Returners: settings as Salt finds them, what is stored where, and that none is in the way of the master or of another."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from statecore.loader.compat.returners import get_returner_options
from statecore.model.errors import CommandError
from statecore.runtime.return_delivery import deliver, named
from statecore.system.returner_settings import settings_of
from tests.conftest import Oracle

RET = {
    "id": "web1",
    "jid": "20260101000000000000",
    "fun": "test.ping",
    "fun_args": [],
    "return": True,
    "retcode": 0,
    "success": True,
    "out": "nested",
}

#: Configuration, what the job brings, and options that are asked for: name -> its name in the configuration.
SETTINGS: list[tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = [
    ({}, {}, {"host": "host"}),
    ({"r.host": "h"}, {}, {"host": "host", "port": "port"}),
    ({"r.host": "h", "r.port": 5}, {}, {"host": "host", "the_port": "port"}),
    ({"r": {"host": "h"}}, {}, {"host": "host"}),
    ({"r.host": "h", "other.r.host": "o"}, {"ret_config": "other"}, {"host": "host"}),
    ({"r.host": "h", "other.r": {"host": "o"}}, {"ret_config": "other"}, {"host": "host"}),
    ({"r.host": "h", "r.port": 5, "other.r.host": "o"}, {"ret_config": "other"}, {"host": "host", "port": "port"}),
    ({"r.host": "h"}, {"ret_kwargs": {"host": "k", "more": 1}}, {"host": "host"}),
    ({"r.host": ""}, {}, {"host": "host"}),
]


@pytest.mark.oracle
def test_salt_finds_the_same_settings(oracle: Oracle) -> None:
    program = (
        "import json, sys; from salt.returners import get_returner_options\n"
        "told = []\n"
        "for config, ret, attrs in json.load(sys.stdin):\n"
        "    salt = {'config.option': lambda name, default='': config.get(name, default)}\n"
        "    told.append(get_returner_options('r', ret, attrs, __salt__=salt, __opts__=config, defaults={'port': 7}))\n"
        "print(json.dumps(told))"
    )
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(SETTINGS)))
    ours = []
    for config, ret, attrs in SETTINGS:
        salt = {"config.option": lambda name, default="", config=config: config.get(name, default)}
        ours.append(get_returner_options("r", ret, attrs, __salt__=salt, __opts__=config, defaults={"port": 7}))
    assert ours == told


def test_settings_have_defaults() -> None:
    config = {"r.port": 5}
    assert settings_of(lambda name, default=None: config.get(name, default), "r", RET, {"host": "h", "port": 1}) == {
        "host": "h",
        "port": 5,
    }


@pytest.mark.parametrize(
    ("lists", "names"),
    [
        (("", None), []),
        (("a,b", "b, c"), ["a", "b", "c"]),
        ((["a", "b"], "a"), ["a", "b"]),
        ((None, ["", "x"]), ["x"]),
    ],
)
def test_names(lists: Any, names: list[str]) -> None:
    assert named(*lists) == names


@pytest.fixture
def server(plain, redis_url: str) -> Iterator[redis.Redis]:
    """The test's Redis, as the minion's settings name it."""
    place = urlsplit(redis_url)
    plain.opts |= {"redis.host": place.hostname, "redis.port": place.port, "redis.db": place.path.strip("/") or 0}
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


def delivered(plain, name: str, **more: Any) -> None:
    deliver(plain.loader, plain.context(), [name], {**RET, **more})


def test_redis_has_the_keys_of_salts_returner(plain, server):
    delivered(plain, "redis")
    jid = RET["jid"]
    assert json.loads(server.hget(f"ret:{jid}", "web1")) == RET
    assert server.get("web1:test.ping") == jid
    assert server.smembers("minions") == {"web1"}
    assert 86000 < server.ttl(f"ret:{jid}") <= 86400
    assert 86000 < server.ttl("web1:test.ping") <= 86400


def test_redis_takes_what_json_has_no_form_for(plain, server):
    value = {"bytes": b"\xff\x00a", "set": {"b", "a"}, "date": datetime(2026, 1, 1), "none": None}
    delivered(plain, "redis", **{"return": value, "fun": ["a.b", "c.d"]})
    stored = json.loads(server.hget(f"ret:{RET['jid']}", "web1"))["return"]
    assert stored == {"bytes": "\\xff\x00a", "set": ["a", "b"], "date": "2026-01-01 00:00:00", "none": None}
    assert server.get("web1:a.b") == server.get("web1:c.d") == RET["jid"]


def test_redis_that_is_away_is_named(plain):
    plain.opts |= {"redis.host": "127.0.0.1", "redis.port": 1}
    served, name = plain.loader.function("returners", "redis.returner", plain.context())
    with pytest.raises(CommandError, match=r"Redis at 127\.0\.0\.1:1: .*refused"):
        served.bound(name, plain.context())(RET)


@pytest.mark.oracle
def test_salt_reads_our_local_cache(plain, oracle: Oracle, tmp_path: Path) -> None:
    delivered(plain, "local_cache")
    delivered(plain, "local_cache", **{"return": "another"})
    program = (
        "import json, sys; import salt.returners.local_cache as cache\n"
        "cache.__opts__ = {'cachedir': sys.argv[1], 'hash_type': 'sha256'}\n"
        "print(json.dumps(cache.get_jid(sys.argv[2])))"
    )
    told = json.loads(oracle.run("python", "-c", program, str(plain.opts["cachedir"]), str(RET["jid"])))
    assert told == {"web1": {"return": True, "retcode": 0, "success": True, "out": "nested"}}


USERS = """
import salt.returners

__virtualname__ = "told"


def __virtual__():
    return __virtualname__


def returner(ret):
    options = salt.returners.get_returner_options(
        "told", ret, {"file": "file"}, __salt__=__salt__, __opts__=__opts__
    )
    ret["return"] = None
    with open(options["file"], "a") as file:
        file.write(ret["jid"])
"""


def test_a_users_returner_and_one_that_fails(plain, tmp_path, caplog):
    directory = plain.extension_dir / "returners"
    directory.mkdir(parents=True)
    (directory / "teller.py").write_text(USERS)
    plain.opts["told.file"] = str(tmp_path / "no" / "such")
    plain.opts["other.told.file"] = str(tmp_path / "told")
    with caplog.at_level(logging.ERROR):
        deliver(plain.loader, plain.context(), ["nothing", "told"], RET)
        deliver(plain.loader, plain.context(), ["told"], {**RET, "ret_config": "other"})
    assert (tmp_path / "told").read_text() == RET["jid"]
    first, second = caplog.messages
    assert first.startswith("Returner nothing.returner could not be loaded:")
    assert second.startswith(f"The return failed for job {RET['jid']} by the returner told: ")
    assert RET["return"] is True

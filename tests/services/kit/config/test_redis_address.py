"""The options for Sentinels as a URL, which the store reads back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from masterstore.address import sentinels_of
from saltern.kit.config.master import ConfigError, load_master, load_whole_master, public_options, shown

HOSTS = ["s1", "s2:26380", "[::1]:26379"]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "redis+sentinel://s1,s2:26380,[::1]:26379/mymaster/0"),
        (
            {"redis_sentinel_master": "saltern", "redis_db": 3},
            "redis+sentinel://s1,s2:26380,[::1]:26379/saltern/3",
        ),
        (
            {"redis_password": "p/w@:%", "redis_sentinel_password": "s&=p"},
            "redis+sentinel://:p%2Fw%40%3A%25@s1,s2:26380,[::1]:26379/mymaster/0?sentinel_password=s%26%3Dp",
        ),
        (
            {
                "redis_user": "salt",
                "redis_password": "x",
                "redis_sentinel_user": "watch",
                "redis_sentinel_password": "y",
            },
            "redis+sentinel://salt:x@s1,s2:26380,[::1]:26379/mymaster/0?sentinel_username=watch&sentinel_password=y",
        ),
        (
            {"redis_tls": True, "redis_tls_ca": "/ca.pem", "redis_tls_cert": "/c.pem", "redis_tls_key": "/k.pem"},
            "rediss+sentinel://s1,s2:26380,[::1]:26379/mymaster/0?ssl_ca_certs=%2Fca.pem&ssl_certfile=%2Fc.pem"
            "&ssl_keyfile=%2Fk.pem",
        ),
    ],
)
def test_options_become_a_url(tmp_path: Path, given: dict[str, Any], url: str) -> None:
    (tmp_path / "master").write_text(yaml.safe_dump({"redis_sentinels": HOSTS, **given}))
    options = load_master(str(tmp_path), env={})
    assert options.redis_url == url
    assert load_whole_master(str(tmp_path), env={}).redis_url == url
    # A role that reads the file again gets the URL beside the options.
    assert load_master(str(tmp_path), env={"SALTERN_REDIS_URL": url}).redis_url == url
    read = sentinels_of(url)
    assert read is not None
    assert read.hosts == (("s1", 26379), ("s2", 26380), ("::1", 26379))
    assert read.service == given.get("redis_sentinel_master", "mymaster")
    assert read.redis["db"] == given.get("redis_db", 0)
    assert read.redis.get("password") == given.get("redis_password")
    assert read.redis.get("username") == given.get("redis_user")
    assert read.sentinel.get("username") == given.get("redis_sentinel_user")
    assert read.sentinel.get("password") == given.get("redis_sentinel_password")
    for side in (read.redis, read.sentinel):
        assert side.get("ssl", False) is given.get("redis_tls", False)
        assert side.get("ssl_ca_certs") == given.get("redis_tls_ca")
        assert side.get("ssl_certfile") == given.get("redis_tls_cert")
    for seen in (str(shown(options)), str(public_options(options))):
        assert "p/w@" not in seen
        assert "s&=p" not in seen


def test_a_password_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "master").write_text(yaml.safe_dump({"redis_sentinels": ["s1"]}))
    (tmp_path / "word").write_text("secret\n")
    env = {"SALTERN_REDIS_PASSWORD_FILE": str(tmp_path / "word")}
    assert load_master(str(tmp_path), env=env).redis_url == "redis+sentinel://:secret@s1/mymaster/0"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"redis_sentinel_master": "saltern"}, "redis_sentinel_master has no effect without redis_sentinels"),
        ({"redis_tls": True}, "redis_tls has no effect without redis_sentinels"),
        ({"redis_sentinels": ["a/b"]}, "redis_sentinels: 'a/b' is no host; write HOST or HOST:PORT"),
        ({"redis_sentinels": ["s1"], "redis_url": "redis://r/0"}, "name two places"),
        ({"redis_sentinels": ["s1"], "redis_user": "u"}, "redis_user needs redis_password"),
        ({"redis_sentinels": ["s1"], "redis_tls_ca": "/ca"}, "redis_tls: True"),
        ({"redis_sentinels": ["s1"], "redis_tls": True, "redis_tls_cert": "/c"}, "belong together"),
    ],
)
def test_options_that_contradict_each_other(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    (tmp_path / "master").write_text(yaml.safe_dump(given))
    with pytest.raises(ConfigError, match=said):
        load_master(str(tmp_path), env={})

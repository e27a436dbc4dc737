"""The map rest_cherrypy: stock ones are taken, mistakes are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from saltern.api.settings import read_settings
from saltern.kit.config.master import ConfigError


def test_a_stock_map_is_taken(tmp_path: Path) -> None:
    for name in ("crt", "key", "index.html"):
        (tmp_path / name).touch()
    given = {
        "port": "8000",
        "host": "0.0.0.0",
        "ssl_crt": str(tmp_path / "crt"),
        "ssl_key": str(tmp_path / "key"),
        "thread_pool": 100,
        "socket_queue_size": 30,
        "expire_responses": True,
        "app": str(tmp_path / "index.html"),
        "app_path": "gui",
        "static": str(tmp_path),
        "webhook_url": "hooks",
        "webhook_disable_auth": True,
        "authorized_ips": "10.0.0.1",
    }
    settings, notes = read_settings(given)
    assert (settings.port, settings.app_path, settings.webhook_url) == (8000, "/gui", "/hooks")
    assert settings.authorized_ips == ["10.0.0.1"]
    assert len(notes) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "ssl_crt and ssl_key"),
        ({"disable_ssl": True, "port": "x"}, "port must be a whole number"),
        ({"disable_ssl": True, "static": "/no/such"}, "no such directory"),
        ({"disable_ssl": True, "app": "/no/such"}, "no such file"),
        ({"ssl_crt": "/no/such", "ssl_key": "/no/such"}, "ssl_key: /no/such: no such file"),
    ],
)
def test_a_mistake_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(given)
    assert said in str(caught.value)


def test_an_unknown_setting_is_named() -> None:
    _, notes = read_settings({"disable_ssl": True, "max_request_body": 3})
    assert notes == ["rest_cherrypy: there is no setting 'max_request_body'; the nearest is 'max_request_body_size'"]

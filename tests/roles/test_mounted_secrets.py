"""Roles on Secrets as a cluster mounts them: flat keys, the URL of Redis in a file, a Redis that knows its users by a file."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from saltern.kit.keys.keygen import main as keygen
from tests.conftest import await_port, redis_program
from tests.roles.lab import Lab

pytestmark = pytest.mark.roles


class Mounted(Lab):
    """A lab whose URL of Redis is in a file."""

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"SALTERN_REDIS_URL_FILE": str(self.root / "no-url")}


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Lab]:
    made = Mounted(tmp_path, minions=("web1",))
    words = [
        "--out",
        str(tmp_path / "made"),
        "--secrets",
        "--redis-host",
        f"127.0.0.1:{made.port['redis']}",
        "--redis-version",
        "6.2",
    ]
    assert keygen(words) == 0
    shutil.rmtree(made.etc / "keys")
    secrets = {item["metadata"]["name"]: item["data"] for item in json.loads(capsys.readouterr().out)["items"]}
    for name, data in secrets.items():
        directory = made.etc / "keys" / name.removeprefix("saltern-keys-")
        directory.mkdir(parents=True)
        for key, value in data.items():
            (directory / key).write_bytes(base64.b64decode(value))
    given = made.etc / "keys" / "saltern-redis"
    lines = (made.etc / "master").read_text().splitlines()
    (made.etc / "master").write_text("\n".join(line for line in lines if not line.startswith("redis_url")) + "\n")
    server = [
        redis_program(),
        "--port",
        str(made.port["redis"]),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(tmp_path / "redis"),
    ]
    with (tmp_path / "log" / "redis").open("wb") as log:
        made.processes["redis"] = subprocess.Popen(
            [*server, "--aclfile", str(given / "users.acl")], stdout=log, stderr=log
        )
    await_port(made.port["redis"], made.processes["redis"])
    yield made
    made.close()


def test_a_whole_master_runs_on_them(lab: Lab) -> None:
    for name in (*lab.roles, *lab.minions):
        lab.start(name)
    lab.await_ready(*lab.roles, *lab.minions)
    lab.pings()
    with redis.Redis(port=lab.port["redis"], username="probe", password="probe") as probe:
        assert probe.ping()
        with pytest.raises(redis.exceptions.NoPermissionError):
            probe.get("salt:keys")
    with redis.Redis(port=lab.port["redis"]) as nobody, pytest.raises(redis.exceptions.AuthenticationError):
        nobody.ping()

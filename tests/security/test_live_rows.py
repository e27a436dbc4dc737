"""Finding 38.8: a right that the master's files no longer give ends at once, also for tokens that exist."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.access_rows import AccessRows, LiveRows
from saltern.kit.config.master import MasterOptions, load_master
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]


class Files:
    """A master's configuration, a role that runs with it, and a clock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = 0.0
        (directory / "master.d").mkdir()
        (directory / "users").write_text("ann:pw\n")

    def write(self, name: str, text: str) -> None:
        """Write a file anew; the roles look at it at their next look."""
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text)
        # The clock of a file system is coarse.
        if path.stat().st_mtime_ns <= before:
            os.utime(path, ns=(before + 1, before + 1))
        self.now += 1

    def remove(self, name: str) -> None:
        (self.directory / name).unlink()
        self.now += 1

    def live(self) -> LiveRows:
        return LiveRows(load_master(str(self.directory), {}), str(self.directory), lambda: self.now)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    for name in [name for name in os.environ if name.startswith("SALTERN_")]:
        monkeypatch.delenv(name)
    (tmp_path / "config").mkdir()
    return Files(tmp_path / "config")


def rows_text(directory: Path, *rules: str) -> str:
    return f"external_auth: {{file: {{^filename: {directory}/users, ann: [{', '.join(rules)}]}}}}\n"


#: Way to take a right -> (file before, file after; None: it is removed).
TAKEN: dict[str, tuple[str, str | None]] = {
    "the file has another row": ("master.d/rows.conf", "publisher_acl: {ann: [test.ping]}\n"),
    "the file has no row": ("master.d/rows.conf", "publisher_acl: {}\n"),
    "the file is empty": ("master.d/rows.conf", ""),
    "the file is removed": ("master.d/rows.conf", None),
    "the main file": ("master", "publisher_acl: {ann: [test.ping]}\n"),
}


@pytest.mark.parametrize("way", TAKEN)
def test_a_right_that_is_taken_ends_at_once(files: Files, way: str) -> None:
    name, after = TAKEN[way]
    files.write(name, "publisher_acl: {ann: [cmd.run]}\n")
    live = files.live()
    assert live.current().publisher_acl == {"ann": ["cmd.run"]}
    if after is None:
        files.remove(name)
    else:
        files.write(name, after)
    assert "cmd.run" not in str(live.current().publisher_acl)


def test_a_new_file_counts(files: Files) -> None:
    files.write("master.d/1.conf", "publisher_acl: {ann: [cmd.run]}\n")
    live = files.live()
    live.current()
    files.write("master.d/2.conf", "publisher_acl: {ann: [test.ping]}\npublisher_acl_blacklist: {users: [ann]}\n")
    assert live.current().publisher_acl == {"ann": ["test.ping"]}
    assert live.current().publisher_acl_blacklist == {"users": ["ann"]}


def test_a_new_folder_counts(files: Files) -> None:
    (files.directory / "master.d").rmdir()
    files.write("master", "publisher_acl: {ann: [cmd.run]}\n")
    live = files.live()
    live.current()
    files.write("master.d/rows.conf", "publisher_acl: {ann: []}\n")
    assert live.current().publisher_acl == {"ann": []}


def test_an_included_file_counts(files: Files) -> None:
    files.write("more/rows.conf", "publisher_acl: {ann: [cmd.run]}\n")
    files.write("master", "include: more/*.conf\n")
    live = files.live()
    assert live.current().publisher_acl == {"ann": ["cmd.run"]}
    files.write("more/zz.conf", "publisher_acl: {ann: []}\n")
    assert live.current().publisher_acl == {"ann": []}


@pytest.mark.parametrize(
    "text",
    [
        "publisher_acl: {ann: [\n",
        "publisher_acl: 5\n",
        "- a list\n",
        "\x00\n",
        "ret_port: x\n",
    ],
    ids=ascii,
)
def test_a_broken_file_changes_nothing(files: Files, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """It gives nobody a right, takes none, and ends no role."""
    files.write("master.d/rows.conf", "publisher_acl: {ann: [test.ping]}\n")
    live = files.live()
    live.current()
    caplog.set_level(logging.ERROR)
    files.write("master.d/rows.conf", text)
    assert live.current().publisher_acl == {"ann": ["test.ping"]}
    (record,) = caplog.records
    assert "rows.conf" in record.getMessage()
    assert "\n" not in record.getMessage()
    files.now += 10
    live.current()
    assert len(caplog.records) == 1
    files.write("master.d/rows.conf", "publisher_acl: {}\n")
    assert live.current().publisher_acl == {}


@pytest.mark.redis
@pytest.mark.parametrize(
    ("cmd", "fields"),
    [
        ("publish", {"fun": "cmd.run", "arg": ["id"], "tgt": "*"}),
        ("runner", {"fun": "manage.up"}),
        ("wheel", {"fun": "key.list_all"}),
        ("find_jobs", {}),
        ("fleet", {}),
        ("topology", {}),
        ("kept_events", {"after": 0}),
    ],
    ids=str,
)
def test_a_token_ends_with_its_rows(new_worker: NewWorker, files: Files, cmd: str, fields: dict[str, Any]) -> None:
    files.write("master.d/rows.conf", rows_text(files.directory, "'.*'", "'@runner'", "'@wheel'", "'@jobs'"))
    worker = new_worker()
    worker.context._access = files.live()
    worker.accept("web1")
    token = worker.control("login", "api", username="ann", password="pw", eauth="file")["token"]
    assert not isinstance(worker.control(cmd, "api", token=token, **fields), tuple)
    files.write("master.d/rows.conf", rows_text(files.directory))
    assert worker.control(cmd, "api", token=token, **fields)[0] == "AuthorizationError"
    assert worker.control("token_info", "api", of=token)["perms"] == []


@pytest.mark.redis
def test_a_minion_loses_its_right_to_publish(new_worker: NewWorker, files: Files) -> None:
    files.write("master.d/peer.conf", "peer: {web1: [test.ping]}\n")
    worker = new_worker()
    worker.context._access = files.live()
    minion = worker.minion("web1")
    asked = {"fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "ret": ""}
    assert minion.ask("minion_pub", **asked)["minions"] == ["web1"]
    files.write("master.d/peer.conf", "peer: {}\n")
    assert minion.ask("minion_pub", **asked) == {}


@pytest.mark.redis
def test_an_address_is_shut_out_at_once(new_worker: NewWorker, files: Files) -> None:
    files.write("master", rows_text(files.directory, "test.ping"))
    worker = new_worker()
    worker.context._access = files.live()
    signed = worker.control("login", "api", username="ann", password="pw", eauth="file", address="192.0.2.9")
    files.write("master.d/api.conf", "rest_cherrypy: {api_acl: {users: {ann: [10.0.0.1]}}}\n")
    asked = {"of": signed["token"], "address": "192.0.2.9"}
    assert worker.control("token_info", "api", **asked)[0] == "TokenAuthenticationError"


# -------------------------------------------------------------------------------------------------------- ordinary use


@pytest.mark.ordinary
def test_files_are_looked_at_once_a_second(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write("master.d/rows.conf", "publisher_acl: {ann: [test.ping]}\n")
    live = files.live()
    live.current()
    looks: list[object] = []
    monkeypatch.setattr(os, "stat", lambda *given, **named: looks.append(given))
    for _ in range(1000):
        live.current()
    assert looks == []


@pytest.mark.ordinary
def test_the_environment_still_counts(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALTERN_PUBLISHER_ACL", "{ann: [test.ping]}")
    live = files.live()
    files.write("master.d/rows.conf", "publisher_acl: {ann: [cmd.run]}\n")
    assert live.current().publisher_acl == {"ann": ["test.ping"]}


@pytest.mark.ordinary
def test_without_files_the_options_count() -> None:
    options = MasterOptions(publisher_acl={"ann": ["test.ping"]})
    live = LiveRows(options)
    assert live.current().publisher_acl == {"ann": ["test.ping"]}
    assert isinstance(replace(live.current(), peer={}), AccessRows)

"""ansible and postgres_cluster: played programs, whose answers were recorded from Ansible 2.14 and postgresql-common 248."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, NotAvailable
from tests.statecore.conftest import PlainMinion

PROGRAMS = Path(__file__).with_name("ansible_programs")


def play(changed: int = 0, failures: int = 0) -> dict[str, Any]:
    host: dict[str, Any] = {"changed": bool(changed), "diff": [{"before": "a", "after": "b"}]}
    if failures:
        host = {"changed": False, "failed": True, "msg": "no"}
    tasks = [{"task": {"name": "copy"}, "hosts": {"localhost": host}}]
    stats = {"localhost": {"changed": changed, "failures": failures, "unreachable": 0, "ok": 1, "skipped": 0}}
    return {"plays": [{"play": {"name": "all"}, "tasks": tasks}], "stats": stats}


@pytest.fixture
def minion(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlainMinion:
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Host(), **changes}))
    monkeypatch.setenv("PATH", f"{PROGRAMS}:/usr/bin:/bin")
    monkeypatch.setenv("PLAYED", str(tmp_path))
    return plain


def told(minion: PlainMinion, state: str, test: bool = False, **arguments: Any) -> tuple[Any, Any, Any]:
    entry = minion.state(state, test=test, **arguments)
    return entry["result"], entry["changes"], entry["comment"]


def test_clusters(minion: PlainMinion, tmp_path: Path) -> None:
    made = {"15/main": "Present"}
    wanted = {"name": "main", "version": 15, "port": 5432, "locale": "C", "data_checksums": True, "wal_segsize": 32}
    assert told(minion, "postgres_cluster.present", True, **wanted) == (
        None,
        made,
        "Cluster 15/main is set to be created",
    )
    assert told(minion, "postgres_cluster.present", **wanted) == (True, made, "The cluster 15/main has been created")
    assert (tmp_path / "asked").read_text() == "--port 5432 --locale C 15 main -- --data-checksums --wal-segsize 32\n"
    assert told(minion, "postgres_cluster.present", **wanted) == (True, {}, "Cluster 15/main is already present")
    assert told(minion, "postgres_cluster.present", **wanted | {"port": 1})[0] is False
    assert minion.call("postgres.cluster_list") == ["15/main"]
    listed = minion.call("postgres.cluster_list", verbose=True)["15/main"]
    assert listed == {
        "port": 5432,
        "status": "down",
        "user": "postgres",
        "datadir": "/var/lib/postgresql/15/main",
        "log": "/var/log/postgresql/x y.log",
    }
    gone = {"name": "main", "version": 15}
    assert told(minion, "postgres_cluster.absent", True, **gone)[::2] == (None, "Cluster 15/main is set to be removed")
    (tmp_path / "stuck").touch()
    assert told(minion, "postgres_cluster.absent", **gone)[::2] == (
        False,
        "Failed to remove cluster 15/main: is running",
    )
    (tmp_path / "stuck").unlink()
    assert told(minion, "postgres_cluster.absent", **gone) == (
        True,
        {"main": "Absent"},
        "Cluster 15/main has been removed",
    )
    assert (
        told(minion, "postgres_cluster.absent", **gone)[2] == "Cluster 15/main is not present, so it cannot be removed"
    )
    failed = told(minion, "postgres_cluster.present", name="bad", version="99")
    assert failed == (False, {}, "Failed to create cluster 99/bad")


def test_modules_of_ansible(minion: PlainMinion, tmp_path: Path) -> None:
    assert minion.call("ansible.call", "ping", data="x y") == {"ping": "pong"}
    assert (tmp_path / "asked").read_text() == 'localhost -i /dev/null -m ping -a data="x y"\n'
    assert minion.call("ansible.call", "command", "echo hello") == {"output": "hello"}
    assert set(minion.call("ansible.call", "broken")) == {"Error", "Output"}
    assert minion.call("ansible.call", "none") == {
        "Exitcode": 2,
        "Error": "went wrong",
        "Given JSON output": "localhost | FAILED! => {}",
    }
    assert minion.call("ansible.list") == ["ansible.builtin.ping", "community.x.y", "ping"]
    assert minion.call("ansible.list", "*.x.*") == ["community.x.y"]
    assert minion.call("ansible.help", "ping") == {"module": "ping", "examples": "- ping:"}
    assert minion.call("ansible.help", "ping", "examples") == {"examples": "- ping:"}
    for args, said in (([], "Please tell me what module"), (["none"], "ansible-doc failed: no")):
        with pytest.raises(CommandError, match=said):
            minion.call("ansible.help", *args)
    assert told(minion, "ansible.call", True, name="x", ping=[{"data": "z"}])[::2] == (
        None,
        "Modules of Ansible would be called: ping",
    )
    assert told(minion, "ansible.call", name="x", ping=[{"data": "z"}]) == (True, {"ping": {"ping": "pong"}}, "")
    assert told(minion, "ansible.call", name="x")[0] is False


def test_inventories_and_playbooks(minion: PlainMinion, tmp_path: Path) -> None:
    place = tmp_path / "books"
    (place / "inner").mkdir(parents=True)
    for name in ("a.yml", "b.txt", "inner/c.yaml", "inner/hosts"):
        (place / name).touch()
    assert minion.call("ansible.discover_playbooks", str(place)) == {
        str(place): {
            "a.yml": {"fullpath": f"{place}/a.yml"},
            "inner/c.yaml": {"fullpath": f"{place}/inner/c.yaml", "custom_inventory": f"{place}/inner/hosts"},
        }
    }
    assert minion.call("ansible.discover_playbooks", locations=["/none"]) == {"/none": {}}
    for arguments, said in (
        ({}, "You have to specify"),
        ({"path": "x"}, "not an absolute path"),
        ({"path": "/none"}, "not a dir"),
    ):
        with pytest.raises(CommandError, match=said):
            minion.call("ansible.discover_playbooks", **arguments)
    inventory = str(place / "inner/hosts")
    assert minion.call("ansible.targets", inventory)["all"] == {"children": ["web"]}
    assert minion.call("ansible.targets", inventory, yaml=True) == "all: {}"
    assert list(minion.call("ansible.targets", inventories=[inventory])) == [inventory]
    with pytest.raises(CommandError, match="Ansible inventory file not found: /none"):
        minion.call("ansible.targets", "/none")


BOOKS = [
    (
        play(),
        0,
        (True, {}, "No changes to be made from playbook p.yml"),
        (True, "No changes to be made from playbook p.yml"),
    ),
    (
        play(changed=1),
        0,
        (
            None,
            {"all": {"copy": {"localhost": [{"before": "a", "after": "b"}]}}},
            "Changes will be made from playbook p.yml",
        ),
        (True, "Changes were made by playbook p.yml"),
    ),
    (
        play(failures=1),
        2,
        (False, {"all": {"copy": {"localhost": "no"}}}, "There were some issues running the playbook p.yml"),
        (False, "There were some issues running the playbook p.yml"),
    ),
]


@pytest.mark.parametrize(("answer", "code", "would", "does"), BOOKS)
def test_a_playbook(
    minion: PlainMinion, tmp_path: Path, answer: Any, code: int, would: tuple[Any, Any, str], does: tuple[Any, str]
) -> None:
    (tmp_path / "answer").write_text(json.dumps(answer))
    (tmp_path / "code").write_text(str(code))
    given = {"name": "p.yml", "rundir": str(tmp_path), "ansible_kwargs": {"extra_vars": {"a": 1}, "tags": "x"}}
    assert told(minion, "ansible.playbooks", True, **given) == would
    result = told(minion, "ansible.playbooks", **given)
    assert result[::2] == does
    assert result[1] == would[1]
    first, second = (tmp_path / "asked").read_text().splitlines()
    assert first == 'json p.yml --check --diff --tags=x --forks=5 --extra-vars={"a": 1}'
    assert "--check" not in second


def test_a_playbook_without_json(minion: PlainMinion, tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("ERROR! the playbook could not be found")
    (tmp_path / "code").write_text("1")
    result = told(minion, "ansible.playbooks", name="p.yml")
    assert (result[0], result[1]) == (False, {})
    assert "could not be found" in result[2]
    assert told(minion, "ansible.playbooks", name="p.yml", git_repo="https://x")[0] is False


def test_a_host_without_ansible(plain: PlainMinion) -> None:
    with pytest.raises(NotAvailable, match="the host has no program ansible"):
        plain.call("ansible.call", "ping")

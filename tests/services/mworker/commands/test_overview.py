"""Lists of minions, the parts of the master, and jobs as tables, as pages ask for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.redis

Worker = Any

GRAINS = {
    "os": "Debian",
    "osrelease": "12",
    "osarch": "amd64",
    "saltversion": "3008.3",
    "num_cpus": 4,
    "mem_total": 3900,
    "ipv4": ["127.0.0.1", "10.0.0.7"],
}


def test_the_fleet(worker: Worker) -> None:
    worker.accept("web1", "web2", "db1")
    now = int(time.time() * 1000)
    worker.store.cache.set_grains("web1", GRAINS)
    worker.store.cache.set_grains("web2", {"os": ["odd"], "num_cpus": "four", "ipv4": "x", "mem_total": -1})
    worker.store.presence.seen("web1", now)
    worker.store.presence.seen("web2", now - 5)
    worker.store.presence.left("web2", now)
    found = worker.control("fleet", tgt="web*")
    assert (found["missing"], found["window"]) == ([], worker.context.options.presence_window)
    web1, web2 = found["minions"]
    assert web1 == {
        "id": "web1",
        "seen": now,
        "present": True,
        "saltern": False,
        "os": "Debian",
        "release": "12",
        "arch": "amd64",
        "virtual": "",
        "salt": "3008.3",
        "address": "10.0.0.7",
        "cpus": 4,
        "memory": 3900,
    }
    assert (web2["present"], web2["seen"], web2["os"], web2["cpus"], web2["memory"]) == (False, now - 5, "", 0, 0)
    assert worker.control("fleet", tgt="G@os:Debian", tgt_type="compound", ids=True)["minions"] == ["web1"]
    assert worker.control("fleet", tgt="web1,gone", tgt_type="list", ids=True)["missing"] == ["gone"]
    assert worker.control("fleet", tgt="( web1", tgt_type="compound")[0] == "TargetError"


def test_changed_grains_are_seen(worker: Worker) -> None:
    worker.accept("web1")
    worker.store.cache.set_grains("web1", GRAINS)
    assert worker.control("fleet")["minions"][0]["release"] == "12"
    worker.store.cache.set_grains("web1", {**GRAINS, "osrelease": "13"})
    assert worker.control("fleet")["minions"][0]["release"] == "13"


def test_the_parts_of_the_master(worker: Worker) -> None:
    worker.accept("web1")
    worker.store.publications.give_sign("publisher-a", 1_000)
    figures = {"at": int(time.time() * 1000), "pools": {"default": {"waiting": 3, "workers": 2, "busy": 2}}}
    assert worker.control("figures", "reqserver", name="req-a", figures=figures) is None
    assert worker.control("figures", "reqserver", name="old", figures={"at": 1}) is None
    found = worker.control("topology")
    assert found["reqservers"] == {"req-a": figures}
    assert found["publishers"]["publisher-a"]["seen"] == 1_000
    assert found["minions"]["accepted"] == 1
    assert found["redis"]["redis_version"]
    assert "test" in "".join(each["name"] for each in found["clients"])
    assert set(found["lengths"]) == {"publications", "events", "jobs", "waiting_jobs", "runners"}


@pytest.mark.parametrize(
    "fields", [{}, {"name": "a"}, {"name": "a", "figures": []}, {"name": 1, "figures": {}}], ids=str
)
def test_wrong_figures_are_refused(worker: Worker, fields: dict[str, Any]) -> None:
    assert worker.control("figures", "reqserver", **fields)[0] == "InvocationError"
    assert worker.control("figures", "cli", name="a", figures={})[0] == "AuthorizationError"


def test_a_job_as_a_table_in_pages(worker: Worker) -> None:
    names = [f"m{number:03}" for number in range(150)]
    worker.accept(*names)
    jid = worker.control("publish", tgt="*", fun="test.echo", arg=["x"], request_id="r")["jid"]
    for name in names:
        ret = {"jid": jid, "id": name, "fun": "test.echo", "return": "x", "retcode": int(name == "m149")}
        worker.store.jobs.record_return(ret, ttl=60)
    first = worker.control("job_matrix", jid=jid)
    assert (len(first["rows"]), first["cursor"]) == (100, "m099")
    second = worker.control("job_matrix", jid=jid, cursor=first["cursor"])
    assert [row["id"] for row in second["rows"]] == names[100:]
    assert (second["rows"][-1]["failed"], second["rows"][0]["failed"], second["cursor"]) == (True, False, None)
    (row,) = worker.control("job_matrix", jid=jid, minions=["m007", "gone"])["rows"]
    assert (row["id"], row["preview"]) == ("m007", '"x"')
    assert worker.control("job_matrix", jid=jid, minions=names)[0] == "InvocationError"
    assert worker.control("job_matrix", jid="20200101000000000000")["rows"] == []


def test_how_a_job_was_called(worker: Worker) -> None:
    worker.accept("web1")
    jid = worker.control(
        "publish", tgt="web1", fun="user.setpassword", arg=["ann", "hash"], request_id="r", user="bob"
    )["jid"]
    found = worker.control("job_call", jid=jid)
    assert (found["fun"], found["tgt"], found["user"]) == ("user.setpassword", "web1", "bob")
    assert worker.control("job_call", jid="20200101000000000000")[0] == "UnknownJob"


@pytest.mark.parametrize("cmd", ["fleet", "topology", "job_matrix", "job_call"])
def test_they_need_the_right_to_ask_about_jobs(new_worker: Callable[..., Worker], cmd: str) -> None:
    worker = new_worker(control_acl={"ann": ["test.*"]})
    assert worker.control(cmd, "ann")[0] == "AuthorizationError"

"""Minions that apply states when they start, send returns elsewhere too, tell that they are there, and hold jobs back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Held, Lab, until

pytestmark = pytest.mark.roles

RETURNER = """\
def returner(ret):
    with open(__opts__["cachedir"] + "/told", "a") as file:
        file.write(ret["id"] + " " + ret["jid"] + " " + ret["fun"] + "\\n")
"""


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Iterator[Lab]:
    made = module_labs()
    (made.tree / "salt" / "started.sls").write_text("/srv/started:\n  file.managed:\n    - contents: x\n")
    (made.tree / "salt" / "_returners").mkdir()
    (made.tree / "salt" / "_returners" / "told.py").write_text(RETURNER)
    more: dict[str, Any] = {
        "startup_states": "sls",
        "sls_list": ["started"],
        "start_event_grains": ["os"],
        "process_count_max": 2,
        "redis.host": "127.0.0.1",
        "redis.port": made.port["redis"],
        "redis.db": 5,
        "return": ["redis"],
    }
    options = made.root / "minions" / "web1" / "minion"
    options.write_text(options.read_text() + yaml.safe_dump(more))
    (made.host("web1") / "srv").mkdir(exist_ok=True)
    made.start_all()
    made.salt("*", "saltutil.sync_all")
    yield made
    assert made.tracebacks() == []


def test_states_are_applied_at_the_start(lab: Lab) -> None:
    until((lab.host("web1") / "srv" / "started").exists, SOON, "the state was applied")
    jobs = until(lambda: lab.runner("jobs.list_jobs", "search_function=state.sls"), SOON, "the return")
    (job,) = jobs.values()
    assert (job["Target"], job["Arguments"]) == ("web1", [["started"]])
    assert not (lab.host("web2") / "srv" / "started").exists()


def test_every_return_goes_to_the_returner_of_the_configuration(lab: Lab) -> None:
    def stored() -> dict[str, Any] | None:
        with lab.redis() as server:
            server.select(5)
            jid = server.get("web1:test.echo")
            return json.loads(server.hget(f"ret:{jid}", "web1")) if jid else None

    lab.salt("*", "test.echo", "hello")
    ret = until(stored, SOON, "the return is in Redis")
    assert (ret["id"], ret["fun"], ret["return"], ret["retcode"]) == ("web1", "test.echo", "hello", 0)


def test_a_return_goes_to_the_returner_of_the_command(lab: Lab) -> None:
    jobs = lab.ok("salt", "--return", "told,nothing", "web2", "test.ping")
    assert "web2" in jobs.out
    file = lab.cache("web2") / "told"
    until(file.exists, SOON, "the returner was called")
    minion, jid, fun = file.read_text().split()
    assert (minion, fun) == ("web2", "test.ping")
    assert jid in lab.runner("jobs.list_jobs", "search_function=test.ping")
    assert "Returner nothing.returner could not be loaded" in lab.log("web2")
    assert lab.call("web2", "--return", "told", "test.ping").code == 0
    assert len(file.read_text().splitlines()) == 2


def test_jobs_wait_for_a_place(lab: Lab) -> None:
    holds = (Held(lab), Held(lab))
    jobs = [lab.started("salt", "-t", "60", *held.words("web1")) for held in holds]
    for held in holds:
        until((held.directory / "started-web1").exists, SOON, "the held job runs")
    # What looks at jobs has no turn to wait for.
    running = lab.salt("web1", "-t", "60", "saltutil.running")["web1"]
    assert [job["fun"] for job in running] == ["held.wait", "held.wait"]
    third = lab.started("salt", "-t", "60", "web1", "test.ping")
    until(
        lambda: "the job waits: process_count_max (2) jobs are running" in lab.log("web1"), SOON, "the third job waits"
    )
    for held in holds:
        held.let_go()
    for one in (*jobs, third):
        assert lab.finished(one).code == 0


def test_states_fire_events(lab: Lab) -> None:
    (lab.tree / "salt" / "telling.sls").write_text(
        "site/told:\n  event.send:\n    - data: {a: 1}\n    - more: 2\n    - with_grains: [id]\n    - order: last\n"
        "changing:\n  test.succeed_with_changes\n"
        "waiting:\n  event.wait:\n    - name: site/waited\n    - data: {b: 3}\n    - watch:\n      - test: changing\n"
    )
    listening = lab.started("salt-run", "state.event", "site/*", "count=2")

    def applied() -> bool:
        """Again until both were heard: the listener may begin later."""
        if listening.poll() is None:
            results = lab.salt("web2", "state.apply", "telling")["web2"].values()
            assert [one["result"] for one in results] == [True] * 3, results
        return listening.poll() is not None

    until(applied, SOON, "both events")
    out, _ = listening.communicate()
    heard = dict(line.split("\t") for line in out.splitlines())
    assert sorted(heard) == ["site/told", "site/waited"]
    told = json.loads(heard["site/told"])
    assert (told["id"], told["tag"], told["data"]) == (
        "web2",
        "site/told",
        {"a": 1, "more": 2, "grains": {"id": "web2"}},
    )
    assert json.loads(heard["site/waited"])["data"] == {"b": 3}


def test_the_start_event_carries_grains(lab: Lab) -> None:
    listening = lab.started("salt-run", "state.event", "salt/minion/web1/start", "count=1")
    until(lambda: _restarted(lab, listening), 4 * SOON, "the start event")
    out, _ = listening.communicate()
    tag, _, data = out.strip().partition("\t")
    assert tag == "salt/minion/web1/start"
    assert sorted(json.loads(data)["grains"]) == ["os"]


def test_a_minion_signs_in_with_the_keys_that_it_made_anew(lab: Lab) -> None:
    """It took its old pair out of its memory: accepted so, it was denied at its next start."""
    file = lab.root / "minions" / "web2" / "pki" / "minion.pub"
    before = file.read_text()
    assert lab.salt("web2", "saltutil.regen_keys") == {"web2": True}
    lab.ok("salt-key", "-y", "-d", "web2")
    # By a publication that it cannot read a minion knows that keys have changed.
    until(lambda: lab.salt("web1", "test.ping") and "web2" in lab.keys()["minions"], SOON, "web2 was accepted anew")
    assert file.read_text() != before
    shown = lab.ok("salt-key", "-p", "web2", "--out", "json").data["minions"]["web2"]
    assert shown.split() == file.read_text().split()
    lab.restart("web2")
    lab.await_ready("web2")
    assert lab.salt("web2", "test.ping") == {"web2": True}


def _restarted(lab: Lab, listening: Any) -> bool:
    """Restarts the minion until somebody has heard of it: the listener may begin later."""
    if listening.poll() is not None:
        return True
    lab.restart("web1")
    lab.await_ready("web1")
    return False

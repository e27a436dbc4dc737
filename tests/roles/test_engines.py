"""Engines of masters and minions: processes of their own, with events, runners and functions, that are started again."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from masterstore import keys
from saltern.kit.links.event_bus import unpack
from tests.ports import free_port
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until
from tests.roles.test_alone import AloneMinion, alone

__all__ = ["alone"]

pytestmark = pytest.mark.roles

#: Answers events of the master's bus, with runners and jobs.
OF_THE_MASTER = """\
import os

import salt.utils.event


def start(greeting, fails=False):
    with salt.utils.event.get_master_event(__opts__, __opts__["sock_dir"]) as bus:
        about = {"name": __engine_name__, "greeting": greeting, "role": __opts__["__role"], "pid": os.getpid()}
        bus.fire_event(about, "site/up/master")
        for event in bus.iter_events(tag="site/ask/", full=True):
            what = event["tag"].rpartition("/")[2]
            if what == "die":
                raise RuntimeError("told to die")
            if what == "runner":
                answer = __runners__["test.arg"](event["data"]["n"], a=1)
            elif what == "broken":
                try:
                    answer = __runners__["no.such"]()
                except Exception as error:
                    answer = str(error)
            elif what == "names":
                answer = ["jobs.list_jobs" in __runners__, "no.such" in __runners__]
            else:
                answer = __salt__["test.echo"](event["data"]["n"])
            bus.fire_event({"answer": answer}, "site/answer/" + what)
"""

#: Answers events of the minion's own bus on the master's.
OF_THE_MINION = """\
import os

import salt.utils.event


def __virtual__():
    return "listener"


def start(word):
    bus = salt.utils.event.get_event("minion", opts=__opts__, sock_dir=__opts__["sock_dir"], listen=True)
    about = {"name": __engine_name__, "word": word, "os": __grains__["os"], "runners": list(__runners__)}
    __salt__["event.send"]("site/up/minion", {**about, "role": __opts__["__role"], "pid": os.getpid()})
    while True:
        event = bus.get_event(tag="site/ask/", wait=0, full=True)
        __salt__["event.send"]("site/heard", {"tag": event["tag"], "n": event["data"]["n"] + 1})
"""


@pytest.fixture(scope="module")
def hook() -> int:
    return free_port()


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory, hook: int) -> Lab:
    """The master has a user's engine twice, one that does not exist, and webhook; web1 has a user's and script, web2 none."""
    place = tmp_path_factory.mktemp("engines")
    (place / "answers.py").write_text(OF_THE_MASTER)
    made = module_labs(
        minions=("web1", "web2"),
        options={
            "engines_dirs": [str(place)],
            "engines": [
                {"answers": {"greeting": "hello"}},
                {"missing": {}},
                {"webhook": {"port": hook, "address": "127.0.0.1"}},
                "reactor",
            ],
            "events_kept": ["site/*", "salt/engines/*"],
        },
    )
    script = made.root / "printing"
    script.write_text('#!/bin/sh\necho \'{"tag": "site/printed", "data": {"n": 1}}\'\necho nothing\necho "{}"\n')
    script.chmod(0o755)
    options = made.root / "minions" / "web1" / "minion"
    engines = {
        "ears": {"engine_module": "listener", "word": "hi"},
        "script": {"cmd": str(script), "interval": 0.2, "onchange": True},
    }
    options.write_text(options.read_text() + yaml.safe_dump({"engines": engines, "host_root": "/"}))
    (made.tree / "salt" / "_engines").mkdir()
    (made.tree / "salt" / "_engines" / "own.py").write_text(OF_THE_MINION)
    made.start_all()
    made.pings()
    # The engine's module is fetched while the engine already fails for want of it.
    assert made.salt("web1", "saltutil.sync_engines") == {"web1": ["engines.own"]}
    return made


def events(lab: Lab, tag: str) -> list[dict[str, Any]]:
    """The data of the kept events with this tag."""
    found = []
    for _, fields in redis.Redis.from_url(lab.master_options.redis_url).xrange(keys.EVENTS):
        event = next((unpack(value) for value in fields.values() if unpack(value)), None)
        if event is not None and event[0] == tag:
            found.append(event[1])
    return found


def heard(lab: Lab, tag: str, count: int = 1) -> dict[str, Any]:
    """The data of the event number ``count`` with this tag, as soon as there is one."""
    return until(lambda: events(lab, tag)[count - 1 :], SOON, f"{count} events {tag}")[0]


def asked(lab: Lab, what: str, n: int = 1) -> Any:
    before = len(events(lab, f"site/answer/{what}"))
    assert lab.runner("event.send", f"site/ask/{what}", json.dumps({"n": n})) is True
    return heard(lab, f"site/answer/{what}", before + 1)["answer"]


def test_a_masters_engine_has_events_runners_and_functions(lab: Lab) -> None:
    about = heard(lab, "site/up/master")
    assert {name: about[name] for name in ("name", "greeting", "role")} == {
        "name": "answers",
        "greeting": "hello",
        "role": "master",
    }
    assert asked(lab, "function", 5) == 5
    assert asked(lab, "runner", 7)["args"] == [7]
    assert asked(lab, "runner", 8)["kwargs"]["a"] == 1
    assert "no.such" in asked(lab, "broken")
    assert asked(lab, "names") == [True, False]


def test_a_masters_engine_that_fails_is_started_again(lab: Lab) -> None:
    before = heard(lab, "site/up/master")["pid"]
    lab.runner("event.send", "site/ask/die", '{"n": 1}')
    assert heard(lab, "site/up/master", 2)["pid"] != before
    assert "the engine answers failed: told to die" in lab.log("reactor")
    assert "it starts again in" in lab.log("reactor")
    assert asked(lab, "function", 6) == 6


def test_what_cannot_run_is_named_and_stops_nothing(lab: Lab) -> None:
    log = lab.log("reactor")
    assert "the engine missing failed: 'missing.start' is not available" in log
    assert "the engine reactor is not started: the role reactor reads the option" in log


def test_a_post_becomes_an_event(lab: Lab, hook: int) -> None:
    url = f"http://127.0.0.1:{hook}"

    def posted(path: str, body: bytes, **headers: str) -> int:
        request = urllib.request.Request(f"{url}/{path}", body, {"X-Mine": "1", **headers})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    until(lambda: posted("a/b", b'{"n": 1}') == 200, SOON, "an answer of the engine webhook")
    data = heard(lab, "salt/engines/hook/a/b")
    assert data["body"] in (b'{"n": 1}', '{"n": 1}')
    assert data["headers"]["X-Mine"] == "1"
    assert posted("c", b"", **{"Content-Length": "99999999999"}) == 413


def test_a_minions_engine_has_its_own_bus_and_the_masters(lab: Lab) -> None:
    about = heard(lab, "site/up/minion")
    assert about["id"] == "web1"
    data = about["data"]
    assert (data["name"], data["word"], data["role"], data["runners"]) == ("ears", "hi", "minion", [])
    for number in (1, 2):
        assert lab.salt("web1", "event.fire", json.dumps({"n": number}), "site/ask/minion") == {"web1": True}
        assert heard(lab, "site/heard", number)["data"]["n"] == number + 1


def test_lines_of_a_script_become_events_once(lab: Lab) -> None:
    assert heard(lab, "site/printed")["data"]["n"] == 1
    log = until(lambda: lab.log("web1").count("a line cannot be read") > 1 and lab.log("web1"), SOON, "two runs")
    assert "nothing" in log
    assert len(events(lab, "site/printed")) == 1


def test_a_killed_engine_of_a_minion_is_started_again(lab: Lab) -> None:
    count = len(until(lambda: events(lab, "site/up/minion"), SOON, "the engine"))
    os.kill(events(lab, "site/up/minion")[-1]["data"]["pid"], signal.SIGKILL)
    assert heard(lab, "site/up/minion", count + 1)
    until(lambda: "the engine ears ended: signal 9" in lab.log("web1"), SOON, "a line in the log")


def test_engines_end_with_their_minion_and_their_reactor(lab: Lab) -> None:
    """Also if it is killed. Runs last: the lab is of no use afterwards."""
    of_minion = events(lab, "site/up/minion")[-1]["data"]["pid"]
    of_master = events(lab, "site/up/master")[-1]["pid"]
    lab.kill("web1", signal.SIGTERM)
    until(lambda: not Path(f"/proc/{of_minion}").exists(), SOON, "the end of the minion's engine")
    lab.kill("reactor", signal.SIGKILL)
    until(lambda: not Path(f"/proc/{of_master}").exists(), SOON, "the end of the reactor's engine")
    lab.start("reactor")
    lab.await_ready("reactor")
    count = len(events(lab, "site/up/master"))
    again = heard(lab, "site/up/master", count)
    lab.kill("reactor", signal.SIGTERM)
    until(lambda: not Path(f"/proc/{again['pid']}").exists(), SOON, "the end of the engine")


def test_of_two_reactors_one_runs_the_engines(new_lab: NewLab, tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(OF_THE_MASTER)
    engines = {"answers": {"greeting": "hello"}}
    made = new_lab(minions=(), options={"engines_dirs": [str(tmp_path)], "engines": engines, "events_kept": ["site/*"]})
    made.port["reactor2"] = free_port()
    made.start_all()
    made.start("reactor2")
    made.await_ready("reactor2")
    heard(made, "site/up/master")
    leader = until(
        lambda: [name for name in ("reactor", "reactor2") if "this reactor runs the engines" in made.log(name)],
        SOON,
        "a leader",
    )
    assert len(leader) == 1
    made.kill(leader[0], signal.SIGTERM)
    other = {"reactor": "reactor2", "reactor2": "reactor"}[leader[0]]
    until(lambda: "this reactor runs the engines" in made.log(other), SOON, "the other reactor")
    assert heard(made, "site/up/master", 2)["greeting"] == "hello"


def test_a_minion_without_a_master_has_engines(alone: AloneMinion) -> None:
    alone.end()
    directory = alone.root / "engines"
    directory.mkdir()
    text = OF_THE_MINION.replace(
        '__salt__["event.send"]("site/heard",', '__salt__["test.ping"](); open(word, "w").write(str('
    )
    text = text.replace('event["data"]["n"] + 1})', 'event["data"]["n"] + 1}))')
    (directory / "own.py").write_text(text)
    options = json.loads((alone.root / "minion").read_text())
    told = alone.root / "told"
    options |= {"engines_dirs": [str(directory)], "engines": [{"listener": {"word": str(told)}}], "startup_states": ""}
    (alone.root / "minion").write_text(json.dumps(options | {"schedule": {}, "beacons": {}}))
    alone.restart()

    def answered() -> str:
        alone.call("event.fire", '{"n": 1}', "site/ask/it")
        return told.read_text() if told.exists() else ""

    assert "'n': 2" in until(answered, SOON, "the engine's answer")
    assert alone.end() == 0

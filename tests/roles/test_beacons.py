"""Beacons of minions, as events on the master's bus: of configuration, pillar, operators and users; and none on idle minions."""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = pytest.mark.roles

USERS = """\
def __virtual__():
    return "counting"


def beacon(config):
    __context__["looks"] = __context__.get("looks", 0) + 1
    return [{"tag": "look", "number": __context__["looks"], "os": __grains__["os"]}]
"""


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Iterator[Lab]:
    """web1 watches its files by configuration, web2 has the user's beacon in its pillar, idle has nothing."""
    made = module_labs(minions=("web1", "web2", "idle"))
    options = made.root / "minions" / "web1" / "minion"
    beacons = {"inotify": [{"files": {"/srv/watched": {"recurse": True}}}, {"disable_during_state_run": True}]}
    options.write_text(options.read_text() + yaml.safe_dump({"beacons": beacons}))
    (made.host("web1") / "srv" / "watched").mkdir(parents=True)
    pillar = made.tree / "pillar" / "web2.sls"
    pillar.write_text(pillar.read_text() + yaml.safe_dump({"beacons": {"counting": []}}))
    (made.tree / "salt" / "_beacons").mkdir()
    (made.tree / "salt" / "_beacons" / "counting.py").write_text(USERS)
    made.start_all()
    made.salt("*", "saltutil.sync_all")
    yield made
    assert made.tracebacks() == []


class Heard:
    """The events of the bus, as ``salt-run state.event`` prints them."""

    def __init__(self, lab: Lab, tag: str) -> None:
        self._process = lab.started("salt-run", "state.event", tag)
        self._lines: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def one(self, again: Callable[[], Any] = lambda: None) -> tuple[str, Any]:
        """The next event. ``again`` is done until it comes: the listener may begin later than what it is to hear."""

        def come() -> str:
            again()
            try:
                return self._lines.get(timeout=0.3)
            except queue.Empty:
                return ""

        tag, _, data = until(come, SOON, "an event").partition("\t")
        return tag, json.loads(data)

    def rest(self) -> list[str]:
        """Ends it; the lines that were not looked at."""
        self._process.kill()
        self._thread.join()
        self._process.wait()
        return [self._lines.get() for _ in range(self._lines.qsize())]


def below(pid: int) -> list[int]:
    """Processes that a process has started, and those that these have."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    direct = [int(one) for one in children.read_text().split()] if children.exists() else []
    return [*direct, *(one for child in direct for one in below(child))]


def watchers(lab: Lab) -> dict[str, int]:
    """How many processes each minion is: itself, its zygote, what that forked."""
    return {minion: 1 + len(below(lab.processes[minion].pid)) for minion in lab.minions}


def test_an_idle_minion_has_no_process_for_beacons(lab: Lab) -> None:
    until(lambda: watchers(lab) == {"web1": 3, "web2": 3, "idle": 2}, SOON, "a process for each that has beacons")


class Touching:
    """Makes a new file in the watched directory each time."""

    numbers = itertools.count()

    def __init__(self, lab: Lab) -> None:
        self._directory = lab.host("web1") / "srv" / "watched"

    def __call__(self) -> None:
        (self._directory / f"file{next(self.numbers)}").write_text("")


def test_a_changed_file_is_an_event(lab: Lab) -> None:
    heard = Heard(lab, "salt/beacon/web1/*")
    tag, data = heard.one(Touching(lab))
    heard.rest()
    assert tag == "salt/beacon/web1/inotify//srv/watched"
    assert (data["id"], data["change"]) == ("web1", "IN_CREATE")
    assert data["path"].startswith("/srv/watched/file")


def test_a_users_beacon_of_the_pillar_remembers_what_it_saw(lab: Lab) -> None:
    heard = Heard(lab, "salt/beacon/web2/*")
    first, second = heard.one(), heard.one()
    heard.rest()
    assert first[0] == second[0] == "salt/beacon/web2/counting/look"
    assert second[1]["number"] == first[1]["number"] + 1
    assert first[1]["id"] == "web2"


def test_operators_add_and_remove_beacons(lab: Lab) -> None:
    heard = Heard(lab, "salt/beacon/idle/*")
    data = '[{"processes": {"no-such-process": "stopped"}}]'
    assert lab.salt("idle", "beacons.add", "ps", data)["idle"] == {"comment": "Added beacon: ps.", "result": True}
    tag, event = heard.one()
    assert (tag, event["no-such-process"], event["id"]) == ("salt/beacon/idle/ps/", "Stopped", "idle")
    heard.rest()
    refused = lab.run("salt", "--out", "json", "--static", "idle", "beacons.add", "ps2", data).data["idle"]
    assert refused == {"comment": 'Beacon "ps2" is not available.', "result": False}
    assert lab.salt("idle", "beacons.delete", "ps")["idle"]["result"] is True
    until(lambda: watchers(lab)["idle"] == 2, SOON, "the process for beacons has ended")


def test_a_beacon_waits_for_state_runs(lab: Lab) -> None:
    (lab.tree / "salt" / "sleep.sls").write_text(
        "write:\n  file.managed:\n    - name: /srv/watched/by-state\n    - contents: x\n"
        "sleep:\n  module.run:\n    - test.sleep:\n      - 3\n"
    )
    heard = Heard(lab, "salt/beacon/web1/*")
    heard.one(Touching(lab))
    lab.salt("web1", "state.apply", "sleep")
    heard.one(Touching(lab))
    assert not [line for line in heard.rest() if "by-state" in line]


def test_beacons_outlive_the_process_that_they_were_forked_from_and_end_with_the_minion(lab: Lab) -> None:
    preloaded = below(lab.processes["web2"].pid)[0]
    before = below(lab.processes["web2"].pid)
    os.kill(preloaded, signal.SIGKILL)
    until(
        lambda: watchers(lab)["web2"] == 3 and not set(below(lab.processes["web2"].pid)) & set(before), SOON, "new ones"
    )
    heard = Heard(lab, "salt/beacon/web2/*")
    tag, _ = heard.one()
    heard.rest()
    assert tag == "salt/beacon/web2/counting/look"
    after = below(lab.processes["web2"].pid)
    lab.kill("web2", signal.SIGTERM)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in after), SOON, "all processes have ended")
    lab.start("web2")
    lab.await_ready("web2")
    until(lambda: watchers(lab)["web2"] == 3, SOON, "the process for beacons runs again")
    # Killed hard, the minion leaves nobody that looks on.
    after = below(lab.processes["web2"].pid)
    lab.kill("web2")
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in after), SOON, "all processes have ended")

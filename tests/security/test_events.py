"""Attacks of an accepted minion, web1, that forge events: tags of Salt's own, of other minions and jobs, and other ids."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from saltern.mworker.state_failures import MOST, failed_states
from saltern.reactor.reactions import files_for
from tests.services.mworker.conftest import Worker

JID = "20260101000000000000"

#: Tags that web1 may not fire -> a glob of the option reactor that it wants to match.
FORGED: dict[str, str] = {
    f"salt/job/{JID}/ret/db1": "salt/job/*/ret/*",
    f"salt/job/{JID}/ret/web1": "salt/job/*/ret/*",
    f"salt/job/{JID}/ret/db1/x": "salt/job/*/ret/*",
    f"salt/job/x/{JID}/ret/db1": "salt/job/*/ret/*",
    f"salt/job/{JID}/new": "salt/job/*/new",
    f"salt/job/{JID}/x/new": "salt/job/*/new",
    f"salt/job/{JID}/publish": "salt/job/*/publish",
    f"salt/job/{JID}/return": "salt/job/*/return",
    f"salt/job/{JID}/start/db1": "salt/job/*/start/*",
    f"salt/job/{JID}/start/web1/db1": "salt/job/*/start/*",
    f"salt/job/{JID}/prog/db1/1": "salt/job/*/prog/*",
    f"salt/job/{JID}/sub/db1/error/state.sls": "salt/job/*/sub/*/error/*",
    f"salt/job/{JID}/error": "salt/job/*/error",
    f"salt/state_result/{JID}/db1/x": "salt/state_result/*",
    f"salt/state_result/x/{JID}/db1/x": "salt/state_result/*/db1/x",
    "salt/minion/db1/start": "salt/minion/*/start",
    "salt/minion/db1/start ": "salt/minion/*/start*",
    "salt/minion/db1/start\n": "salt/minion/*/start*",
    "salt/minion/web1/db1/start": "salt/minion/*/start",
    "salt/minion//start": "salt/minion/*start",
    "salt/minion/db1": "salt/minion/*",
    "salt/minions/start": "salt/minion*/start",
    "salt//minion/db1/start": "salt/*/start",
    "minion_start/x": "minion_start*",
    "minion_start\n": "minion_start*",
    "minion_started": "minion_start*",
    "minion/refresh/db1": "minion/refresh/*",
    "minion/refresh/web1": "minion/refresh/*",
    "minion/refresh/x/db1": "minion/refresh/*",
    "minion/x": "minion/*",
    "resource/refresh/db1": "resource/refresh/*",
    "salt/beacon/db1/load/": "salt/beacon/*/load/",
    "salt/beacon/db1": "salt/beacon/*",
    "salt/beacon//db1/load/": "salt/beacon/*/load/",
    "salt/beacon": "salt/beacon*",
    "salt/beacons/db1/load/": "salt/beacon*/load/",
    "salt/auth": "salt/auth",
    "salt/auth/": "salt/auth*",
    "salt/auth/creds": "salt/auth/*",
    "salt/authentic": "salt/auth*",
    "salt/key": "salt/key",
    "salt/key/x": "salt/key*",
    "salt/keys": "salt/key*",
    "key": "key",
    "salt/presence/present": "salt/presence/*",
    "salt/presence/change": "salt/presence/change",
    "salt/presence/change/x": "salt/presence/*",
    f"salt/run/{JID}/ret": "salt/run/*/ret",
    f"salt/run/{JID}/new": "salt/run/*",
    "salt/runner/x": "salt/run*",
    f"salt/wheel/{JID}/ret": "salt/wheel/*/ret",
    f"salt/wheel/{JID}/new": "salt/wheel/*",
    f"salt/wheel/{JID}/return": "salt/wheel/*",
    f"salt/wheel/{JID}/x/ret": "salt/wheel/*/ret",
    "salt/cloud/db1/created": "salt/cloud/*/created",
    "salt/cluster/peer/join": "salt/cluster/*",
    "salt/fileserver/gitfs/update": "salt/fileserver/*",
    "salt/netapi/hook/deploy": "salt/netapi/hook/*",
    "salt/stats/1": "salt/stats/*",
    f"salt/batch/{JID}/complete": "salt/batch/*",
    "salt/syndic/db1/start": "salt/syndic/*/start",
    "salt/event/exit": "salt/event/exit",
    "salt/reactors/manage/add": "salt/reactors/manage/*",
    "x/salt/reactors/manage/add": "*salt/reactors/manage/*",
    "saltern/probe/0000": "saltern/*",
    "site/\x1b[2Jdone": "site/*",
    "site/\u202edone": "site/*",
    "site/a\n\nb": "site/*",
    "site/" + "x" * 10_000: "site/*",
}


@pytest.mark.parametrize("form", ["single", "batch", "pretag"])
@pytest.mark.parametrize("tag", FORGED, ids=[repr(tag[:60]) for tag in FORGED])
def test_a_tag_that_is_not_for_minions_is_dropped(worker: Worker, tag: str, form: str) -> None:
    glob = FORGED[tag]
    assert fnmatchcase(tag, glob)
    minion = worker.minion()
    _fire(minion, form, tag)
    assert [one for one in worker.tags() if files_for(one, [{glob: ["x.sls"]}])] == []


@pytest.mark.parametrize(
    ("form", "tag"),
    [
        (form, tag)
        for form in ("single", "batch", "pretag")
        for tag in ("site/order", "order", "salt/site/order", "minion_start", "salt/beacon/web1/load/")
        # A tag without a slash has no beginning.
        if form != "pretag" or "/" in tag
    ],
)
def test_the_id_of_an_event_is_the_senders(worker: Worker, tag: str, form: str) -> None:
    """A reaction that targets ``data['id']`` runs on web1, whatever web1 writes there."""
    _fire(worker.minion(), form, tag, id="*")
    assert worker.events
    assert {data["id"] for _, data in worker.events} == {"web1"}


def _fire(minion: Any, form: str, tag: str, **data: Any) -> None:
    if form == "single":
        # The session sets the id of the load.
        minion.ask("_minion_event", tag=tag, data=data, pretag=None)
    elif form == "batch":
        minion.ask("_minion_event", events=[{"tag": tag, "data": data}, {"tag": tag, **data}], pretag=None)
    else:
        pretag, _, last = tag.partition("/")
        minion.ask("_minion_event", events=[{"tag": last, "data": data}], pretag=pretag)


#: Attack -> the key of a state in a highstate's return; the event's tag is its first and its last part.
STATES: dict[str, str] = {
    "a return of another minion": f"salt/job/{JID}/ret/db1_|-a_|-b_|-",
    "a tag with the dot inside": "salt/minion/db1/start_|-a_|-b_|-x",
    "the last part": f"x_|-a_|-b_|-/salt/job/{JID}/ret/db1",
    "a start": "salt/minion/db1_|-a_|-b_|-/start",
    "a beacon": "salt/beacon/db1/load/_|-a_|-b_|-x",
    "a runner's return": f"salt/run/{JID}/ret_|-a_|-b_|-",
    "a cloud's": "salt/cloud/db1_|-a_|-b_|-created",
    "no parts": f"salt/job/{JID}/ret/db1",
    "an operator's tag": "site/deploy_|-a_|-b_|-now",
    "a line end": "file_|-a_|-b_|-managed\n",
    "two dots": "file.x_|-a_|-b_|-managed",
    "nothing": "",
    "a number": "1_|-a_|-b_|-2",
    "letters of another alphabet": "f\u0456le_|-a_|-b_|-managed",
    "control characters": "file\x1b[2J_|-a_|-b_|-managed",
}


@pytest.mark.parametrize("fun", ["state.highstate", "state.sls", "several"])
@pytest.mark.parametrize("attack", STATES)
def test_the_keys_of_a_highstate_are_no_tags(worker: Worker, attack: str, fun: str) -> None:
    minion = worker.minion()
    states = {STATES[attack]: {"result": False, "id": "db1", "jid": JID, "return": True}}
    load: dict[str, Any] = {"jid": JID, "fun": fun, "return": states, "retcode": 2}
    if fun == "several":
        load |= {"fun": ["state.sls"], "return": [states], "retcode": [2]}
    minion.ask("_return", **load)
    fun = "state.sls" if fun == "several" else fun
    assert worker.tags() == [f"salt/job/{JID}/ret/web1", f"salt/job/{JID}/sub/web1/error/{fun}"]
    assert {data["id"] for _, data in worker.events} == {"web1"}


def test_a_failed_state_names_its_own_minion(worker: Worker) -> None:
    worker.minion().ask(
        "_return",
        jid=JID,
        fun="state.sls",
        retcode=2,
        **{"return": {"file_|-a_|-b_|-managed": {"result": False, "id": "db1", "user": "root"}}},
    )
    assert [data["id"] for _, data in worker.events] == ["web1"] * 3
    assert worker.tags()[1] == "file.managed"


def test_a_return_causes_a_bounded_number_of_events() -> None:
    states = {f"test_|-{number}_|-x_|-fail": {"result": False} for number in range(MOST + 10)}
    ret = {"jid": JID, "id": "web1", "fun": "state.sls", "retcode": 2, "return": states}
    assert len(list(failed_states(ret))) == 2 * MOST
    several = {**ret, "fun": ["state.sls"] * 3, "return": [states] * 3, "retcode": [2] * 3}
    assert len(list(failed_states(several))) == 2 * MOST


#: Fields of a return that would change its job in the operator's job cache, or the event.
FIELDS: dict[str, Mapping[str, Any]] = {
    "the job's target": {"tgt": "*", "tgt_type": "glob", "arg": ["id"], "user": "root"},
    "another minion's id": {"id": "web1", "minions": ["db1"]},
    "the time": {"_stamp": "2020-01-01T00:00:00"},
}


@pytest.mark.parametrize("attack", FIELDS)
@pytest.mark.parametrize("jid", [JID, "req", "nocache"])
def test_a_return_says_nothing_about_its_job(worker: Worker, attack: str, jid: str) -> None:
    """The reactor gives the job in a return with a target to ``master_job_cache``; only the master names targets."""
    worker.minion().ask("_return", **{"jid": jid, "fun": "test.ping", "return": True, **FIELDS[attack]})
    ((tag, data),) = worker.events
    assert tag.endswith("/ret/web1")
    assert data["id"] == "web1"
    assert data.get("tgt", "web1") == "web1"
    assert data.get("arg", []) == []
    assert (jid == "req") == ("tgt" in data)
    assert "_stamp" not in data

"""An unmodified salt-minion 3008.3 joins the lab's master and applies the example's base role. Other releases: tests/interop."""

from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from masterstore.lives import jid_ms
from tests.conftest import Oracle
from tests.interop.stock import StockMinion, need_namespace
from tests.roles.conftest import NewLab
from tests.roles.lab import STARTUP, Lab, until

pytestmark = [pytest.mark.roles, pytest.mark.oracle]

MINION = "stock1"
OURS = "ours1"


@pytest.fixture(scope="module")
def stock(
    module_labs: NewLab, oracle: Oracle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Lab, StockMinion]]:
    """A master, and the stock minion signed in there. One of ours may be started beside it."""
    need_namespace()
    cachedir = str(tmp_path_factory.mktemp("received"))
    peers = {"peer": {".*": ["test."]}, "peer_run": {".*": ["test.arg", "manage.up"]}, "file_recv": True}
    lab = module_labs(minions=(OURS,), options={"auto_accept": False, "cachedir": cachedir, **peers})
    lab.start_all(*lab.roles)
    minion = StockMinion(MINION, oracle.venv, lab)
    minion.start()
    try:
        until(lambda: lab.keys()["minions_pre"] == [MINION], STARTUP, "the stock minion's key")
        lab.ok("salt-key", "-y", "-a", MINION)
        until(
            lambda: lab.run("salt", "-t", "2", MINION, "test.ping").code == 0, 3 * STARTUP, "the stock minion answers"
        )
        yield lab, minion
    finally:
        minion.end()


@pytest.fixture
def joined(stock: tuple[Lab, StockMinion]) -> Lab:
    """The master."""
    return stock[0]


def test_it_answers(joined: Lab) -> None:
    assert joined.salt("*", "test.ping") == {MINION: True}
    assert joined.salt("*", "test.version") == {MINION: "3008.3"}
    assert joined.salt("-G", f"id:{MINION}", "test.echo", "hello") == {MINION: "hello"}
    assert joined.salt("-I", "owner:the platform team", "test.ping") == {MINION: True}


def test_it_applies_the_base_role(joined: Lab) -> None:
    machine = Path("/etc/motd").read_text() if Path("/etc/motd").exists() else None
    states = {"motd", "sysctl", "cron-tidy"}

    predicted = by_id(joined, "test=True")
    assert {name: result["result"] for name, result in predicted.items()} == dict.fromkeys(states)
    made = by_id(joined)
    assert {name: result["result"] for name, result in made.items()} == dict.fromkeys(states, True)
    assert all(result["changes"] for result in made.values())
    said = joined.salt(MINION, "cmd.run", "cat /etc/motd /etc/sysctl.d/60-managed.conf /etc/cron.d/tidy")[MINION]
    assert said.startswith(f"{MINION} belongs to the platform team.\n")
    assert "vm.swappiness = 10" in said
    assert "-mtime +14" in said
    again = by_id(joined)
    assert {name: (result["result"], result["changes"]) for name, result in again.items()} == dict.fromkeys(
        states, (True, {})
    )

    assert (Path("/etc/motd").read_text() if Path("/etc/motd").exists() else None) == machine
    assert not Path("/etc/sysctl.d/60-managed.conf").exists()


def by_id(lab: Lab, *words: str) -> dict[str, dict[str, object]]:
    run = lab.salt(MINION, "state.apply", "base", *words)[MINION]
    return {result["__id__"]: result for result in run.values()}


def test_its_jobs_are_in_the_job_cache(joined: Lab) -> None:
    jobs = joined.runner("jobs.list_jobs", "search_function=state.apply")
    assert len(jobs) == 3
    seen = joined.runner("jobs.list_job", max(jobs))
    assert seen["Minions"] == [MINION]
    assert seen["Result"][MINION]["success"] is True
    assert joined.runner("manage.up") == [MINION]


def test_it_keeps_up_with_rotated_keys_and_restarted_roles(joined: Lab) -> None:
    """The publication key changes, every role is another process: the minion is the same, and answers."""
    epoch = joined.redis().hget("salt:epochs", "aes")
    joined.redis().hset("salt:epochs", "aes", int(epoch or 0) + 1)
    for role in ("reqserver", "mworker", "publisher", "eventpublisher"):
        joined.restart(role)
    joined.await_ready(*joined.roles)
    until(
        lambda: joined.run("salt", "-t", "2", MINION, "test.ping").code == 0,
        3 * STARTUP,
        "the stock minion answers again",
    )
    assert joined.tracebacks() == []


#: What differs between two minions, or two moments.
_PASSING = ("id", "jid", "pid", "ts", "_stamp", "_TS", "_TT", "tag")

#: Tag of the event, with the minion for %s, and what has a minion fire it.
BY_THEMSELVES = (
    (
        "salt/job/*/ret/%s",
        (
            *("schedule.add", "nightly", "function=test.echo", "job_args=['a b']", "seconds=3600"),
            *("metadata={'why': 'x'}", "maxrunning=2"),
        ),
        ("schedule.delete", "nightly"),
    ),
    ("salt/beacon/%s/memusage/", ("beacons.add", "memusage", "[{'percent': 1}]"), ("beacons.delete", "memusage")),
    ("site/told", ("event.fire_master", "{'a': 1}", "site/told"), ()),
)


#: Calls in turn, whose returns are to be the same.
CALLS = (
    ("schedule.list",),
    ("schedule.add", "j", "function=test.echo", "job_args=[x]", "cron=0 0 1 1 *"),
    ("schedule.add", "j", "function=test.echo", "seconds=3600"),
    ("schedule.add", "bad", "function=test.echo", "seconds=3600", "when=5pm"),
    ("schedule.list",),
    ("schedule.list", "return_yaml=False"),
    ("schedule.is_enabled", "j"),
    ("schedule.is_enabled",),
    ("schedule.show_next_fire_time", "j"),
    ("schedule.disable_job", "j"),
    ("schedule.list", "show_disabled=False", "return_yaml=False"),
    ("schedule.run_job", "j"),
    ("schedule.enable_job", "j"),
    ("schedule.enable_job", "none"),
    ("schedule.run_job", "none"),
    ("schedule.modify", "j", "cron=0 0 2 1 *"),
    ("schedule.modify", "none", "seconds=7200"),
    ("schedule.skip_job", "j", "2036-01-01T00:00:00"),
    ("schedule.postpone_job", "j", "2036-01-01T00:00:00", "2036-01-02T00:00:00"),
    ("schedule.disable",),
    ("schedule.enable",),
    ("schedule.save",),
    ("schedule.delete", "none"),
    ("schedule.delete", "j", "test=True"),
    ("schedule.delete", "j"),
    ("schedule.add", "k", "function=test.echo", "cron=0 0 1 1 *"),
    ("schedule.purge",),
    ("beacons.list",),
    ("beacons.add", "ps", "[{'processes': {'none': 'running'}}]"),
    ("beacons.add", "ps", "[{'processes': {'none': 'running'}}]"),
    ("beacons.add", "none", "[]"),
    ("beacons.list",),
    ("beacons.modify", "ps", "[{'processes': {'none': 'running'}}, {'interval': 5}]"),
    ("beacons.modify", "none", "[]"),
    ("beacons.disable_beacon", "ps"),
    ("beacons.list", "return_yaml=False"),
    ("beacons.enable_beacon", "ps"),
    ("beacons.enable_beacon", "none"),
    ("beacons.disable",),
    ("beacons.enable",),
    ("beacons.delete", "ps"),
    ("beacons.delete", "ps"),
    ("beacons.reset",),
)


#: What minions ask of the master for others.
ASKED = (
    # It ends when all have returned; a stock minion on a busy machine takes its time.
    ("publish.publish", "*", "test.ping", "timeout=60"),
    ("publish.publish", "*", "test.arg", "['a', 1, 'b=2']", "timeout=60"),
    ("publish.full_data", "*", "test.echo", "x", "timeout=60"),
    ("publish.publish", "*", "cmd.run", "id"),
    ("publish.publish", "*", "publish.publish", "['*', 'test.ping']"),
    ("publish.publish", OURS, "test.ping", "tgt_type=list", "timeout=60"),
    ("publish.runner", "test.arg", "[1, 'a=2']"),
    ("publish.runner", "manage.up"),
    ("publish.runner", "jobs.active"),
    ("cp.push", "/etc/hostname", "upload_path=/a/b"),
    ("cp.push", "/etc/nowhere"),
    ("cp.push", "etc/hostname"),
)


def heard(lab: Lab, minion: str, tag: str, words: Sequence[str], undo: Sequence[str]) -> dict[str, Any]:
    """The event that a minion fires by itself once it was told to; told again until somebody listens."""
    listening = lab.started("salt-run", "state.event", tag.replace("%s", minion))

    def told() -> dict[str, Any] | None:
        lab.run("salt", minion, *words)
        found = None
        deadline = time.monotonic() + 3
        while found is None and select.select([listening.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            assert listening.stdout is not None
            data = json.loads(listening.stdout.readline().partition("\t")[2])
            found = data if not tag.startswith("salt/job") or "schedule" in data else None
        if undo:
            lab.run("salt", minion, *undo)
        return found

    found: dict[str, Any] = until(told, 2 * STARTUP, f"{tag} of {minion}")
    listening.kill()
    listening.communicate()
    return found


def shape(data: Any, minion: str) -> Any:
    """What of an event is the same whoever fired it."""
    if isinstance(data, dict):
        return {key: shape(value, minion) for key, value in data.items() if key not in _PASSING}
    return "a number" if isinstance(data, float) else "itself" if data == minion else data


@pytest.fixture(scope="module")
def both(stock: tuple[Lab, StockMinion]) -> Lab:
    """The lab with one of our minions beside the stock one."""
    joined = stock[0]
    joined.start(OURS)
    until(lambda: joined.keys()["minions_pre"] == [OURS], STARTUP, "our minion's key")
    joined.ok("salt-key", "-y", "-a", OURS)
    joined.await_ready(OURS)
    return joined


def test_what_minions_do_by_themselves_looks_the_same(both: Lab) -> None:
    """Returns of a schedule, beacons and events: those of a stock minion beside those of ours."""
    for tag, words, undo in BY_THEMSELVES:
        stock, ours = (shape(heard(both, minion, tag, words, undo), minion) for minion in (MINION, OURS))
        assert ours == stock, tag
    for minion in (MINION, OURS):
        send = ("mine.send", "offered", "mine_function=test.echo", "text=of " + minion, "allow_tgt=ours*")
        assert both.salt(minion, *send) == {minion: True}
    offered = {minion: f"of {minion}" for minion in (MINION, OURS)}
    assert both.salt(OURS, "mine.get", "*", "offered") == {OURS: offered}
    assert both.salt(MINION, "mine.get", "*", "offered") == {MINION: {}}


def test_its_schedule_and_beacons_are_changed_as_ours(both: Lab) -> None:
    for words in CALLS:
        told = both.run("salt", "--out", "json", "--static", "-t", "20", "*", *words).data
        assert told[OURS] == told[MINION], words
        assert "did not return" not in str(told[OURS]), words


def test_it_asks_for_others_as_ours(both: Lab) -> None:
    for words in ASKED:
        told = both.run("salt", "--out", "json", "--static", "-t", "20", "*", *words).data
        asked = {minion: _without_publication(told[minion]) for minion in (MINION, OURS)}
        assert asked[OURS] == asked[MINION], words
        assert "did not return" not in str(told[OURS]), words
    for minion in (MINION, OURS):
        kept = Path(both.master_options.cachedir, "minions", minion, "files", "a", "b")
        assert kept.read_text().strip(), minion


def _without_publication(value: Any) -> Any:
    """What a stock minion tells a function of the publication, besides its arguments."""
    if isinstance(value, dict):
        return {key: _without_publication(item) for key, item in value.items() if not str(key).startswith("__pub_")}
    return value


def test_jobs_wait_for_it_while_it_is_away(stock: tuple[Lab, StockMinion]) -> None:
    """It cannot ask for what it missed: the master sends it again when it says that it has started."""
    lab, minion = stock
    minion.end()
    jid, called_off, unasked = (
        lab.ok("salt", "--async", *words, MINION, "test.echo", "later").out.split()[-1]
        for words in (["--when-back=10m"], ["--when-back"], [])
    )
    listed = lab.runner("jobs.list_waiting")
    assert {one: job["Waits for"] for one, job in listed.items()} == {jid: [MINION], called_off: [MINION]}
    assert lab.runner("jobs.cancel", called_off) == {"Cancelled": [MINION], "Too late for": {}}
    # A publisher sends the jobs of the last seconds again to who comes back.
    until(lambda: time.time() * 1000 > jid_ms(unasked) + 12_500, STARTUP, "the publisher does not send it again")
    minion.start()
    came = until(lambda: lab.redis().hget(f"ret:{jid}", MINION), 3 * STARTUP, "the job that waited")
    assert json.loads(came)["return"] == "later"
    assert lab.runner("jobs.list_waiting") == {}
    assert lab.salt(MINION, "test.ping") == {MINION: True}
    assert not lab.redis().exists(f"ret:{called_off}", f"ret:{unasked}")

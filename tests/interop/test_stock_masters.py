"""Our minions at unmodified masters: the same day, with Salt's own commands in the operator's hand."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import yaml

from tests.interop.stock import PATIENCE, Bus, StockMaster, venv_of
from tests.roles.conftest import NewLab
from tests.roles.lab import Lab, until

pytestmark = [pytest.mark.interop, pytest.mark.roles]

#: One manages a directory tree; the other this machine, of which it is asked nothing that changes it.
TREE, MACHINE = NAMES = ("ours1", "ours2")

#: Salt's defaults; and what a site sets that wants topics and no SHA-1. Publications are signed and checked on both.
WIRES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({"sign_pub_messages": True}, {}),
    "strict": (
        {"zmq_filtering": True, "sign_pub_messages": True, "publish_signing_algorithm": "PKCS1v15-SHA224"},
        {
            "encryption_algorithm": "OAEP-SHA224",
            "signing_algorithm": "PKCS1v15-SHA224",
        },
    ),
}

#: Releases and wires that are joined.
MASTERS = (("3008.3", "plain"), ("3008.3", "strict"), ("3006.30", "plain"), ("3006.30", "strict"))


@dataclass
class Away:
    """A stock master, and minions of ours that are signed in there."""

    master: StockMaster
    lab: Lab
    bus: Bus

    def everybody(self, value: Any) -> dict[str, Any]:
        """What is returned when each returns the same."""
        return dict.fromkeys(NAMES, value)

    def await_pings(self) -> None:
        """Each answers again."""

        def all_answer() -> bool:
            answer = self.master.run("salt", "-t", "3", "--out", "json", "--static", "*", "test.ping")
            return answer.code == 0 and answer.out.count("true") == len(NAMES)

        until(all_answer, PATIENCE, "our minions answer")


@pytest.fixture(scope="module", params=MASTERS, ids="-".join)
def away(request: pytest.FixtureRequest, module_labs: NewLab) -> Iterator[Away]:
    version, wire = request.param
    of_master, of_minion = WIRES[wire]
    venv = venv_of(version)
    lab = module_labs(minions=NAMES)
    options = {
        "file_roots": {"base": [str(lab.tree / "salt")]},
        "pillar_roots": {"base": [str(lab.tree / "pillar")]},
        # A session of a minion is renewed when it is older than this.
        "publish_session": 20,
        "peer": {"ours.*": ["test.*"]},
        **of_master,
    }
    master = StockMaster(lab.root, venv, options)
    for name in NAMES:
        path = lab.root / "minions" / name / "minion"
        offered = {"mine_functions": {"test.ping": []}}
        own = yaml.safe_load(path.read_text()) | {"master_port": master.ret_port} | offered | of_minion
        own |= {"host_root": "/"} if name == MACHINE else {}
        path.write_text(yaml.safe_dump(own))
    bus = None
    try:
        master.start()
        bus = Bus.of_stock(master)
        for name in NAMES:
            lab.start(name)
        until(lambda: sorted(master.pending()) == list(NAMES), PATIENCE, "our minions' keys")
        accepted = master.run("salt-key", "-y", "-A")
        assert accepted.code == 0, str(accepted)
        lab.await_ready(*NAMES)
        away = Away(master, lab, bus)
        away.await_pings()
        yield away
    finally:
        if bus is not None:
            bus.close()
        master.end()


def test_they_answer(away: Away) -> None:
    salt = away.master.salt
    assert salt("*", "test.echo", "gr\u00fc\u00df dich") == away.everybody("gr\u00fc\u00df dich")
    assert salt("*", "grains.get", "id") == {name: name for name in NAMES}
    assert salt(MACHINE, "cmd.run", "echo $((40 + 2))", "python_shell=True") == {MACHINE: "42"}
    assert salt("*", "pillar.get", "owner", "unmask=True") == away.everybody("the platform team")
    both = {"test.ping": True, "test.echo": "hello"}
    assert salt("*", "test.ping,test.echo", ",", "hello") == away.everybody(both)


def test_they_are_found_by_every_kind_of_target(away: Away) -> None:
    targets = (
        ("-E", "ours[0-9]"),
        ("-L", ",".join(NAMES)),
        ("-G", "kernel:Linux"),
        ("-I", "owner:the platform team"),
        ("-C", "G@kernel:Linux and ours* and not E@nobody"),
    )
    for target in targets:
        assert away.master.salt(*target, "test.ping") == away.everybody(True), target


def test_they_fetch_files(away: Away) -> None:
    content = bytes(range(256)) * 5000
    (away.lab.tree / "salt" / "large.bin").write_bytes(content)
    assert away.master.salt(TREE, "cp.get_file", "salt://large.bin", "/large.bin") == {TREE: "/large.bin"}
    assert (away.lab.host(TREE) / "large.bin").read_bytes() == content
    assert all("large.bin" in paths for paths in away.master.salt("*", "cp.list_master").values())


def test_they_apply_the_base_role(away: Away) -> None:
    states = {"motd", "sysctl", "cron-tidy"}

    def applied(*words: str) -> dict[str, dict[str, Any]]:
        run = away.master.salt(TREE, "state.apply", "base", *words)[TREE]
        return {result["__id__"]: result for result in run.values()}

    predicted = applied("test=True")
    assert {state: result["result"] for state, result in predicted.items()} == dict.fromkeys(states)
    made = applied()
    assert {state: result["result"] for state, result in made.items()} == dict.fromkeys(states, True)
    again = applied()
    assert {state: result["changes"] for state, result in again.items()} == {state: {} for state in states}
    motd = away.lab.host(TREE) / "etc" / "motd"
    assert motd.read_text().startswith(f"{TREE} belongs to the platform team.\n")


def test_their_returns_are_in_its_job_cache(away: Away) -> None:
    said = away.master.run("salt", "--async", "*", "test.echo", "remember").out
    jid = said.rsplit(" ", 1)[1].strip()

    def complete() -> Any:
        result = away.master.runner("jobs.lookup_jid", jid)
        return result if sorted(result) == list(NAMES) else None

    assert until(complete, PATIENCE, "the job is complete") == away.everybody("remember")
    assert sorted(away.master.runner("manage.up")) == list(NAMES)


def test_they_share_their_mines(away: Away) -> None:
    salt = away.master.salt
    for name in NAMES:
        assert salt(name, "mine.send", "offered", "mine_function=test.echo", f"text=of {name}") == {name: True}
    offered = {name: f"of {name}" for name in NAMES}
    assert salt("*", "mine.get", "*", "offered") == away.everybody(offered)
    assert salt("*", "mine.update") == away.everybody(True)
    assert salt(NAMES[0], "mine.get", "*", "test.ping") == {NAMES[0]: away.everybody(True)}
    assert salt("*", "mine.delete", "offered") == away.everybody(True)
    assert salt(NAMES[0], "mine.get", "*", "offered") == {NAMES[0]: {}}


def test_they_publish_to_each_other(away: Away) -> None:
    salt = away.master.salt
    assert salt(TREE, "publish.publish", "*", "test.ping") == {TREE: away.everybody(True)}
    assert salt(TREE, "publish.full_data", MACHINE, "test.echo", "told")[TREE][MACHINE]["ret"] == "told"
    assert not salt(TREE, "publish.publish", "*", "cmd.run", "id")[TREE]


def test_what_they_tell_by_themselves_is_heard(away: Away) -> None:
    salt, bus = away.master.salt, away.bus
    for name in NAMES:
        assert bus.await_event(f"salt/minion/{name}/start")["id"] == name
    assert salt("*", "event.send", "site/told", "{'a': 1}") == away.everybody(True)
    assert salt("*", "event.fire_master", "{'b': 2}", "site/fired") == away.everybody(True)
    for name in NAMES:
        assert bus.await_event("site/told", lambda data, name=name: data["id"] == name)["data"]["a"] == 1
        assert bus.await_event("site/fired", lambda data, name=name: data["id"] == name)["data"] == {"b": 2}
    added = salt("*", "schedule.add", "often", "function=test.echo", "job_args=['by itself']", "seconds=1")
    assert all(one["result"] for one in added.values())
    for name in NAMES:
        own = bus.await_event(f"salt/job/*/ret/{name}", lambda data: data.get("schedule") == "often")
        assert own["return"] == "by itself"
        assert away.master.runner("jobs.lookup_jid", own["jid"]) == {name: "by itself"}
    salt("*", "schedule.delete", "often")


def test_a_failure_is_a_failure(away: Away) -> None:
    for words in (("test.no_such_function",), ("test.echo",)):
        answer = away.master.run("salt", "*", *words)
        assert answer.code == 1, str(answer)
        for name in NAMES:
            fits = partial(failed, words[0])
            assert away.bus.await_event(f"salt/job/*/ret/{name}", fits)["retcode"] == 1, words


def failed(fun: str, data: Mapping[str, Any]) -> bool:
    """Whether this is the return of a failure of the function."""
    return data["fun"] == fun and not data["success"]


def test_a_killed_job_has_an_end_and_nothing_of_ours_is_asked(away: Away) -> None:
    """The journal is the minion's own; what it missed, and how its jobs go on, a stock master is never asked or told."""
    said = away.master.run("salt", "--async", TREE, "test.sleep", "60").out
    jid = said.split()[-1]
    journal = away.lab.cache(TREE) / "journal"
    (entry,) = until(lambda: list(journal.glob(f"{jid}.began.*")), PATIENCE, "the job runs")
    # Longer than a second: a master of ours would have been told.
    until(lambda: time.time() - entry.stat().st_mtime > 2, PATIENCE, "the job runs for a while")
    away.lab.kill(TREE)
    os.kill(int(entry.name.split(".")[-2]), signal.SIGKILL)
    away.lab.start(TREE)
    found = until(lambda: away.master.runner("jobs.lookup_jid", jid), PATIENCE, "an end of the killed job")
    assert found[TREE].startswith("JobKilled: the minion was killed while it ran this job")
    away.lab.await_ready(TREE)
    away.await_pings()
    assert "not exposed" not in (away.lab.root / "stock-master.log").read_text(errors="replace")


def test_they_keep_up_with_rotated_keys(away: Away) -> None:
    """A deleted key changes the key of publications within the loop of maintenance; sessions are renewed by age."""
    ghost = away.master.root / "master" / "pki" / "minions" / "ghost"
    for _ in range(2):
        ghost.write_text((ghost.parent / NAMES[0]).read_text())
        deleted = away.master.run("salt-key", "-y", "-d", "ghost")
        assert deleted.code == 0, str(deleted)
        # It notices the note that salt-key leaves, and takes it away.
        until(
            lambda: not (away.master.root / "master/var/cache/salt/master/.dfn").exists(),
            PATIENCE,
            "the key is changed",
        )
        assert away.master.salt("*", "test.ping") == away.everybody(True)


def test_they_outlive_a_restart_of_the_master(away: Away) -> None:
    away.master.end()
    away.master.start()
    away.await_pings()
    assert away.master.salt("*", "pillar.get", "owner", "unmask=True") == away.everybody("the platform team")


def test_a_deleted_key_is_accepted_anew(away: Away) -> None:
    gone, left = NAMES
    deleted = away.master.run("salt-key", "-y", "-d", gone)
    assert deleted.code == 0, str(deleted)

    def pending() -> bool:
        away.master.run("salt", "-t", "2", "-C", left, "test.ping")
        return away.master.pending() == [gone]

    until(pending, PATIENCE, f"{gone} signs in anew")
    away.master.accept(gone)
    away.await_pings()


def test_nothing_of_ours_crashed(away: Away) -> None:
    assert away.lab.tracebacks() == []
    assert away.lab.dead() == {}

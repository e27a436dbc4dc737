"""The last release's data with this version: what docs/operations/upgrade.md promises, by the commands of that page.

The last release runs as a whole, works for a while and is stopped. This version starts on what it left: Redis, the keys of the
master, and the keys, caches and unsent results of its minions.
"""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.roles.conftest import NewLab
from tests.roles.lab import ROOT, SOON, STARTUP, Held, until
from tests.roles.versions import LAST_RELEASE, MixedLab, is_present, last_release, unpack

pytestmark = [pytest.mark.roles, pytest.mark.redis]

PAGE = ROOT / "docs/operations/upgrade.md"

#: Schema of Redis from which on a job says which minions have not run it.
LIVES = 2

#: web3's key waits for an operator. web2 is away when a job is published.
MINIONS = ("web1", "web2", "web3")


def commands_of_the_page() -> list[list[str]]:
    """Return the words of the commands that the page tells to type between the old version's end and the new one's start."""
    section = PAGE.read_text("utf-8").partition("## One machine\n")[2].partition("\n## ")[0]
    return [line.split("#")[0].split() for line in re.findall(r"^ +(saltern .*)$", section, re.MULTILINE)]


def stop(lab: MixedLab, *names: str) -> None:
    """End processes as systemd does."""
    ending = {name: lab.processes.pop(name) for name in names}
    for process in ending.values():
        process.send_signal(signal.SIGTERM)
    for process in ending.values():
        process.wait(STARTUP)


class Left:
    """What the last release left, and what it said of it."""

    def __init__(self, lab: MixedLab) -> None:
        self.lab = lab
        shutil.rmtree(lab.etc / "keys")
        lab.ok("saltern", "keygen", "--out", str(lab.etc / "keys"))
        lab.start_all(*lab.roles)
        for minion in MINIONS:
            lab.start(minion)
        until(lambda: lab.keys()["minions_pre"] == list(MINIONS), STARTUP, "the keys wait for acceptance")
        lab.ok("salt-key", "-y", "-a", "web1")
        lab.ok("salt-key", "-y", "-a", "web2")
        lab.await_ready("web1", "web2")
        self.keys = lab.keys()
        self.fingerprint = (lab.etc / "keys/mworker/master.pem").read_bytes()
        lab.salt("web[12]", "saltutil.sync_all")
        lab.salt("web[12]", "mine.send", "test.ping")
        lab.salt("web[12]", "test.echo", "before")
        self.jid = str(lab.redis().get("web1:test.echo"))
        self.grains = lab.runner("cache.grains", "web1")
        # web1 finishes a job when the master is away: its result waits on the minion's disk.
        held = Held(lab)
        self.held_jid = lab.ok("salt", "--async", *held.words("web1")).out.split()[-1]
        until((held.directory / "started-web1").exists, SOON, "web1 holds a job")
        # web2 is away when this job is published.
        stop(lab, "web2")
        self.missed_jid = lab.ok("salt", "--async", "web2", "test.echo", "missed").out.split()[-1]
        self.schema = int(lab.redis().get("salt:schema") or 1)
        stop(lab, *lab.roles)
        held.let_go()
        until(lambda: list((lab.cache("web1") / "spool").rglob("*")), SOON, "web1 keeps its result on disk")
        stop(lab, "web1", "web3")
        lab.behind = set()
        self.answers = {" ".join(words[:3]): lab.run(*self._adapted(words)) for words in commands_of_the_page()}
        for name in (*lab.roles, *MINIONS):
            lab.start(name)
        lab.await_ready(*lab.roles, *MINIONS[:2])

    def _adapted(self, words: list[str]) -> list[str]:
        """Return a command of the page with this lab's paths."""
        return [str(self.lab.etc / "keys") if word == "/etc/salt/keys" else word for word in words]


@pytest.fixture(scope="module")
def left(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Left:
    """This version, on the last release's data."""
    commit = last_release(LAST_RELEASE)
    if not is_present(commit):
        pytest.skip(f"the last release, {commit}, is not in this clone: git fetch --unshallow --tags")
    old: Path = unpack(commit, tmp_path_factory.mktemp("old"))
    lab = module_labs(
        MixedLab,
        old=old,
        minions=MINIONS,
        behind={*MINIONS, "publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance", "cli"},
        options={"auto_accept": False},
    )
    assert isinstance(lab, MixedLab)
    return Left(lab)


def test_each_command_of_the_page_succeeds(left: Left) -> None:
    assert left.answers.keys() >= {"saltern keygen --out", "saltern store migrate", "saltern store check"}
    assert [str(answer) for answer in left.answers.values() if answer.code] == []


def test_keys_are_what_they_were(left: Left) -> None:
    assert left.lab.keys() == left.keys
    assert (left.lab.etc / "keys/mworker/master.pem").read_bytes() == left.fingerprint


def test_accepted_minions_work(left: Left) -> None:
    assert left.lab.salt("web[12]", "test.ping") == {"web1": True, "web2": True}


def test_earlier_jobs_are_found(left: Left) -> None:
    assert left.lab.runner("jobs.lookup_jid", left.jid) == {"web1": "before", "web2": "before"}
    assert left.jid in left.lab.runner("jobs.list_jobs")


def test_caches_are_read(left: Left) -> None:
    assert left.lab.runner("cache.grains", "web1")["web1"]["id"] == left.grains["web1"]["id"] == "web1"
    assert left.lab.runner("mine.get", "web2", "test.ping") == {"web2": True}


def test_a_result_that_waited_on_a_minion_s_disk_arrives(left: Left) -> None:
    until(lambda: left.lab.runner("jobs.lookup_jid", left.held_jid) == {"web1": True}, SOON, "the result arrives")


def test_a_job_that_a_minion_missed_is_run(left: Left) -> None:
    if left.schema < LIVES:  # a snapshot before 0.1.0: it does not say who has not run a job
        assert left.lab.runner("jobs.lookup_jid", left.missed_jid) == {}
        return
    until(lambda: left.lab.runner("jobs.lookup_jid", left.missed_jid) == {"web2": "missed"}, SOON, "web2 catches up")


def test_nothing_fell_over(left: Left) -> None:
    assert left.lab.dead() == {}, left.lab.logs()
    assert left.lab.tracebacks() == []

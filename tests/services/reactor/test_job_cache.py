"""A job cache of the site's own: jobs and returns reach its returner, in order, once it takes them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.event_bus import pack
from saltern.reactor.job_cache import GROUP, LOADS_GROUP, PAUSES, TRIES, JobCache, followers
from saltern.reactor.sls import runtime_of

pytestmark = pytest.mark.redis

JID = "20260101000000000000"

#: A user's returner that keeps what it gets in a file, unless a file says that its database is away.
RETURNER = """
import json, os

def _keep(*what):
    if os.path.exists({place!r} + ".away"):
        raise OSError("no database")
    with open({place!r}, "a") as file:
        file.write(json.dumps(what) + "\\n")

def save_load(jid, load, minions=None):
    _keep("load", jid, load, minions)

def returner(ret):
    _keep("return", ret)
"""


class Site:
    """A store, a returner and a clock."""

    def __init__(self, url: str, tmp_path: Path) -> None:
        self.place, self.away, self.now = tmp_path / "kept", tmp_path / "kept.away", 0.0
        directory = tmp_path / "returners"
        directory.mkdir()
        (directory / "mine.py").write_text(RETURNER.format(place=str(self.place)))
        options = MasterOptions(
            returner_dirs=[str(directory)], extension_modules=str(tmp_path / "none"), master_job_cache="mine"
        )
        self.store = Store.open(url, client_name="test")
        self.runtime = runtime_of(options)
        self.cache = self.reader("mine")
        self.cache.poll()

    def reader(self, name: str, **more: bool) -> JobCache:
        return JobCache(self.store, self.runtime, name, lambda: self.now, **more)

    def fire(self, tag: str, **data: Any) -> None:
        self.store.events.keep(pack(tag, data), 1000)

    def kept(self) -> list[Any]:
        return [json.loads(line) for line in self.place.read_text().splitlines()] if self.place.exists() else []


@pytest.fixture
def site(redis_url: str, tmp_path: Path) -> Site:
    return Site(redis_url, tmp_path)


def test_jobs_and_returns_come_as_salt_hands_them_on(site: Site) -> None:
    load = {"jid": JID, "fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "user": "root"}
    site.fire(f"salt/job/{JID}/new", **load, minions=["a"], missing=[])
    site.fire(
        f"salt/job/{JID}/ret/a", cmd="_return", id="a", jid=JID, fun="test.ping", **{"return": True}, success=True
    )
    site.fire("site/other", id="a")
    assert site.cache.poll()
    assert site.kept() == [
        ["load", JID, load, ["a"]],
        ["return", {"id": "a", "jid": JID, "fun": "test.ping", "return": True, "success": True}],
    ]
    assert site.store.event_groups.backlog(GROUP).in_hand == 0
    assert site.store.events.wanted() == {GROUP: ["salt/job/*/new", "salt/job/*/ret/*"]}


def test_a_job_that_a_minion_began_itself_has_its_load_first(site: Site) -> None:
    job = {"jid": JID, "fun": "test.ping", "arg": [], "tgt": "a", "tgt_type": "glob"}
    site.fire(f"salt/job/{JID}/ret/a", **job, cmd="_return", id="a", fun_args=[], **{"return": True})
    assert site.cache.poll()
    load, ret = site.kept()
    assert load == ["load", JID, {**job, "user": "a"}, ["a"]]
    assert ret[0] == "return"


def test_old_jobs_are_deleted_once_an_hour(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    cleaned = site.place.parent / "cleaned"
    text = f"def clean_old_jobs():\n    open({str(cleaned)!r}, 'a').write('x')\n"
    (site.place.parent / "returners" / "cleaner.py").write_text(text)
    (site.place.parent / "returners" / "failing.py").write_text("def clean_old_jobs():\n    raise OSError('locked')\n")
    site.runtime.forget(modules=True)
    reader, failing, ext = site.reader("cleaner"), site.reader("failing"), site.reader("cleaner", loads_alone=True)
    for now in (0.0, 10.0, 3599.0, 3600.0, 3700.0):
        site.now = now
        reader.poll()
        failing.poll()
        ext.poll()
    assert cleaned.read_text() == "xx"
    assert caplog.text.count("master_job_cache: the returner failing did not delete old jobs: locked") == 2


def test_an_external_job_cache_is_told_of_jobs_alone(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    (site.place.parent / "returners" / "bare.py").write_text("def returner(ret):\n    pass\n")
    old = "import json\ndef save_load(jid, load):\n    open({place!r}, 'a').write(json.dumps([jid, 2]) + '\\n')\n"
    (site.place.parent / "returners" / "old.py").write_text(old.format(place=str(site.place)))
    site.runtime.forget(modules=True)
    ext, bare = site.reader("mine", loads_alone=True), site.reader("bare", loads_alone=True)
    ext.poll()
    for number in range(3):
        site.fire(f"salt/job/{JID}/new", jid=JID, fun="test.ping", arg=[number], minions=["a"])
        site.fire(f"salt/job/{JID}/ret/a", id="a", jid=JID)
    assert ext.poll()
    assert [(row[0], row[2]["arg"], row[3]) for row in site.kept()] == [("load", [n], ["a"]) for n in range(3)]
    assert site.store.event_groups.backlog(LOADS_GROUP).in_hand == 0
    site.place.unlink()
    # One that is not to know the minions, and one that is to know nothing.
    for reader in (site.reader("old", loads_alone=True), bare):
        site.fire(f"salt/job/{JID}/new", jid=JID, fun="test.ping", arg=[], minions=["a"])
        site.fire(f"salt/job/{JID}/new", jid=JID, fun="test.ping", arg=[], minions=["a"])
        assert reader.poll()
    assert site.kept() == [[JID, 2]] * 2
    assert caplog.text.count("ext_job_cache: the returner gets no jobs") == 1


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, []),
        ({"master_job_cache": "mine"}, ["job-cache"]),
        ({"ext_job_cache": "mine"}, ["ext-job-cache"]),
        ({"ext_job_cache": "redis", "master_job_cache": "local_cache"}, []),
    ],
)
def test_whom_the_options_ask_for(options: dict[str, str], names: list[str]) -> None:
    assert [name for name, _ in followers(MasterOptions(**options))] == names


def test_what_comes_while_the_database_is_away_waits(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    site.away.touch()
    for minion in "abc":
        site.fire(f"salt/job/{JID}/ret/{minion}", id=minion, jid=JID)
    assert not site.cache.poll()
    assert not site.cache.poll(), "it is not due yet"
    site.now += PAUSES[0]
    assert not site.cache.poll()
    site.away.unlink()
    site.now += PAUSES[1]
    assert site.cache.poll()
    assert [row[1]["id"] for row in site.kept()] == ["a", "b", "c"]
    assert caplog.text.count("OSError: no database") == 1
    assert site.store.event_groups.backlog(GROUP).in_hand == 0


def test_what_is_never_taken_is_buried(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    site.away.touch()
    site.fire(f"salt/job/{JID}/ret/a", id="a", jid=JID)
    for _ in range(TRIES):
        site.cache.poll()
        site.now += PAUSES[-1]
    (dead,) = site.store.event_groups.dead(GROUP, 10)
    assert (dead.why, dead.tries) == ("OSError: no database", TRIES)
    assert f"is given up after {TRIES} tries" in caplog.text


def test_a_reader_that_ends_leaves_what_it_has_to_the_next(site: Site) -> None:
    site.away.touch()
    site.fire(f"salt/job/{JID}/ret/a", id="a", jid=JID)
    site.cache.poll()
    site.cache.close()
    site.away.unlink()
    assert site.reader("mine").poll()
    assert len(site.kept()) == 1


def test_a_returner_that_is_not_there_is_named(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    site.cache.close()
    site.fire(f"salt/job/{JID}/ret/a", id="a", jid=JID)
    assert not site.reader("nosuch").poll()
    assert "the returner nosuch did not take" in caplog.text

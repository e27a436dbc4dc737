"""A job cache of the site's own: jobs and returns reach its returner, in order, once it takes them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from masterstore.store import Store
from services.kit.bus import pack
from services.kit.config import MasterOptions
from services.reactor.job_cache import GROUP, PAUSES, TRIES, JobCache
from services.reactor.main import runtime_of

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
        self.cache.turn()

    def reader(self, name: str) -> JobCache:
        return JobCache(self.store, self.runtime, name, lambda: self.now)

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
    assert site.cache.turn()
    assert site.kept() == [
        ["load", JID, load, ["a"]],
        ["return", {"id": "a", "jid": JID, "fun": "test.ping", "return": True, "success": True}],
    ]
    assert site.store.event_groups.backlog(GROUP).in_hand == 0
    assert site.store.events.wanted() == {GROUP: ["salt/job/*/new", "salt/job/*/ret/*"]}


def test_what_comes_while_the_database_is_away_waits(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    site.away.touch()
    for minion in "abc":
        site.fire(f"salt/job/{JID}/ret/{minion}", id=minion, jid=JID)
    assert not site.cache.turn()
    assert not site.cache.turn(), "it is not due yet"
    site.now += PAUSES[0]
    assert not site.cache.turn()
    site.away.unlink()
    site.now += PAUSES[1]
    assert site.cache.turn()
    assert [row[1]["id"] for row in site.kept()] == ["a", "b", "c"]
    assert caplog.text.count("OSError: no database") == 1
    assert site.store.event_groups.backlog(GROUP).in_hand == 0


def test_what_is_never_taken_is_buried(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    site.away.touch()
    site.fire(f"salt/job/{JID}/ret/a", id="a", jid=JID)
    for _ in range(TRIES):
        site.cache.turn()
        site.now += PAUSES[-1]
    (dead,) = site.store.event_groups.dead(GROUP, 10)
    assert (dead.why, dead.tries) == ("OSError: no database", TRIES)
    assert f"is given up after {TRIES} tries" in caplog.text


def test_a_reader_that_ends_leaves_what_it_has_to_the_next(site: Site) -> None:
    site.away.touch()
    site.fire(f"salt/job/{JID}/ret/a", id="a", jid=JID)
    site.cache.turn()
    site.cache.close()
    site.away.unlink()
    assert site.reader("mine").turn()
    assert len(site.kept()) == 1


def test_a_returner_that_is_not_there_is_named(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    site.cache.close()
    site.fire(f"salt/job/{JID}/ret/a", id="a", jid=JID)
    assert not site.reader("nosuch").turn()
    assert "the returner nosuch did not take" in caplog.text

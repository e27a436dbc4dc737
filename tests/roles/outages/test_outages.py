"""Each row of docs/operations/outages.md: something is away, and what it says there happens."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from masterstore.event_codes import EventCodes
from masterstore.store import Store
from saltern.kit.keys.events_key import load_event_macs
from saltern.kit.links.event_bus import pack
from tests.chaos.field import Field
from tests.roles.lab import STARTUP, Answer, Held, Lab, until
from tests.roles.outages import disk
from tests.roles.outages.table import OUTAGES, Outage

pytestmark = pytest.mark.roles

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "outages.md"

#: Seconds within which an operator is told that something is away.
TOLD = 30.0

#: Seconds for everybody to be back, and for what waited to be done.
BACK = 60.0

#: Reaction to an event that an outage is tried with.
COUNT = "count:\n  local.test.echo:\n    - tgt: web2\n    - args:\n      - text: {{ data['what'] }}\n"


@dataclass
class Ground(Field):
    """One publisher, two workers, two minions, and a link between any two of them."""

    mounts: bool = field(default_factory=disk.may_mount)

    @property
    def tls(self) -> bool:
        """False: the server with TLS refuses the settings that break it."""
        return False

    def _replicas(self) -> list[str]:
        return Lab._replicas(self)

    def _launch(self, name: str, words: Sequence[str]) -> None:
        if name == "redis" and self.mounts:
            words = disk.with_small_disk(words, self.root / disk.NAME)
        super()._launch(name, words)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    root = tmp_path_factory.mktemp("ground")
    (sls := root / "count.sls").write_text(COUNT)
    made = Ground(
        root,
        workers=2,
        options={"reactor": [{"site/outage": [str(sls)]}], "worker_silence": 2, "auto_accept": True},
    )
    try:
        made.start_all()
        made.salt("*", "saltutil.sync_modules")
        yield made
    finally:
        made.close()


def test_the_page_is_the_table() -> None:
    page = PAGE.read_text()
    for row in OUTAGES:
        assert row.line in page, f"{PAGE} lacks: {row.line}"
    table = page.partition("| What is away |")[2].partition("\n\n")[0]
    assert table.count("\n| ") == len(OUTAGES), "the page has a row that no test has"


@pytest.mark.parametrize("number", range(len(OUTAGES)), ids=[row.what for row in OUTAGES])
def test_an_outage(ground: Ground, number: int) -> None:
    row, lab = OUTAGES[number], ground
    if row.mounts and not lab.mounts:
        pytest.skip("a disk of its own is mounted for Redis: only root makes mount namespaces, with unshare(1)")
    held = Held(lab)
    # Its own time is longer than any test: what ends it is what it hears, or finds.
    before = lab.started("salt", "--show-jid", "-t", "900", "--out", "json", "--static", *held.words())
    held.await_started()
    row.begin(lab)
    try:
        waiting = None
        if row.ping == "waits":
            waiting = lab.started("salt", "-t", "15", "--out", "json", "--static", "web1", "test.ping")
        elif row.ping == "works":
            assert lab.salt("-t", "2", "web1", "test.ping") == {"web1": True}
        else:
            _is_refused(lab, row)
        for name in row.unready:
            until(lambda name=name: lab.probe(name)[0] == 503, BACK, f"{name} says that it is not ready")  # type: ignore[misc]
            assert lab.probe(name, "/healthz")[0] == 200
        if row.event is not None:
            ground_store(lab).events.keep(pack("site/outage", {"what": f"number-{number}"}), 1000)
        held.let_go()
        until(lambda: not lab.jobbers(), BACK, "the job has ended on both minions")
        if row.unheard:
            until(lambda: before.poll() is not None, BACK, "the command finds what it cannot hear of")
    finally:
        row.end(lab)
    jid = _prints_both(lab.finished(before, BACK))
    until(lambda: sorted(lab.redis().hkeys(f"ret:{jid}")) == ["web1", "web2"], BACK, "its results are in the job cache")
    if waiting is not None:
        answer = lab.finished(waiting, BACK)
        assert (answer.code, answer.data) == (0, {"web1": True}), answer
    if row.event:
        until(lambda: _answers(lab, number), BACK, "the event is answered")
    lab.await_ready(*lab.roles, *lab.minions)
    assert lab.dead() == {}, lab.logs()
    assert lab.tracebacks() == []


def _prints_both(answer: Answer) -> str:
    """The job's JID."""
    said = re.match(r"jid: (\d{20})\n", answer.err)
    assert said is not None, answer
    assert (answer.code, json.loads(answer.out)) == (0, {"web1": True, "web2": True}), answer
    return said[1]


def _is_refused(lab: Ground, row: Outage) -> None:
    """It ends soon, with an exit code and one line that says what is wrong."""
    started = time.monotonic()
    answer = lab.run("salt", "web1", "test.ping")
    assert time.monotonic() - started < TOLD, answer
    said = answer.out + answer.err
    assert answer.code != 0, answer
    assert row.ping in said, answer
    assert "redis at redis://mworker:***@127.0.0.1" in said, answer
    assert "Traceback" not in said, answer


def ground_store(lab: Ground) -> Store:
    """What a worker writes events to, by a road that no outage of the table closes."""
    codes = EventCodes(load_event_macs(lab.keys_dir / "mworker"))
    return Store.open(lab.redis_address, timeout=STARTUP, client_name="test", event_codes=codes)


def _answers(lab: Ground, number: int) -> bool:
    """Whether a reaction has published its job."""
    server = lab.redis()
    return any(f"number-{number}" in (server.get(name) or "") for name in server.scan_iter("load:*", count=1000))

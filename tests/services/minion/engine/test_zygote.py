"""The preloaded process for real: forked, told jobs, asked to refresh, ended. Only the master that compiles pillar is missing."""

from __future__ import annotations

import dataclasses
import itertools
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
import pytest

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.engine.backends import MasterBackend
from saltern.minion.engine.zygote import JOB_DIED, READY, Refreshes, start
from saltern.minion.ipc.framed_socket import FramedSocket
from saltern.minion.ipc.messages import SPOOLED
from saltern.minion.jobs.journal import Journal
from saltern.minion.jobs.spool import Spool
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import Masters
from saltwire.handshake import Credentials
from saltwire.keys import PrivateKey, generate_key_string
from statecore.runtime.runtime import Runtime

PATIENCE = 60.0

JID = "2026010100000000{:04d}"


@dataclass
class Live:
    """The main process's side of a zygote."""

    pid: int
    pair: FramedSocket
    cachedir: Path
    spool: Spool
    messages: list[bytes] = field(default_factory=list)

    def tell(self, **message: Any) -> None:
        self.pair.put(msgpack.packb(message))

    def hear(self, wanted: Callable[[bytes], bool]) -> bytes:
        """The first wanted message; what came before it is in ``messages``."""
        deadline = time.monotonic() + PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            readable, writable, _ = select.select([self.pair], [self.pair] if self.pair.pending else [], [], left)
            if writable:
                self.pair.flush()
            if readable and (message := self.pair.receive()) is not None:
                if wanted(message):
                    return message
                # What is closed is readable for ever.
                assert message, f"the zygote is gone; came: {self.messages}"
                self.messages.append(message)
        raise AssertionError(f"not within {PATIENCE} s; came: {self.messages}")

    def ready(self) -> dict[str, Any]:
        message = self.hear(lambda one: one.startswith(READY))
        known: dict[str, Any] = msgpack.unpackb(message[len(READY) :])
        return known

    def run(self, fun: str, *arg: Any, number: int = 1) -> dict[str, Any]:
        """The return of a job."""
        jid = JID.format(number)
        self.tell(job={"jid": jid, "fun": fun, "arg": list(arg), "tgt": "*"})
        self.hear(lambda one: one == SPOOLED)
        (path,) = [path for path in self.spool.waiting() if jid in path.name]
        ret = self.spool.read(path)
        assert ret is not None
        return ret

    def await_running(self, jid: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not (self.cachedir / "proc" / jid).exists():
            assert time.monotonic() < deadline, f"the job does not run within {PATIENCE} s"
            select.select([], [], [], 0.01)

    def ended(self) -> int:
        """The exit code, once it ended."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            select.select([], [], [], 0.01)
        raise AssertionError(f"the zygote has not ended within {PATIENCE} s")


@pytest.fixture(scope="module")
def key() -> PrivateKey:
    return PrivateKey.generate(2048)


@pytest.fixture
def options(tmp_path: Path) -> MinionOptions:
    return MinionOptions(
        id="web1",
        master="127.0.0.1",
        cachedir=str(tmp_path / "cache"),
        pki_dir=str(tmp_path / "pki"),
        grains_file=str(tmp_path / "grains"),
        grains={"role": "front"},
    )


@pytest.fixture
def pillars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file whose text is the pillar that the master compiles."""
    place = tmp_path / "pillar-text"
    place.write_text("first")

    def pillar(home: MasterBackend, runtime: Runtime, *, clean_cache: bool) -> dict[str, Any]:
        return {"text": place.read_text()}

    monkeypatch.setattr(MasterBackend, "pillar", pillar)
    return place


@pytest.fixture
def begin(options: MinionOptions, key: PrivateKey, pillars: Path, tmp_path: Path) -> Iterator[Callable[[], Live]]:
    begun: list[Live] = []

    def make() -> Live:
        credentials = Credentials(generate_key_string(), generate_key_string(), 4505, "")
        pid, pair = start(options, Masters("127.0.0.1"), Identity("web1", key, tmp_path / "pki"), credentials)
        cachedir = Path(options.cachedir)
        begun.append(Live(pid, pair, cachedir, Spool(cachedir / "spool")))
        return begun[-1]

    yield make
    for live in begun:
        with suppress(ProcessLookupError):
            os.kill(live.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(live.pid, 0)
        live.pair.close()


@pytest.fixture
def live(begin: Callable[[], Live]) -> Live:
    made = begin()
    made.first = made.ready()  # type: ignore[attr-defined]
    return made


def test_it_tells_what_targets_are_matched_against(live: Live) -> None:
    first = live.first  # type: ignore[attr-defined]
    assert (first["grains"]["id"], first["grains"]["role"]) == ("web1", "front")
    assert first["pillar"] == {"text": "first"}


def test_a_job_is_taken_run_and_spooled(live: Live) -> None:
    ret = live.run("test.ping")
    assert (ret["return"], ret["retcode"], ret["success"], ret["jid"]) == (True, 0, True, JID.format(1))
    assert live.run("match.pillar", "text:first", number=2)["return"] is True


def test_a_function_that_there_is_not_returns_too(live: Live) -> None:
    ret = live.run("no.such")
    assert not ret["success"]
    assert "'no.such' is not available." in ret["return"]


def test_jobs_run_beside_each_other(live: Live) -> None:
    live.tell(job={"jid": JID.format(1), "fun": "test.sleep", "arg": [60], "tgt": "*"})
    live.await_running(JID.format(1))
    assert live.run("test.ping", number=2)["return"] is True
    running = live.run("saltutil.is_running", "test.sleep", number=3)["return"]
    assert [job["jid"] for job in running] == [JID.format(1)]
    live.run("saltutil.kill_job", JID.format(1), number=4)


class TestOneAtATime:
    """``process_count_max: 1``."""

    @pytest.fixture
    def options(self, options: MinionOptions) -> MinionOptions:
        return dataclasses.replace(options, process_count_max=1)

    def test_several_functions_wait_as_one_does(self, live: Live) -> None:
        live.tell(job={"jid": JID.format(1), "fun": "test.sleep", "arg": [60], "tgt": "*"})
        live.await_running(JID.format(1))
        live.tell(job={"jid": JID.format(2), "fun": ["test.ping", "saltutil.running"], "arg": [[], []], "tgt": "*"})
        looked = {"fun": ["saltutil.running", "saltutil.is_running"], "arg": [[], ["test.*"]]}
        live.tell(job={"jid": JID.format(3), "tgt": "*", **looked})
        live.hear(lambda one: one == SPOOLED)
        assert [path.stem.partition("-")[2] for path in live.spool.waiting()] == [JID.format(3)]
        live.tell(job={"jid": JID.format(4), "fun": "saltutil.kill_job", "arg": [JID.format(1)], "tgt": "*"})
        live.hear(lambda one: one == SPOOLED and live.spool.holds(JID.format(2)))


def test_a_pillar_larger_than_any_socket_takes(begin: Callable[[], Live], pillars: Path) -> None:
    pillars.write_text("x" * 12_000_000)
    assert len(begin().ready()["pillar"]["text"]) == 12_000_000


def test_a_job_larger_than_any_socket_takes(live: Live) -> None:
    ret = live.run("test.echo", "y" * 12_000_000)
    assert len(ret["return"]) == 12_000_000


def test_a_pillar_is_read_anew_when_a_job_asks_for_it(live: Live, pillars: Path) -> None:
    pillars.write_text("second")
    (live.cachedir / "refresh-pillar").touch()
    assert live.ready()["pillar"] == {"text": "second"}
    assert live.run("match.pillar", "text:second")["return"] is True
    assert not (live.cachedir / "refresh-pillar").exists()


def test_jobs_share_the_grains_that_were_announced(live: Live, tmp_path: Path) -> None:
    """To gather them takes longer than most jobs; those of a job are the ones that it was targeted by."""
    (tmp_path / "grains").write_text("rack: 7\n")
    assert live.run("grains.get", "rack")["return"] == ""
    credentials = Credentials(generate_key_string(), generate_key_string(), 4505, "")
    live.tell(credentials=dataclasses.asdict(credentials))
    assert live.run("grains.get", "rack", number=2)["return"] == ""
    (live.cachedir / "refresh-pillar").touch()
    assert live.ready()["grains"]["rack"] == 7
    assert live.run("grains.get", "rack", number=3)["return"] == 7
    (tmp_path / "grains").write_text("rack: 8\n")
    assert live.run("grains.get", "rack", number=4)["return"] == 7


def test_grains_are_read_anew_too(live: Live, tmp_path: Path) -> None:
    (tmp_path / "grains").write_text("rack: 7\n")
    (live.cachedir / "refresh-grains").touch()
    assert live.ready()["grains"]["rack"] == 7


def test_what_is_refreshed_before_it_began_is_no_news(begin: Callable[[], Live], options: MinionOptions) -> None:
    place = Path(options.cachedir)
    place.mkdir(parents=True)
    (place / "refresh-pillar").touch()
    begin().ready()
    assert not (place / "refresh-pillar").exists()


def test_it_ends_with_the_main_process(live: Live) -> None:
    live.pair.close()
    assert live.ended() == 0


def test_it_ends_when_it_is_told_and_waits_for_jobs_in_hand(live: Live) -> None:
    live.tell(job={"jid": JID.format(1), "fun": "test.sleep", "arg": [0.3], "tgt": "*"})
    live.tell(end=PATIENCE)
    assert live.ended() == 0
    assert len(live.spool.waiting()) == 1


def test_it_does_not_wait_for_ever(live: Live) -> None:
    live.tell(job={"jid": JID.format(1), "fun": "test.sleep", "arg": [60], "tgt": "*"})
    live.await_running(JID.format(1))
    live.tell(end=0.1)
    assert live.ended() == 0
    proc = live.cachedir / "proc" / JID.format(1)
    deadline = time.monotonic() + PATIENCE
    while not proc.exists() and time.monotonic() < deadline:
        select.select([], [], [], 0.01)
    os.kill(msgpack.unpackb(proc.read_bytes())["pid"], signal.SIGKILL)


def test_signals_of_the_terminal_are_the_main_processes(live: Live) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(live.pid, number)
    assert live.run("test.ping")["return"] is True


def test_a_killed_jobber_takes_nobody_along_and_is_told_of(live: Live) -> None:
    jid = JID.format(1)
    live.tell(job={"jid": jid, "fun": "test.sleep", "arg": [60], "tgt": "*"})
    live.await_running(jid)
    os.kill(msgpack.unpackb((live.cachedir / "proc" / jid).read_bytes())["pid"], signal.SIGKILL)
    assert live.hear(lambda one: one.startswith(JOB_DIED)) == JOB_DIED + f"-9 {jid}".encode()
    assert live.run("test.ping", number=2)["return"] is True


def test_a_job_of_the_journal_runs_once(live: Live) -> None:
    jid = JID.format(1)
    journal = Journal(live.cachedir, 10)
    job = {"jid": jid, "fun": "test.ping", "arg": [], "tgt": "*"}
    assert journal.receive(job)
    for _ in range(3):
        live.tell(journalled=job)
    live.hear(lambda one: one == SPOOLED)
    live.run("test.ping", number=2)
    assert [path.name.partition("-")[2] for path in live.spool.waiting()] == [f"{jid}.ret", f"{JID.format(2)}.ret"]
    assert journal.entries() == []
    assert jid in journal


def test_refreshes_are_taken_once(tmp_path: Path) -> None:
    for name in ("refresh-pillar", "refresh-grains", "other"):
        (tmp_path / name).touch()
    refreshes = Refreshes(tmp_path)
    assert refreshes.take() == {"pillar", "grains"}
    assert refreshes.take() == set()
    assert (tmp_path / "other").exists()


def test_it_begins_small_and_learns_what_jobs_need(begin: Callable[[], Live], options: MinionOptions) -> None:
    place = Path(options.cachedir) / "extmods" / "modules"
    place.mkdir(parents=True)
    # In the jobber, before anything else of it is loaded.
    text = "import sys\n\ndef loaded():\n    return 'statecore.builtin.modules.timezone' in sys.modules\n"
    (place / "seeing.py").write_text(text)
    begun = sys.modules.pop("statecore.builtin.modules.timezone", None)
    try:
        live = begin()
    finally:
        if begun is not None:
            sys.modules["statecore.builtin.modules.timezone"] = begun
    live.ready()
    assert live.run("seeing.loaded")["return"] is False
    live.run("timezone.get_offset", number=2)
    deadline = time.monotonic() + PATIENCE
    for number in itertools.count(3):
        if live.run("seeing.loaded", number=number)["return"]:
            break
        assert time.monotonic() < deadline


def test_what_gathers_grains_is_gone_when_it_has_them(begin: Callable[[], Live], options: MinionOptions) -> None:
    modules = Path(options.cachedir) / "extmods" / "modules"
    modules.mkdir(parents=True)
    text = "import sys\n\ndef loaded():\n    return [name for name in sys.modules if name == 'nturl2path']\n"
    (modules / "seeing.py").write_text(text)
    grains = modules.parent / "grains"
    grains.mkdir()
    (grains / "rack.py").write_text("import nturl2path\n\ndef rack():\n    return {'rack': 7}\n")
    live = begin()
    assert live.ready()["grains"]["rack"] == 7
    assert live.run("seeing.loaded")["return"] == []
    assert live.run("grains.get", "rack", number=2)["return"] == 7


def test_grains_that_are_no_plain_data_stay_what_they_are(begin: Callable[[], Live], options: MinionOptions) -> None:
    extension = Path(options.cachedir) / "extmods"
    text = "import datetime\n\ndef made():\n    return {'made': datetime.date(2026, 1, 2)}\n"
    for kind, name, content in (
        ("grains", "made.py", text),
        ("modules", "seeing.py", "def year():\n    return __grains__['made'].year\n"),
    ):
        (extension / kind).mkdir(parents=True)
        (extension / kind / name).write_text(content)
    live = begin()
    live.ready()
    assert live.run("seeing.year")["return"] == 2026
    (live.cachedir / "refresh-grains").touch()
    live.ready()
    assert live.run("seeing.year", number=2)["return"] == 2026


def test_grains_that_end_their_process_leave_those_that_there_were(
    begin: Callable[[], Live], options: MinionOptions, tmp_path: Path
) -> None:
    (tmp_path / "grains").write_text("rack: 7\n")
    live = begin()
    live.ready()
    place = Path(options.cachedir) / "extmods" / "grains"
    place.mkdir(parents=True)
    (place / "bad.py").write_text("import os\n\ndef bad():\n    os._exit(9)\n")
    (live.cachedir / "refresh-grains").touch()
    assert live.ready()["grains"]["rack"] == 7
    assert live.run("grains.get", "rack")["return"] == 7


def _megabytes(pid: int) -> float:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("Anonymous:")) / 1024


def test_a_minion_that_is_refreshed_for_ever_does_not_grow(live: Live, pillars: Path) -> None:
    pillars.write_text("x" * 1_000_000)

    def refresh() -> None:
        (live.cachedir / "refresh-pillar").touch()
        live.ready()

    refresh()
    before = _megabytes(live.pid)
    for _ in range(30):
        refresh()
    # Each kept its pillar when it kept anything.
    assert _megabytes(live.pid) - before < 10

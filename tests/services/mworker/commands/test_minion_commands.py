"""Commands of minions, each asked through the door with a session: returns, events, mine, files, pillar, revocation."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from masterstore.events import BEGINNING
from saltern.kit.links.event_bus import Prepared, pack, unpack
from saltwire.jid import is_jid, new_jid

pytestmark = pytest.mark.redis

Worker = Any

JID, OTHER_JID = "20260101000000000000", "20260101000000000001"


class TestReturn:
    """``_return``."""

    def ret(self, **more: Any) -> dict[str, Any]:
        return {"jid": JID, "fun": "test.ping", "fun_args": [], "return": True, "retcode": 0, "success": True} | more

    def test_it_is_stored_told_and_acknowledged(self, worker: Worker) -> None:
        assert worker.minion().ask("_return", **self.ret(out="nested")) is None
        stored = worker.store.jobs.returns(JID)["web1"]
        assert stored == {**self.ret(out="nested"), "id": "web1"}
        assert worker.events == [(f"salt/job/{JID}/ret/web1", {**stored, "cmd": "_return"})]
        assert worker.store.presence.present(0) == {"web1"}

    def test_twice_is_once(self, worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
        minion = worker.minion()
        assert minion.ask("_return", **self.ret()) is None
        assert minion.ask("_return", **self.ret()) is None
        assert "two minions may have this id" not in caplog.text
        assert minion.ask("_return", **self.ret(**{"return": "other"})) is None
        assert worker.store.jobs.returns(JID)["web1"]["return"] is True
        assert len(worker.events) == 1
        assert worker.count("salt_job_returns_total", result="duplicate") == 2
        assert "two minions may have this id" in caplog.text

    def test_a_large_one_is_kept_compressed_and_told_whole(self, new_worker: Callable[..., Worker]) -> None:
        worker = new_worker(compress_return_bytes=2000)
        for jid in (JID, "req"):
            assert worker.minion().ask("_return", **self.ret(jid=jid, **{"return": "x" * 5000})) is None
            kept = worker.events[-1][1]["jid"]
            assert worker.events[-1][1]["return"] == "x" * 5000
            assert worker.store.jobs.returns(kept)["web1"]["return"] == "x" * 5000
            assert int(worker.store.jobs.meta(kept)["bytes"]) < 2000
        assert worker.count("salt_job_returns_total", result="first") == 1

    def test_a_late_one_is_stored_and_counted_so(self, worker: Worker) -> None:
        now_ms = int(time.time() * 1000)
        load = {"jid": JID, "fun": "test.ping", "tgt": "*"}
        worker.store.jobs.publish(load, ["web1"], request_id="r", ttl=60, now_ms=now_ms)
        assert worker.store.jobs.cancel(JID, None, now_ms) == ["web1"]
        assert worker.minion().ask("_return", **self.ret()) is None
        assert worker.store.jobs.returns(JID)["web1"]["return"] is True
        assert worker.count("salt_job_returns_total", result="late") == 1

    def test_the_last_return_of_a_job_tells_how_long_it_took(self, worker: Worker) -> None:
        jid = new_jid(time.time() - 3)
        load = {"jid": jid, "fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "user": "x", "ret": ""}
        worker.store.jobs.publish(load, ["web1", "web2"], request_id="r", ttl=60, now_ms=int(time.time() * 1000))
        worker.minion().ask("_return", **self.ret(jid=jid))
        assert worker.count("salt_job_seconds_count") == 0
        for _ in range(2):
            worker.minion("web2").ask("_return", **self.ret(jid=jid))
        assert worker.count("salt_job_seconds_count") == 1
        assert 3 <= worker.count("salt_job_seconds_sum") < 30

    @pytest.mark.parametrize("jid", [JID, "req"])
    def test_a_worker_that_dies_before_the_bus_has_left_the_event_in_the_stream(self, worker: Worker, jid: str) -> None:
        def die() -> bool:
            raise SystemExit

        worker.context.prepare = lambda tag, data: Prepared(lambda: pack(tag, data), die)
        minion, fields = worker.minion(), self.ret(jid=jid, own_jid=OTHER_JID)
        with pytest.raises(SystemExit):
            minion.ask("_return", **fields)
        # It was not acknowledged, and comes again.
        assert minion.ask("_return", **fields) is None
        events = [unpack(event.frame) for event in worker.store.events.read(BEGINNING, 1)[0]]
        ((tag, data),) = [event for event in events if event]
        assert tag == f"salt/job/{data['jid']}/ret/web1"
        assert worker.store.jobs.returns(data["jid"])["web1"]["return"] == data["return"]

    def test_a_job_that_the_minion_began_gets_a_jid(self, worker: Worker) -> None:
        assert worker.minion().ask("_return", **self.ret(jid="req", fun="state.apply")) is None
        ((tag, data),) = worker.events
        assert is_jid(data["jid"])
        assert tag == f"salt/job/{data['jid']}/ret/web1"
        # No event of a new job said it.
        assert (data["arg"], data["tgt"], data["tgt_type"]) == (data["fun_args"], "web1", "glob")
        job = worker.store.jobs.job(data["jid"])
        assert (job.load["fun"], job.load["tgt"], job.expected) == ("state.apply", "web1", ("web1",))

    def test_a_job_that_the_minion_began_is_one_however_often_it_comes(self, worker: Worker) -> None:
        other, minion = worker.minion("web2"), worker.minion()
        for jid, own in (("req", JID), ("req", JID), ("nocache", OTHER_JID), ("nocache", OTHER_JID)):
            assert minion.ask("_return", **self.ret(jid=jid, own_jid=own)) is None
        # Another minion's id of the same name is another job; what is no id is none.
        assert other.ask("_return", **self.ret(jid="req", own_jid=JID)) is None
        for own in ("../x", 5, ["x"]):
            assert minion.ask("_return", **self.ret(jid="req", own_jid=own)) is None
        assert len(worker.events) == len(set(worker.tags())) == 6
        assert len(worker.store.jobs.recent(9)) == 5
        assert all("own_jid" not in data for _, data in worker.events)

    @pytest.mark.parametrize(
        "change",
        [
            {"jid": "../../etc"},
            {"jid": "1"},
            {"jid": ""},
            {"jid": None},
            {"jid": 20260101},
            {"jid": ["x"]},
            {"fun": ...},
            {"return": ...},
            {"jid": ...},
        ],
    )
    def test_what_is_no_return_is_dropped(self, worker: Worker, change: dict[str, Any]) -> None:
        load = {name: value for name, value in (self.ret() | change).items() if value is not ...}
        assert worker.minion().ask("_return", **load) is False
        assert worker.events == []
        assert worker.store.jobs.recent(10) == []

    def test_results_of_any_kind_are_kept(self, worker: Worker) -> None:
        value = {"n": [1, None, 2.5, "ä"], "bytes": b"\xff\xfe", 7: {"deep": {"er": []}}}
        assert worker.minion().ask("_return", **self.ret(**{"return": value})) is None
        assert "web1" in worker.store.jobs.returns(JID)


class TestEvents:
    """``_minion_event``."""

    @pytest.mark.parametrize(
        ("tag", "fired"),
        [
            ("minion_start", True),
            ("salt/minion/web1/start", True),
            ("my/own/tag", True),
            ("salt/beacon/web1/load", True),
            (f"salt/job/{JID}/prog/web1/3", True),
            ("salt/beacon/db1/load", False),
            ("salt/beacon/db1", False),
            ("salt/minion/db1/start", False),
            (f"salt/job/{JID}/prog/db1/3", False),
            (f"salt/job/{JID}/ret/db1", False),
            (f"salt/job/{JID}/ret/web1", False),
            (f"salt/job/{JID}/new", False),
            (f"salt/run/{JID}/ret", False),
            ("salt/auth", False),
            ("salt/key", False),
            ("key", False),
            ("salt/presence/change", False),
            ("minion/refresh/db1", False),
        ],
    )
    @pytest.mark.parametrize("form", ["single", "batch", "pretag"])
    def test_who_may_fire_what(self, worker: Worker, tag: str, fired: bool, form: str) -> None:
        minion = worker.minion()
        if form == "single":
            minion.ask("_minion_event", tag=tag, data={"a": 1}, pretag=None)
        elif form == "batch":
            minion.ask("_minion_event", events=[{"tag": tag, "data": {"a": 1}}], pretag=None)
        else:
            pretag, _, last = tag.rpartition("/")
            minion.ask("_minion_event", events=[{"tag": last, "data": {"a": 1}}], pretag=pretag)
        assert (tag in worker.tags()) is fired

    def test_a_single_event_carries_the_whole_load(self, worker: Worker) -> None:
        assert worker.minion().ask("_minion_event", tag="my/tag", data="text", pretag=None) is None
        ((tag, data),) = worker.events
        assert tag == "my/tag"
        assert data == {"cmd": "_minion_event", "tag": "my/tag", "data": "text", "pretag": None, "id": "web1"}

    def test_a_batch_carries_each_events_own_data(self, worker: Worker) -> None:
        events = [{"tag": "a", "data": {"x": 1}}, {"tag": "b", "data": "text"}, {"tag": "c"}, {"no": "tag"}, "nonsense"]
        worker.minion().ask("_minion_event", events=events, pretag="pre")
        assert worker.events == [
            ("pre/a", {"x": 1, "id": "web1"}),
            ("a", {"x": 1, "id": "web1"}),
            ("pre/b", {"data": "text", "id": "web1"}),
            ("b", {"data": "text", "id": "web1"}),
            ("pre/c", {"tag": "c", "id": "web1"}),
            ("c", {"tag": "c", "id": "web1"}),
        ]

    def test_the_stamp_of_a_batch_is_the_masters(self, worker: Worker) -> None:
        worker.minion().ask("_minion_event", events=[{"tag": "my/tag", "data": {"id": "web1", "_stamp": "2020"}}])
        assert worker.events == [("my/tag", {"id": "web1"})]

    def test_the_master_says_when(self, worker: Worker) -> None:
        worker.minion().ask("_minion_event", tag="my/tag", data={}, _stamp="2020")
        assert "_stamp" not in worker.events[0][1]

    @pytest.mark.parametrize("load", [{}, {"tag": 5}, {"tag": None, "data": {}}, {"events": None}, {"events": []}])
    def test_what_is_no_event_fires_nothing(self, worker: Worker, load: dict[str, Any]) -> None:
        assert worker.minion().ask("_minion_event", **load) is None
        assert worker.events == []

    def test_resources_are_taken_note_of(self, worker: Worker) -> None:
        assert worker.minion().ask("_register_resources", resources={}) is True


def test_a_return_that_is_not_to_be_kept_is_heard_of_alone(worker: Worker) -> None:
    minion = worker.minion("web1")
    assert minion.ask("_return", jid="nocache", fun="test.ping", **{"return": True}, schedule="j") is None
    ((tag, data),) = worker.events
    assert tag == f"salt/job/{data['jid']}/ret/web1"
    assert (data["schedule"], data["return"]) == ("j", True)
    assert worker.store.jobs.returns(data["jid"]) == {}


class TestMine:
    """``_mine`` and its relatives."""

    def test_what_one_offers_another_gets(self, worker: Worker) -> None:
        web, db = worker.minion("web1"), worker.minion("db1", key=1)
        assert web.ask("_mine", data={"network.ip_addrs": ["10.0.0.1"], "other": 1}) is True
        assert db.ask("_mine", data={"network.ip_addrs": ["10.0.0.2"]}) is True
        both = {"web1": ["10.0.0.1"], "db1": ["10.0.0.2"]}
        assert db.ask("_mine_get", tgt="*", fun="network.ip_addrs") == both
        assert db.ask("_mine_get", tgt="web*", fun="network.ip_addrs", tgt_type="glob") == {"web1": ["10.0.0.1"]}
        assert db.ask("_mine_get", tgt="*", fun="network.ip_addrs,other") == {
            "network.ip_addrs": both,
            "other": {"web1": 1},
        }
        assert db.ask("_mine_get", tgt="*", fun=["other"]) == {"other": {"web1": 1}}
        assert db.ask("_mine_get", tgt="*", fun="missing") == {}
        # Of several those that nobody offers are left out; one that is named twice is one.
        assert db.ask("_mine_get", tgt="*", fun=["other", "missing"]) == {"other": {"web1": 1}}
        assert db.ask("_mine_get", tgt="*", fun="missing,none") == {}
        assert db.ask("_mine_get", tgt="*", fun="other,other") == {"web1": 1}

    def test_forgetting(self, worker: Worker) -> None:
        web, db = worker.minion("web1"), worker.minion("db1", key=1)
        for minion in (web, db):
            minion.ask("_mine", data={"a": 1, "b": 2})
        assert web.ask("_mine_delete", fun="a") is True
        assert db.ask("_mine_get", tgt="*", fun="a") == {"db1": 1}
        assert web.ask("_mine", data={"c": 3}, clear=True) is True
        assert db.ask("_mine_get", tgt="*", fun="a,b,c") == {"a": {"db1": 1}, "b": {"db1": 2}, "c": {"web1": 3}}
        assert web.ask("_mine_flush") is True
        assert db.ask("_mine_get", tgt="*", fun="c") == {}
        assert db.ask("_mine_get", tgt="*", fun="a") == {"db1": 1}, "one flushed another's"

    @pytest.mark.parametrize(
        ("guard", "seen_by"),
        [
            ({}, {"web1", "db1"}),
            ({"allow_tgt": "db*"}, {"db1"}),
            ({"allow_tgt": "web1,db1", "allow_tgt_type": "list"}, {"web1", "db1"}),
            ({"allow_tgt": "L@db1 and db*", "allow_tgt_type": "compound"}, {"db1"}),
            ({"allow_tgt": "nobody"}, set()),
            ({"allow_tgt": "(", "allow_tgt_type": "pcre"}, set()),
        ],
    )
    def test_who_offers_says_who_may_have_it(self, worker: Worker, guard: dict[str, Any], seen_by: set[str]) -> None:
        web, db = worker.minion("web1"), worker.minion("db1", key=1)
        web.ask("_mine", data={"a": {"__saltmine_acl__": 1, "__data__": [1], **guard}})
        told = {name: minion.ask("_mine_get", tgt="*", fun="a") for name, minion in (("web1", web), ("db1", db))}
        assert told == {name: {"web1": [1]} if name in seen_by else {} for name in told}

    def test_the_master_says_who_may_have_what(self, new_worker: Callable[..., Worker]) -> None:
        rules = {"web.*": ["network.*", "("], "db1$": ["test\\.ping"], "(": [".*"]}
        worker = new_worker(mine_get=rules)
        web, db = worker.minion("web1"), worker.minion("db1", key=1)
        web.ask("_mine", data={"network.ip_addrs": 1, "test.ping": 2})
        assert web.ask("_mine_get", tgt="*", fun="network.ip_addrs,test.ping") == {"network.ip_addrs": {"web1": 1}}
        assert web.ask("_mine_get", tgt="*", fun="test.ping") == {}
        assert db.ask("_mine_get", tgt="*", fun="test.ping") == {"web1": 2}

    @pytest.mark.parametrize(
        "fields",
        [
            {"tgt": "(", "tgt_type": "pcre", "fun": "a"},
            {"tgt": None, "fun": "a"},
            {"tgt": 5, "tgt_type": "list", "fun": "a"},
            {"tgt": "*", "tgt_type": "nonsense", "fun": "a"},
            {"tgt": "*", "fun": 5},
            {"tgt": "*", "fun": None},
            {"tgt": "*"},
        ],
    )
    def test_questions_that_mean_nothing_have_an_empty_answer(
        self, worker: Worker, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        assert worker.minion().ask("_mine_get", **fields) == {}
        assert "Traceback" not in caplog.text

    def test_a_request_is_about_so_many_functions(self, worker: Worker) -> None:
        """A worker asks the store for each, and a minion may not hold it for seconds."""
        minion, many = worker.minion(), [f"mod.fun{number}" for number in range(1001)]
        assert minion.ask("_mine", data=dict.fromkeys(many, 1)) is False
        assert minion.ask("_mine", data=dict.fromkeys(many[:1000], 1)) is True
        assert minion.ask("_mine_get", tgt="*", fun=many) == {}
        assert minion.ask("_mine_get", tgt="*", fun=",".join(many)) == {}
        assert len(minion.ask("_mine_get", tgt="*", fun=many[:1000])) == 1000

    @pytest.mark.parametrize("data", [None, "text", [1]])
    def test_what_is_no_mine_data(self, worker: Worker, data: Any) -> None:
        assert worker.minion().ask("_mine", data=data) is False


class TestFiles:
    """The file server."""

    @pytest.fixture
    def minion(self, worker: Worker, tmp_path: Path) -> Any:
        root = tmp_path / "salt"
        (root / "web" / "files").mkdir(parents=True)
        (root / "empty").mkdir()
        (root / "top.sls").write_text("base: {}\n")
        (root / "web" / "init.sls").write_text("a: test.nop\n")
        (root / "web" / "files" / "big").write_bytes(bytes(range(256)) * 5000)
        (root / "web" / "link").symlink_to("init.sls")
        (root / "out").symlink_to("/etc/passwd")
        (tmp_path / "secret").write_text("s3cret")
        return worker.minion()

    def test_lists(self, minion: Any) -> None:
        assert minion.ask("_file_envs") == ["base"]
        paths = minion.ask("_file_list", saltenv="base", prefix="")
        assert {"top.sls", "web/init.sls", "web/files/big"} <= set(paths)
        assert paths == sorted(paths)
        assert minion.ask("_file_list", saltenv="base", prefix="web/files") == ["web/files/big"]
        assert set(minion.ask("_dir_list", saltenv="base")) >= {"web", "web/files", "empty"}
        assert minion.ask("_file_list_emptydirs", saltenv="base") == ["empty"]
        assert minion.ask("_symlink_list", saltenv="base")["web/link"] == "init.sls"
        assert minion.ask("_file_list", saltenv="nowhere") == []

    def test_hash_and_stat(self, minion: Any) -> None:
        digest = minion.ask("_file_hash", path="top.sls", saltenv="base")
        assert digest["hash_type"] == "sha256"
        assert len(digest["hsum"]) == 64
        found, stat = minion.ask("_file_hash_and_stat", path="top.sls", saltenv="base")
        assert (found, stat[6]) == (digest, 9)
        assert minion.ask("_file_hash_and_stat", path="no", saltenv="base") == ["", None]
        assert minion.ask("_file_find", path="top.sls", saltenv="base")["rel"] == "top.sls"

    @pytest.mark.parametrize("level", [None, 5])
    def test_a_file_comes_in_chunks(self, minion: Any, level: int | None, tmp_path: Path) -> None:
        whole, loc = b"", 0
        for _ in range(10):
            chunk = minion.ask("_serve_file", path="web/files/big", saltenv="base", loc=loc, gzip=level)
            data = chunk["data"].encode("utf-8", "surrogateescape") if isinstance(chunk["data"], str) else chunk["data"]
            if not data:
                break
            part = gzip.decompress(data) if chunk.get("gzip") else data
            whole, loc = whole + part, loc + len(part)
        assert whole == (tmp_path / "salt" / "web" / "files" / "big").read_bytes()

    @pytest.mark.parametrize(
        "path",
        ["../secret", "/etc/passwd", "web/../../secret", "", ".", "web", "\0", None, 5, ["top.sls"], "a" * 5000],
    )
    def test_nothing_outside_the_tree_is_served(self, minion: Any, path: Any) -> None:
        answer = minion.ask("_serve_file", path=path, saltenv="base", loc=0)
        assert not answer["data"]
        assert minion.ask("_file_hash", path=path, saltenv="base") == ""
        assert minion.ask("_file_find", path=path, saltenv="base") == {"path": "", "rel": ""}

    @pytest.mark.parametrize("loc", [-1, "0", None, 2**40, 2**63 - 1, 2**64 - 1])
    def test_places_that_are_not_in_the_file(self, minion: Any, loc: Any) -> None:
        assert not minion.ask("_serve_file", path="top.sls", saltenv="base", loc=loc)["data"]

    @pytest.mark.parametrize("saltenv", [None, "", "base"])
    def test_base_is_what_is_meant_without_an_environment(self, minion: Any, saltenv: Any) -> None:
        assert minion.ask("_file_hash", path="top.sls", saltenv=saltenv)

    def test_options_of_the_master(self, minion: Any) -> None:
        answer = minion.ask("_master_opts")
        assert answer["file_roots"] == {"base": []}, "a minion learns no path of the master"
        assert (answer["renderer"], answer["failhard"]) == ("jinja|yaml", False)
        assert "renderer" not in minion.ask("_master_opts", env_only=True)
        assert minion.ask("_master_tops") == {}


class TestPillar:
    """``_pillar``."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        root = tmp_path / "pillar"
        root.mkdir(exist_ok=True)
        (root / "top.sls").write_text("base:\n  'web*': [web]\n  'os:Debian':\n    - match: grain\n    - deb\n")
        (root / "web.sls").write_text("role: {{ grains['id'] }}\nsecret: hush\n")
        (root / "deb.sls").write_text("deb: true\n")
        return root

    def test_each_gets_its_own(self, worker: Worker, tree: Path) -> None:
        assert worker.minion("web1").pillar(grains={"os": "Debian"}) == {"role": "web1", "secret": "hush", "deb": True}
        assert worker.minion("db1", key=1).pillar() == {}

    def test_grains_that_lie_about_the_id_gain_nothing(self, worker: Worker, tree: Path) -> None:
        assert worker.minion("db1").pillar(grains={"id": "web1"}) == {}
        assert worker.store.cache.grains("db1") == {"id": "db1"}

    def test_grains_and_pillar_are_kept_for_targets(self, worker: Worker, tree: Path) -> None:
        worker.minion().pillar(grains={"os": "Debian"})
        assert worker.store.cache.grains("web1") == {"os": "Debian", "id": "web1"}
        assert worker.context.pillars()["web1"]["secret"] == "hush"
        assert "minion/refresh/web1" in worker.tags()

    def test_nothing_is_kept_where_that_is_off(self, new_worker: Callable[..., Worker], tree: Path) -> None:
        worker = new_worker(minion_data_cache=False)
        worker.minion().pillar(grains={"os": "Debian"})
        assert worker.store.cache.grains("web1") is None
        assert worker.context.pillars() == {}

    def test_faults_come_with_it(self, worker: Worker, tree: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tree / "web.sls").write_text("a: [\n")
        (error,) = worker.minion().pillar()["_errors"]
        assert "web" in error
        assert "hush" not in error

    def test_an_override_is_for_this_answer_only(self, worker: Worker, tree: Path) -> None:
        minion = worker.minion()
        minion.pillar()
        assert minion.pillar(pillar_override={"role": "other"})["role"] == "other"
        assert worker.context.pillars()["web1"]["role"] == "web1"

    @pytest.mark.parametrize("grains", [None, "text", [1]])
    def test_grains_that_are_none(self, worker: Worker, tree: Path, grains: Any) -> None:
        assert worker.minion().pillar(grains=grains)["role"] == "web1"

    def test_an_environment_that_leads_out_is_none(self, new_worker: Callable[..., Worker], tmp_path: Path) -> None:
        """The minion names the environment, and with ``__env__`` that is part of a path."""
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "top.sls").write_text("'../outside':\n  '*': [a]\n")
        (outside / "a.sls").write_text("secret: 1\n")
        worker = new_worker(pillar_roots={"base": [], "__env__": [str(tmp_path / "pillar/__env__")]})
        for env in ("../outside", "..", "/"):
            assert worker.minion().pillar(pillarenv=env) == {}


class TestExternalPillar:
    """``_pillar`` with plugins."""

    def plugin(self, tmp_path: Path, text: str, kind: str = "pillar", name: str = "mine") -> None:
        path = tmp_path / "extmods" / kind / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_users_plugin_runs_for_the_minion_that_asks(
        self, new_worker: Callable[..., Worker], tmp_path: Path
    ) -> None:
        self.plugin(
            tmp_path,
            "def ext_pillar(minion_id, pillar, arg):\n"
            "    return {'mine': [minion_id, __grains__['id'], __grains__.get('os'), __opts__['id'], arg, pillar['a']]}\n",
        )
        (tmp_path / "pillar").mkdir(exist_ok=True)
        (tmp_path / "pillar/top.sls").write_text("base: {'*': [a]}\n")
        (tmp_path / "pillar/a.sls").write_text("a: sls\n")
        worker = new_worker(ext_pillar=[{"mine": 5}])
        assert worker.minion("web1").pillar(grains={"os": "Debian"}) == {
            "a": "sls",
            "mine": ["web1", "web1", "Debian", "master_master", 5, "sls"],
        }
        assert worker.minion("db1", key=1).pillar(grains={"id": "web1"})["mine"][:3] == ["db1", "db1", None]

    def test_pillar_opts_puts_the_masters_options_into_pillar(self, new_worker: Callable[..., Worker]) -> None:
        minion = new_worker(pillar_opts=True, timeout=7, proxy_password="s3cret").minion()
        pillar = minion.pillar()
        assert (pillar["master"]["timeout"], pillar["master"]["id"]) == (7, "master_master")
        assert not {"redis_url", "proxy_password"} & pillar["master"].keys()

    def test_a_plugin_is_read_anew_each_time(self, new_worker: Callable[..., Worker], tmp_path: Path) -> None:
        minion = new_worker(ext_pillar=[{"mine": {}}]).minion()
        for number in (1, 2):
            self.plugin(tmp_path, f"def ext_pillar(minion_id, pillar):\n    return {{'number': {number}}}\n")
            assert minion.pillar() == {"number": number}

    def test_one_that_fails_is_an_error_and_nothing_is_kept(
        self, new_worker: Callable[..., Worker], tmp_path: Path
    ) -> None:
        worker = new_worker(ext_pillar=[{"mine": {}}, {"cmd_yaml": "echo 'b: %s'"}])
        self.plugin(tmp_path, "\ndef ext_pillar(minion_id, pillar):\n    raise ValueError('away')\n")
        assert worker.minion().pillar() == {
            "b": "web1",
            "_errors": [f"Failed to load ext_pillar mine: away ({tmp_path}/extmods/pillar/mine.py:3)"],
        }
        assert worker.context.pillars() == {}

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("import sys; sys.exit(3)", "3"),
            ("raise SystemExit", "SystemExit"),
            ("a = []; a.append(a); return {'a': a}", "its result contains itself"),
            ("return 5", "it gave int, and must give a dictionary"),
            ("return pillar['nothing']", "'nothing'"),
            ("import no_such_library", "No module named 'no_such_library'"),
        ],
    )
    def test_one_that_does_what_it_must_not(
        self, new_worker: Callable[..., Worker], tmp_path: Path, text: str, says: str
    ) -> None:
        worker = new_worker(ext_pillar=[{"mine": {}}])
        self.plugin(tmp_path, f"def ext_pillar(minion_id, pillar):\n    {text}\n")
        (error,) = worker.minion().pillar()["_errors"]
        assert error.startswith(f"Failed to load ext_pillar mine: {says}")

    def test_one_that_gives_the_pillar_itself(self, new_worker: Callable[..., Worker], tmp_path: Path) -> None:
        worker = new_worker(ext_pillar=[{"cmd_yaml": "echo 'a: 1'"}, {"mine": {}}])
        self.plugin(
            tmp_path,
            "def ext_pillar(minion_id, pillar):\n    return {'given': pillar, 'known': __pillar__, 's': {1}}\n",
        )
        assert worker.minion().pillar() == {"a": 1, "given": {"a": 1}, "known": {}, "s": [1]}

    @pytest.mark.parametrize("text", ["while True: pass", "try:\n        while True: pass\n    except Exception: pass"])
    def test_one_that_hangs_is_interrupted(self, new_worker: Callable[..., Worker], tmp_path: Path, text: str) -> None:
        worker = new_worker(ext_pillar=[{"mine": {}}], ext_pillar_timeout=1)
        self.plugin(tmp_path, f"def ext_pillar(minion_id, pillar):\n    {text}\n")
        (error,) = worker.minion().pillar()["_errors"]
        assert error.startswith("Failed to load ext_pillar mine: it takes longer than 1 seconds (ext_pillar_timeout)")

    def test_what_a_minion_may_ask_for(
        self, new_worker: Callable[..., Worker], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        minion = new_worker(on_demand_ext_pillar=["mine"]).minion()
        self.plugin(tmp_path, "def ext_pillar(minion_id, pillar, arg):\n    return {'asked': arg}\n")
        assert minion.pillar(ext={"mine": "x"}) == {"asked": "x"}
        marker = tmp_path / "ran"
        for ext in ({"cmd_yaml": f"touch {marker}"}, {"mine": 1, "cmd_yaml": f"touch {marker}"}, "cmd_yaml", ["mine"]):
            assert minion.pillar(ext=ext) == {}
        assert not marker.exists()
        assert "on_demand_ext_pillar does not list" in caplog.text

    def test_an_id_that_a_command_must_not_get(self, new_worker: Callable[..., Worker], tmp_path: Path) -> None:
        marker = tmp_path / "ran"
        worker = new_worker(ext_pillar=[{"cmd_yaml": "echo %s"}], master_tops={"ext_nodes": "echo"})
        minion = worker.minion(f"x;touch${{IFS}}{marker.name}")
        (error,) = minion.pillar()["_errors"]
        assert "holds what a command must not be given" in error
        assert minion.ask("_master_tops", opts={}) == {}
        assert not marker.exists()


class TestMasterTops:
    """``_master_tops``."""

    def test_it_is_asked_for_the_minion_itself(self, new_worker: Callable[..., Worker], tmp_path: Path) -> None:
        path = tmp_path / "extmods/tops/mine.py"
        path.parent.mkdir(parents=True)
        path.write_text(
            "def top(**kwargs):\n    opts = kwargs['opts']\n"
            "    return {'base': [opts['id'], kwargs['grains']['id'], opts['saltenv'], kwargs['grains']['os']]}\n"
        )
        enc = tmp_path / "enc"
        enc.write_text('#!/bin/sh\necho "classes: [enc-$1]"\n')
        enc.chmod(0o755)
        worker = new_worker(master_tops={"mine": True, "ext_nodes": str(enc)})
        asked = {"id": "db1", "saltenv": "dev", "grains": {"id": "db1", "os": "Debian"}}
        assert worker.minion("web1").ask("_master_tops", opts=asked) == {
            "base": ["web1", "web1", "dev", "Debian", "enc-web1"]
        }

    @pytest.mark.parametrize("opts", [None, {}, "text", [1], {"grains": 5}])
    def test_options_that_are_none(self, new_worker: Callable[..., Worker], opts: Any) -> None:
        worker = new_worker(master_tops={"ext_nodes": "echo classes:"})
        assert worker.minion().ask("_master_tops", opts=opts) == {}


class TestRevoke:
    """``revoke_auth``."""

    def test_a_minion_takes_its_own_key_back(self, worker: Worker) -> None:
        worker.accept("db1")
        epoch = worker.store.epochs.current().aes
        assert worker.minion().ask("revoke_auth") is True
        assert worker.store.minion_keys.ids("accepted") == ["db1"]
        assert worker.store.epochs.current().aes == epoch + 1
        assert [data["act"] for tag, data in worker.events if tag == "salt/key"] == ["delete"]

    @pytest.mark.parametrize("kept", [True, False])
    def test_what_is_known_of_it_may_stay(self, worker: Worker, kept: bool) -> None:
        worker.store.cache.set_grains("web1", {"os": "Debian"})
        assert worker.minion().ask("revoke_auth", preserve_minion_cache=kept) is True
        assert ("web1" in worker.store.cache.grains_of(["web1"])) is kept

    def test_unless_the_master_forbids_it(self, new_worker: Callable[..., Worker]) -> None:
        worker = new_worker(allow_minion_key_revoke=False)
        assert worker.minion().ask("revoke_auth")["id"] == "web1"
        assert worker.store.minion_keys.ids("accepted") == ["web1"]


def test_events_fit_the_bus(worker: Worker) -> None:
    worker.minion().ask("_minion_event", tag="t", data={"raw": b"\xff"}, pretag=None)
    assert msgpack.packb(worker.events[0][1])

"""Operators' commands: publish, job_returns, runner, wheel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from saltern.mworker.processes import TooManyRunners
from saltwire.jid import is_jid
from saltwire.keys import PrivateKey

pytestmark = pytest.mark.redis

Worker = Any


@pytest.fixture
def fleet(worker: Worker) -> Worker:
    worker.accept("web1", "web2", "db1")
    return worker


class TestPublish:
    """``publish``."""

    def test_an_answered_job_is_a_recorded_job(self, fleet: Worker) -> None:
        answer = fleet.control("publish", fun="test.arg", arg=[1, {"__kwarg__": True, "a": 2}], tgt="web*", user="joe")
        jid = answer["jid"]
        assert is_jid(jid)
        assert answer == {"jid": jid, "minions": ["web1", "web2"], "missing": []}
        job = fleet.store.jobs.job(jid)
        assert job.expected == ("web1", "web2")
        assert (job.load["fun"], job.load["user"], job.load["tgt"]) == ("test.arg", "joe", "web*")
        ((_, load),) = fleet.store.publications.range_since(0)
        assert (load["jid"], load["arg"], load["expected"]) == (jid, [1, {"__kwarg__": True, "a": 2}], ["web1", "web2"])
        (tag, data), (sent, load) = fleet.events
        assert (sent, load["jid"], load["fun"]) == (f"salt/job/{data['jid']}/publish", data["jid"], data["fun"])
        assert tag == f"salt/job/{jid}/new"
        assert (data["minions"], data["fun"], data["user"]) == (["web1", "web2"], "test.arg", "joe")

    def test_every_job_goes_to_the_external_job_cache_too(self, new_worker: Callable[..., Worker]) -> None:
        worker = new_worker(ext_job_cache="mongo")
        worker.accept("web1")
        rets = [
            worker.store.jobs.load(worker.control("publish", fun="test.ping", ret=ret)["jid"])["ret"]
            for ret in ("", "x")
        ]
        assert rets == ["mongo", "x,mongo"]

    def test_asked_twice_it_publishes_once(self, fleet: Worker) -> None:
        one, other = [fleet.control("publish", fun="test.ping", request_id="r") for _ in range(2)]
        assert one == other
        assert len(fleet.store.publications.range_since(0)) == 1
        assert len(fleet.events) == 2
        assert fleet.control("publish", fun="test.ping", request_id="s")["jid"] != one["jid"]

    def test_many_jobs_in_one_instant_have_jids_of_their_own(
        self, fleet: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("saltern.mworker.commands.control.time.time", lambda: 1_800_000_000.0)
        jids = {fleet.control("publish", fun="test.ping")["jid"] for _ in range(20)}
        assert len(jids) == 20
        assert all(is_jid(jid) for jid in jids)

    def test_nobody_there(self, fleet: Worker) -> None:
        answer = fleet.control("publish", fun="test.ping", tgt=["ghost"], tgt_type="list")
        assert answer["jid"] is None
        assert answer["minions"] == []
        assert answer["missing"] == ["ghost"]
        assert answer["error"] == "Master could not resolve minions for target ['ghost']"
        assert fleet.store.publications.range_since(0) == []
        assert fleet.events == []

    def test_some_there(self, fleet: Worker) -> None:
        answer = fleet.control("publish", fun="test.ping", tgt="web1,ghost", tgt_type="list")
        assert (answer["minions"], answer["missing"]) == (["web1"], ["ghost"])

    @pytest.mark.parametrize("kwargs", [{"metadata": {"ticket": 7}}, {"delimiter": "|"}, {"ret_config": "x"}])
    def test_what_travels_with_the_job(self, fleet: Worker, kwargs: dict[str, Any]) -> None:
        fleet.control("publish", fun="test.ping", kwargs={**kwargs, "password": "hush"})
        ((_, load),) = fleet.store.publications.range_since(0)
        assert load.items() >= kwargs.items()
        assert "hush" not in str(load)

    @pytest.mark.parametrize(
        ("fields", "waits", "replays"),
        [
            ({}, None, 300),
            ({"when_back": "2h"}, 7200, 7200),
            ({"when_back": 60}, 60, 300),
            ({"no_replay": True}, None, None),
            ({"when_back": "", "no_replay": False}, None, 300),
        ],
        ids=str,
    )
    def test_for_how_long_it_may_run(
        self, fleet: Worker, fields: dict[str, Any], waits: int | None, replays: int | None
    ) -> None:
        fleet.store.presence.seen("web1", int(time.time() * 1000))
        answer = fleet.control("publish", fun="test.ping", tgt="web*", **fields)
        # web2 was never heard of; silence says something only where the job waits.
        assert answer.get("offline") == (["web2"] if waits else None)
        meta = fleet.store.jobs.meta(answer["jid"])
        created = int(meta["created"])
        until = created + replays * 1000 if replays else 0
        assert meta.get("when_back_until") == (str(created + waits * 1000) if waits else None)
        assert meta.get("replay_until", "0") == str(until)
        ((_, load),) = fleet.store.publications.range_since(0)
        assert load["replay_until"] == until
        assert "replay_until" not in fleet.store.jobs.load(answer["jid"])

    @pytest.mark.parametrize(
        ("fields", "says"),
        [
            ({"when_back": "soon"}, "when_back: 'soon' is not a duration"),
            ({"when_back": "31d"}, "when_back: '31d' is 2678400 s; a job waits for 1 s to 2592000 s (30 days)"),
            ({"when_back": -1}, "when_back: '-1' is not a duration"),
            ({"when_back": 0}, "when_back: '0' is 0 s"),
            ({"when_back": True}, "when_back: 'True' is not a duration"),
            ({"no_replay": "maybe"}, "no_replay must be true or false, not 'maybe'"),
            ({"when_back": "1h", "no_replay": True}, "leave one out"),
        ],
        ids=str,
    )
    def test_what_is_no_length_of_time(self, fleet: Worker, fields: dict[str, Any], says: str) -> None:
        kind, text = fleet.control("publish", fun="test.ping", **fields)
        assert kind == "InvocationError"
        assert says in text
        assert fleet.store.publications.range_since(0) == []

    @pytest.mark.parametrize(
        ("user", "option", "client", "recorded"),
        [
            ("joe", "", "cli", "joe"),
            (None, "ops", "cli", "ops"),
            (None, "", "api", "api"),
        ],
    )
    def test_who_did_it(
        self, new_worker: Callable[..., Worker], user: str | None, option: str, client: str, recorded: str
    ) -> None:
        worker = new_worker(user=option, control_acl={"api": [".*"]})
        worker.accept("web1")
        jid = worker.control("publish", client, fun="test.ping", user=user)["jid"]
        assert worker.store.jobs.load(jid)["user"] == recorded

    def test_a_chosen_jid(self, fleet: Worker) -> None:
        jid = "20260101000000000000"
        assert fleet.control("publish", fun="test.ping", jid=jid)["jid"] == jid
        assert fleet.control("publish", fun="test.ping", jid=jid)[0] == "JidError"
        assert fleet.control("publish", fun="test.ping", jid="7")[0] == "JidError"

    @pytest.mark.parametrize(
        ("fields", "name"),
        [
            ({"fun": "test.ping", "tgt": "(", "tgt_type": "pcre"}, "TargetError"),
            ({"fun": "test.ping", "tgt_type": "nonsense"}, "TargetError"),
            ({"fun": "test.ping", "tgt": None}, "TargetError"),
            ({"fun": "test.ping", "tgt": 5, "tgt_type": "list"}, "TargetError"),
            ({"fun": "test.ping", "tgt": {"a": 1}, "tgt_type": "list"}, "TargetError"),
            ({"fun": ""}, "InvocationError"),
            ({"fun": []}, "InvocationError"),
            ({"fun": ["test.ping", ""]}, "InvocationError"),
            ({"fun": 5}, "InvocationError"),
            ({}, "InvocationError"),
            ({"fun": "test.ping", "arg": "text"}, "InvocationError"),
            ({"fun": "test.ping", "arg": 5}, "InvocationError"),
            ({"fun": "test.ping", "kwargs": ["a"]}, "InvocationError"),
        ],
    )
    def test_what_cannot_be_published(
        self, fleet: Worker, fields: dict[str, Any], name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert fleet.control("publish", **fields)[0] == name
        assert fleet.store.publications.range_since(0) == []
        assert "Traceback" not in caplog.text

    def test_returns_of_a_job(self, fleet: Worker) -> None:
        jid = fleet.control("publish", fun="test.ping")["jid"]
        assert fleet.control("job_returns", jid=jid) == {}
        fleet.minion("web1").ask("_return", jid=jid, fun="test.ping", **{"return": True})
        assert fleet.control("job_returns", jid=jid)["web1"]["return"] is True
        assert fleet.control("job_returns", jid="1") == {}
        assert fleet.control("job_returns") == {}


class TestRunner:
    """``runner``."""

    def test_it_starts_and_says_where_to_listen(self, worker: Worker) -> None:
        answer = worker.control("runner", fun="test.arg", arg=[1], kwarg={"a": 2})
        assert answer["tag"] == f"salt/run/{answer['jid']}"
        assert len(worker.runners) == 1

    @pytest.mark.parametrize(
        ("fields", "name", "says"),
        [
            ({"fun": "jobs.activ"}, "UnknownFunction", "'jobs.activ' is not available. The nearest is 'jobs.active'."),
            (
                {"fun": "manage"},
                "UnknownFunction",
                "'manage' is not available. It is a module: `salt-run -d manage` shows its runners.",
            ),
            ({"fun": "zzzz"}, "UnknownFunction", "'zzzz' is not available."),
            ({}, "UnknownFunction", "'' is not available."),
            ({"fun": "test.arg", "arg": "text"}, "InvocationError", "arg must be a list, not 'text'"),
            ({"fun": "test.arg", "kwarg": [1]}, "InvocationError", "kwarg must be a dict, not [1]"),
        ],
    )
    def test_what_is_not_started(self, worker: Worker, fields: dict[str, Any], name: str, says: str) -> None:
        assert worker.control("runner", **fields) == (name, says)
        assert worker.runners == []

    def test_a_request_that_is_sent_again_starts_nothing_twice(self, worker: Worker) -> None:
        first, again = (worker.control("runner", fun="test.arg", request_id="r") for _ in range(2))
        assert first == again
        assert len(worker.runners) == 1
        other = worker.control("runner", fun="test.arg", request_id="another")
        assert other["jid"] != first["jid"]
        assert len(worker.runners) == 2

    def test_too_many(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(work: Callable[[], None], lost: Callable[[str], None]) -> None:
            raise TooManyRunners("32 runners run already")

        with monkeypatch.context() as patch:
            patch.setattr(worker.context, "start_runner", refuse)
            said = worker.control("runner", fun="test.arg", request_id="r")
            assert said == ("TooManyRunners", "32 runners run already")
        # Sent again when there is room, it is started.
        assert worker.control("runner", fun="test.arg", request_id="r")["jid"]
        assert len(worker.runners) == 1


class TestWheel:
    """``wheel``: minion keys."""

    @pytest.fixture
    def keys(self, worker: Worker) -> Worker:
        for name, state in (("web1", "accepted"), ("web2", "pending"), ("web3", "rejected"), ("web4", "denied")):
            worker.store.minion_keys.store(name, worker.keys[0].public.pem, state)
        worker.epoch = worker.store.epochs.current().aes
        return worker

    def wheel(self, worker: Worker, fun: str, **kwarg: Any) -> Any:
        return worker.control("wheel", fun=fun, kwarg=kwarg)

    def test_lists(self, keys: Worker) -> None:
        everything = {
            "minions": ["web1"],
            "minions_pre": ["web2"],
            "minions_rejected": ["web3"],
            "minions_denied": ["web4"],
        }
        assert self.wheel(keys, "key.list_all") == everything
        assert self.wheel(keys, "key.list_match", match="web[12]") == {"minions": ["web1"], "minions_pre": ["web2"]}
        assert self.wheel(keys, "key.name_match", match="web1,web4") == {
            "minions": ["web1"],
            "minions_denied": ["web4"],
        }
        assert self.wheel(keys, "key.list_match", match=["web3"]) == {"minions_rejected": ["web3"]}
        assert self.wheel(keys, "key.list_match", match="nobody") == {}

    @pytest.mark.parametrize(
        ("fun", "kwarg", "answer", "states", "rotated"),
        [
            ("key.accept", {"match": "*"}, {"minions": ["web2"]}, {"web2": "accepted", "web3": "rejected"}, False),
            (
                "key.accept",
                {"match": "*", "include_rejected": True, "include_denied": True},
                {"minions": ["web2", "web3", "web4"]},
                {"web3": "accepted", "web4": "accepted"},
                False,
            ),
            ("key.accept", {"match": "web1"}, {}, {"web1": "accepted"}, False),
            ("key.accept", {"match": "nobody"}, {}, {}, False),
            ("key.reject", {"match": "*"}, {"minions_rejected": ["web2"]}, {"web1": "accepted"}, False),
            (
                "key.reject",
                {"match": "*", "include_accepted": True},
                {"minions_rejected": ["web2", "web1"]},
                {"web1": "rejected"},
                True,
            ),
            ("key.delete", {"match": "web2"}, {"minions_pre": ["web2"]}, {"web2": None, "web1": "accepted"}, False),
            ("key.delete", {"match": "web1"}, {"minions": ["web1"]}, {"web1": None}, True),
        ],
    )
    def test_changes(
        self,
        keys: Worker,
        fun: str,
        kwarg: dict[str, Any],
        answer: dict[str, list[str]],
        states: dict[str, str | None],
        rotated: bool,
    ) -> None:
        changed = self.wheel(keys, fun, **kwarg)
        assert {name: sorted(ids) for name, ids in changed.items()} == {n: sorted(ids) for n, ids in answer.items()}
        for name, state in states.items():
            stored = keys.store.minion_keys.state_of(name)
            assert (stored[0] if stored else None) == state
        # A minion that lost its key can read no further publication.
        assert keys.store.epochs.current().aes == keys.epoch + rotated
        told = [(data["act"], data["id"]) for tag, data in keys.events if tag == "salt/key"]
        assert sorted(told) == sorted((fun.removeprefix("key."), name) for ids in answer.values() for name in ids)
        assert ("key" in keys.tags()) is rotated

    def test_a_list_names_ids_and_not_patterns(self, keys: Worker) -> None:
        keys.store.minion_keys.store("web*", keys.keys[0].public.pem, "pending")
        assert self.wheel(keys, "key.accept", match=["web*"]) == {"minions": ["web*"]}
        assert keys.store.minion_keys.ids("pending") == ["web2"]

    def test_everything_can_go(self, keys: Worker) -> None:
        assert set(self.wheel(keys, "key.delete", match="*")) == {
            "minions",
            "minions_pre",
            "minions_rejected",
            "minions_denied",
        }
        assert not any(keys.store.minion_keys.all().values())

    def test_a_denied_key_takes_the_place_of_the_accepted_one(self, keys: Worker) -> None:
        """A host was made anew: its new key was denied, and is to be the one."""
        pem = keys.keys[1].public.pem
        keys.store.minion_keys.store("web1", pem, "denied")
        assert self.wheel(keys, "key.finger", match="web1") == {
            "minions": {"web1": keys.keys[0].public.fingerprint()},
            "minions_denied": {"web1": keys.keys[1].public.fingerprint()},
        }
        assert self.wheel(keys, "key.accept", match=["web1"], include_denied=True) == {"minions": ["web1"]}
        assert keys.store.minion_keys.state_of("web1") == ("accepted", pem)
        assert self.wheel(keys, "key.list_match", match="web1") == {"minions": ["web1"]}

    def test_what_is_known_of_a_minion_goes_with_its_last_key(self, keys: Worker) -> None:
        cache = keys.store.cache
        keys.store.minion_keys.store("web1", keys.keys[1].public.pem, "denied")
        for name in ("web1", "web2", "web3"):
            cache.set_grains(name, {"os": "Debian"})
        assert self.wheel(keys, "key.delete_dict", match={"minions_denied": ["web1"]}) == {"minions_denied": ["web1"]}
        assert cache.grains("web1") == {"os": "Debian"}
        self.wheel(keys, "key.delete", match=["web2"], preserve_minions=True)
        self.wheel(keys, "key.delete", match=["web1", "web3"], rotate_aes_key=False)
        assert [cache.grains(name) for name in ("web1", "web2", "web3")] == [None, {"os": "Debian"}, None]
        assert keys.store.epochs.current().aes == keys.epoch

    def test_keys_by_their_lists(self, keys: Worker) -> None:
        assert self.wheel(keys, "key.list", match="pre") == {"minions_pre": ["web2"]}
        assert list(self.wheel(keys, "key.list", match="all")) == [
            "minions_pre",
            "minions_rejected",
            "minions",
            "minions_denied",
        ]
        assert self.wheel(keys, "key.reject_dict", match={"minions_pre": ["web2", "web1"]}) == {
            "minions_rejected": ["web2"]
        }
        assert self.wheel(
            keys, "key.accept_dict", match={"minions_rejected": ["web2"], "minions_pre": []}, include_rejected=True
        ) == {"minions": ["web2"]}
        assert keys.store.minion_keys.ids("accepted") == ["web1", "web2"]

    def test_what_is_known_of_minions(self, keys: Worker) -> None:
        keys.store.presence.seen("web1", int((time.time() - 60) * 1000))
        known = keys.control("known", minions=["web1", "web2", "nobody"])
        assert 60 <= known["web1"].pop("age") < 120
        assert known == {
            "web1": {"key": "accepted"},
            "web2": {"key": "pending", "age": None},
            "nobody": {"key": "", "age": None},
        }
        assert keys.control("known", minions="web1")[0] == "InvocationError"

    def test_key_pairs_are_made(self, keys: Worker) -> None:
        pair = self.wheel(keys, "key.gen")
        assert PrivateKey.from_pem(pair["priv"].encode()).public.pem == pair["pub"].strip()
        accepted = self.wheel(keys, "key.gen_accept", id_="web9")
        assert keys.store.minion_keys.state_of("web9") == ("accepted", accepted["pub"].strip())
        assert self.wheel(keys, "key.gen_accept", id_="web9") == {}
        assert self.wheel(keys, "key.gen_accept", id_="web9", force=True)["pub"] != accepted["pub"]
        own = keys.context.keys.private.public
        assert self.wheel(keys, "key.master_key_str") == {"local": {"master.pub": own.pem}}
        assert self.wheel(keys, "key.finger_master") == {"local": {"master.pub": own.fingerprint()}}

    def test_a_replaced_key_renews_that_of_publications(self, keys: Worker) -> None:
        given = {"minions": {"web1": keys.keys[1].public.pem}}
        assert self.wheel(keys, "key.import", keys=given)["kept"] == {"web1": "another key is accepted here"}
        assert keys.store.epochs.current().aes == keys.epoch
        assert self.wheel(keys, "key.import", keys=given, replace=True)["stored"] == {"minions": ["web1"]}
        assert keys.store.epochs.current().aes == keys.epoch + 1
        refused = self.wheel(keys, "key.import", keys={"minions": {"../x": "PEM", "y": 5}})["refused"]
        assert refused["../x"] == "no minion id of this master"
        assert "not a public key" in refused["y"]

    def test_fingerprints(self, keys: Worker) -> None:
        public = keys.keys[0].public
        answer = self.wheel(keys, "key.finger", match="*")
        assert answer["minions"] == {"web1": public.fingerprint("sha256")}
        assert set(answer) == {"minions", "minions_pre", "minions_rejected", "minions_denied", "local"} - (
            set() if "local" in answer else {"local"}
        )
        assert self.wheel(keys, "key.finger", match="web1", hash_type="md5")["minions"]["web1"] == public.fingerprint(
            "md5"
        )
        own = self.wheel(keys, "key.finger", match="master.pub")
        assert own == {"local": {"master.pub": keys.context.keys.private.public.fingerprint("sha256")}}
        assert self.wheel(keys, "key.key_str", match="web1") == {"minions": {"web1": public.pem}}

    @pytest.mark.parametrize(
        ("fields", "name"),
        [
            ({"fun": "key.nothing"}, "UnknownFunction"),
            ({}, "UnknownFunction"),
            ({"fun": "key.accept", "kwarg": {"match": 5}}, "InvocationError"),
            ({"fun": "key.finger", "kwarg": {"match": "*", "hash_type": "nonsense"}}, "InvocationError"),
            ({"fun": "key.finger", "kwarg": {"match": "*", "hash_type": "shake_128"}}, "InvocationError"),
            ({"fun": "key.list", "kwarg": {"match": "loved"}}, "InvocationError"),
            ({"fun": "key.accept_dict", "kwarg": {"match": "*"}}, "InvocationError"),
            ({"fun": "key.accept_dict", "kwarg": {"match": {"loved": ["a"]}}}, "InvocationError"),
            ({"fun": "key.accept_dict", "kwarg": {"match": {"minions_pre": 5}}}, "InvocationError"),
            ({"fun": "key.gen", "kwarg": {"keysize": 512}}, "InvocationError"),
            ({"fun": "key.gen_accept", "kwarg": {"id_": "a/b"}}, "InvocationError"),
            ({"fun": "key.import", "kwarg": {"keys": ["x"]}}, "InvocationError"),
            ({"fun": "key.import", "kwarg": {"keys": {"loved": {}}}}, "InvocationError"),
        ],
    )
    def test_what_means_nothing(
        self, keys: Worker, fields: dict[str, Any], name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert keys.control("wheel", **fields)[0] == name
        assert "Traceback" not in caplog.text

    @pytest.mark.parametrize("kwarg", [None, "text", {}])
    @pytest.mark.parametrize("fun", ["key.accept", "key.reject", "key.delete"])
    def test_nothing_changes_unless_somebody_is_named(self, keys: Worker, fun: str, kwarg: Any) -> None:
        before = keys.store.minion_keys.all()
        assert keys.control("wheel", fun=fun, kwarg=kwarg)[0] == "InvocationError"
        assert keys.store.minion_keys.all() == before

"""Finding 38.8: nobody reads, repeats, cancels or ends another's job, whatever names, arguments and detours a request has."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from saltern.kit.links.control import ControlError
from saltern.mworker import eauth
from saltern.mworker.eauth.identity import Identity
from saltern.mworker.runners import job_queries
from saltern.mworker.runners.runner import RunnerTools
from tests.security.api_before_worker import external_auth
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

pytestmark = pytest.mark.redis

READER: list[Any] = ["@jobs", {"web*": ["test.ping"]}]


@pytest.fixture
def master(new_worker: NewWorker, tmp_path: Path) -> Worker:
    rows = {"reader": READER, "ann": [".*", "@runner", "@wheel", "@jobs"], "root": [{"web*": ["test.ping"]}]}
    made = new_worker(external_auth=external_auth(tmp_path, rows), publisher_acl={"ann": [{"web*": ["test.ping"]}]})
    made.accept("web1", "db1")
    return made


def token_of(master: Worker, user: str) -> str:
    return str(master.control("login", "api", username=user, password=f"pw-{user}", eauth="file")["token"])


def a_job(master: Worker, client: str = "cli", **more: Any) -> str:
    asked = {"fun": "cmd.run", "arg": ["secret-word"], "tgt": "*", "user": "root"} | more
    return str(master.control("publish", client, **asked)["jid"])


#: A runner that changes a job -> its arguments, with JID and OWN for the other's job and the own one.
CHANGES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "cancel": ("jobs.cancel", ["JID"], {}),
    "cancel by name": ("jobs.cancel", [], {"jid": "JID"}),
    "cancel on one minion": ("jobs.cancel", ["JID", "web1"], {}),
    "cancel, the own one named too": ("jobs.cancel", ["OWN"], {"jid": "JID"}),
    "cancel, the own one as a minion": ("jobs.cancel", ["JID", "OWN"], {}),
    "cancel with a number": ("jobs.cancel", [5], {}),
    "cancel with a list": ("jobs.cancel", [["OWN", "JID"]], {}),
    "cancel nothing": ("jobs.cancel", [], {}),
    "pause": ("state.pause", ["JID"], {}),
    "set a pause": ("state.set_pause", ["JID"], {}),
    "resume": ("state.resume", ["JID"], {}),
    "remove a pause": ("state.rm_pause", ["JID"], {}),
    "kill": ("state.soft_kill", ["JID"], {}),
    "kill by name": ("state.soft_kill", [], {"jid": "JID"}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "rows", [READER, ["test.ping"], [".*"], ["@wheel"], [{"@jobs": [".*"]}], [{"@runner": ["jobs.list"]}]], ids=str
)
def test_nobody_changes_anothers_job(new_worker: NewWorker, rows: list[Any], change: str) -> None:
    master = new_worker(publisher_acl={"bob": rows})
    master.accept("web1", "db1")
    jid = a_job(master)
    before = new_worker(publisher_acl={"bob": ["test.ping"]})
    own = str(before.control("publish", "bob", fun="test.ping", tgt="web1")["jid"])

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(each) for each in value]
        return {"JID": jid, "OWN": own}.get(value, value)

    fun, arg, kwarg = CHANGES[change]
    named = {name: filled(value) for name, value in kwarg.items()}
    answer = master.control("runner", "bob", fun=fun, arg=filled(arg), kwarg=named)
    assert answer[0] == "AuthorizationError"
    assert master.runners == []


@pytest.mark.parametrize(
    ("sender", "job"),
    [
        ("a user named as the user of a command", {}),
        ("an operator's key named as a user", {"client": "ann", "fun": "test.ping", "arg": [], "tgt": "web1"}),
    ],
)
@pytest.mark.parametrize("cmd", ["job_call", "job_status", "job_returns", "runner"])
def test_a_name_makes_no_owner(
    master: Worker, monkeypatch: pytest.MonkeyPatch, sender: str, job: dict[str, Any], cmd: str
) -> None:
    """Two backends, a key, and a command line can have users of one name."""
    jid = a_job(master, **job)
    if sender.startswith("a user"):
        token = token_of(master, "root")
    else:
        monkeypatch.setattr(eauth, "check", lambda *given: Identity("ann"))
        master.context.options.external_auth["ldap"] = {"ann": [{"db*": ["test.ping"]}]}
        token = str(master.control("login", "api", username="ann", password="x", eauth="ldap")["token"])
    fields = {"fun": "jobs.cancel", "arg": [jid]} if cmd == "runner" else {"jid": jid}
    answer = master.control(cmd, "api", token=token, **fields)
    assert "secret-word" not in str(answer)
    if cmd == "runner":
        assert answer[0] == "AuthorizationError"
    elif not isinstance(answer, tuple):
        # Of the job, a user sees what the user's rows cover; of the key's job, on another minion, nothing.
        assert "db1" not in str(answer) or not job


#: What a user who reads all jobs changes in the publication that repeats one.
REPEATS: dict[str, dict[str, Any]] = {
    "as it was": {},
    "with another user": {"user": "ann"},
    "within its minions": {"within": ["web1", "db1"]},
    "as a question": {"tgt": ["web1"], "tgt_type": "list"},
    "on its own minion": {"tgt": "web1"},
    "several functions": {"fun": ["test.ping", "cmd.run"], "arg": [[], ["id"]], "tgt": "web1"},
}


@pytest.mark.parametrize("change", REPEATS)
def test_a_repeated_job_is_decided_as_if_it_was_typed(master: Worker, change: str) -> None:
    before = len(master.store.publications.range_since(0))
    asked = {"fun": "cmd.run", "arg": ["id"], "tgt": "*"} | REPEATS[change]
    behalf = {"way": "user", "name": "reader", "eauth": "file", "groups": []}
    answer = master.control("publish", "mworker", on_behalf=behalf, by_sender=True, **asked)
    assert answer[0] == "AuthorizationError"
    assert len(master.store.publications.range_since(0)) == before


@pytest.mark.parametrize(
    "rows", [["@runner"], ["@runner", "@jobs"], [{"@runner": ["jobs.rerun"]}], ["@runner", "test.ping"]], ids=str
)
def test_a_runner_is_no_right_to_what_it_repeats(new_worker: NewWorker, rows: list[Any]) -> None:
    master = new_worker(publisher_acl={"bob": rows})
    master.accept("web1", "db1")
    jid = a_job(master)
    before = len(master.store.publications.range_since(0))

    def call(cmd: str, **fields: Any) -> Any:
        behalf = {"way": "key", "name": "bob", "eauth": "", "groups": []}
        answer = master.control(cmd, "mworker", on_behalf=behalf, **fields)
        if isinstance(answer, tuple):
            raise ControlError(*answer)
        return answer

    tools = SimpleNamespace(
        store=master.store, options=master.context.options, user="bob", control=SimpleNamespace(call=call)
    )
    with pytest.raises(ControlError, match="may not run cmd"):
        job_queries.rerun(cast(RunnerTools, tools), jid, all=True)
    assert len(master.store.publications.range_since(0)) == before


@pytest.mark.parametrize("tgt", ["*", "db1"])
@pytest.mark.parametrize("cmd", ["job_call", "find_jobs", "job_status"])
def test_a_target_tells_no_pillar(new_worker: NewWorker, cmd: str, tgt: str) -> None:
    """The target of another's job can hold a secret: I@password:sesame."""
    master = new_worker(publisher_acl={"bob": [{"web*": ["test.ping"]}]})
    master.accept("web1", "db1")
    master.context.keep_pillar("web1", {"password": "sesame"})
    master.context.keep_pillar("db1", {"password": "sesame"})
    jid = a_job(master, tgt="I@password:sesame", tgt_type="compound")
    assert "sesame" not in str(master.control(cmd, "bob", jid=jid, filters={}))


@pytest.mark.parametrize("minion", ["db1", "db*", "web1,db1"])
def test_a_filter_tells_of_no_other_minion(new_worker: NewWorker, minion: str) -> None:
    master = new_worker(publisher_acl={"bob": [{"web*": ["test.ping"]}]})
    master.accept("web1", "web2", "db1")
    a_job(master, tgt=["web2", "db1"], tgt_type="list")
    assert master.control("find_jobs", "bob", filters={"minion": minion})["jobs"] == []


@pytest.mark.parametrize("client", ["bob", "api", "cli"])
def test_an_owner_is_not_named_from_outside(new_worker: NewWorker, client: str) -> None:
    master = new_worker(publisher_acl={name: [{"web*": ["test.ping"]}] for name in ("bob", "api", "cli")})
    master.accept("web1")
    jid = str(
        master.control("publish", client, fun="test.ping", tgt="web1", owner="key eve", kwargs={"owner": "key eve"})[
            "jid"
        ]
    )
    assert cast(Any, master.store.jobs.load(jid))["owner"] == f"key {client}"
    ((_, sent),) = master.store.publications.range_since(0)
    assert "owner" not in sent


def test_a_minion_gets_no_owner(master: Worker) -> None:
    a_job(master, client="ann", fun="test.ping", arg=[], tgt="web1", when_back="1h")
    now_ms = int(time.time() * 1000)
    (load,) = master.store.jobs.missed("web1", 0, now_ms)
    assert "owner" not in load


# -------------------------------------------------------------------------------------------------------- ordinary use


@pytest.mark.ordinary
def test_a_role_repeats_what_the_masters_options_say(new_worker: NewWorker) -> None:
    """A schedule of the role maintenance may have the runner jobs.rerun."""
    master = new_worker()
    master.accept("web1")
    behalf = {"way": "key", "name": "maintenance", "eauth": "", "groups": []}
    asked = {"fun": "cmd.run", "arg": ["id"], "tgt": ["web1"], "tgt_type": "list"}
    assert master.control("publish", "mworker", on_behalf=behalf, by_sender=True, **asked)["minions"] == ["web1"]


@pytest.mark.ordinary
def test_the_owner_cancels_the_own_job(master: Worker) -> None:
    jid = a_job(master, client="ann", fun="test.ping", arg=[], tgt="web1")
    master.control("runner", "ann", fun="jobs.cancel", arg=[jid])
    assert len(master.runners) == 1

"""Attacks by keys without rights, and by operators that reach beyond their rights."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from saltern.kit.config.access_rows import LiveRows
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.rights import OWN_ROWS
from saltern.kit.links.sockets import LINKS
from saltern.mworker.commands import CONTROL_COMMANDS, ControlPolicy
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

ROOT = Path(__file__).resolve().parents[2]

#: Command of port 4507 -> a request that would do something.
REQUESTS: dict[str, dict[str, Any]] = {
    "publish": {"fun": "test.ping", "tgt": "*"},
    "targets": {"tgt": "*"},
    "known": {},
    "job_returns": {"jid": "20260101000000000000"},
    "job_status": {"jid": "20260101000000000000"},
    "failed_of": {"jid": "20260101000000000000"},
    "find_jobs": {},
    "runner": {"fun": "test.arg"},
    "wheel": {"fun": "key.list_all"},
    "kept_events": {"after": 0},
    "fleet": {},
    "topology": {},
    "job_matrix": {"jid": "20260101000000000000"},
    "job_call": {"jid": "20260101000000000000"},
}

#: Whom nobody gave a right.
NOBODY = ["api", "ann", "publisher", "reqserver", "eventpublisher", "", "cli2", "*"]


@pytest.mark.ordinary
def test_every_command_is_tried() -> None:
    free = (ControlPolicy.ANY, ControlPolicy.REQSERVER)
    assert {name for name, row in CONTROL_COMMANDS.items() if row.policy not in free} == set(REQUESTS)


@pytest.mark.redis
@pytest.mark.parametrize("client", ["cli", "mworker", "maintenance", "ann", "", "*"])
def test_nobody_but_the_reqserver_tells_who_has_gone(new_worker: NewWorker, client: str) -> None:
    """Whoever could, would make minions look absent."""
    master = new_worker(control_acl={client: [".*", "@runner", "@wheel", "@jobs"]})
    master.accept("web1")
    master.store.presence.seen("web1", 1000)
    name, why = master.control("connections", client, left={"web1": 0}, connected=[], at=2000.0)
    assert name == "AuthorizationError"
    assert "the reqserver does" in why
    assert master.store.presence.present(1000) == {"web1"}
    assert "reqserver" not in LINKS["control"].clients


@pytest.mark.redis
@pytest.mark.parametrize("options", [{}, {"publisher_acl": {"bob": [".*"]}}, {"control_acl": {"bob": [".*"]}}], ids=str)
@pytest.mark.parametrize("client", NOBODY)
@pytest.mark.parametrize("cmd", list(REQUESTS))
def test_a_key_that_no_option_names_may_do_nothing(new_worker: NewWorker, options: Any, client: str, cmd: str) -> None:
    master = new_worker(**options)
    master.accept("web1")
    if (client, cmd) == ("api", "kept_events"):
        # The API shows events to its users, and may do nothing else without a user's token.
        assert master.control(cmd, client, **REQUESTS[cmd]) == []
        return
    name, _ = master.control(cmd, client, **REQUESTS[cmd])
    assert name == "AuthorizationError"
    assert master.events == []
    assert master.runners == []


@pytest.mark.ordinary
def test_the_own_rows_are_of_keys_that_ask_on_4507() -> None:
    assert OWN_ROWS.keys() <= LINKS["control"].clients
    assert OWN_ROWS["api"] == ("@events",)


@pytest.mark.parametrize("config", [ROOT / "compose.yaml", *sorted((ROOT / "k8s").rglob("*.yaml"))], ids=str)
@pytest.mark.ordinary
def test_what_we_ship_gives_no_other_key_a_right(config: Path) -> None:
    text = config.read_text()
    assert "control_acl" not in text
    assert "publisher_acl" not in text
    assert list(yaml.safe_load_all(text))


@pytest.mark.parametrize(
    ("client", "options", "admitted"),
    [
        ("api", {}, True),
        ("api", {"control_acl": {"api": []}}, False),
        ("ann", {}, False),
        ("ann", {"publisher_acl": {"bob": [".*"]}}, False),
        ("ann", {"publisher_acl": {"ann": []}}, False),
        ("ann", {"control_acl": {"*": []}}, False),
        ("cli", {"control_acl": {"cli": []}}, False),
        ("ann", {"publisher_acl": {"ann": ["test.ping"]}}, True),
        ("api", {"control_acl": {"api": ["test.ping"]}}, True),
        ("cli", {}, True),
        ("reactor", {"control_acl": {"reactor": []}}, True),
        ("maintenance", {"publisher_acl": {"ann": []}}, True),
    ],
    ids=str,
)
@pytest.mark.ordinary
def test_events_are_for_keys_with_a_right(client: str, options: Any, admitted: bool) -> None:
    from saltern.eventpublisher.main import _has_rights

    public = b"a" * 40
    auth = CurveAuth.__new__(CurveAuth)
    auth._has_rights = lambda name: _has_rights(LiveRows(MasterOptions(**options)), name)
    auth._users = {b"k" * 32: f"{client} {public.decode()}"}
    auth._look = lambda **_: None  # type: ignore[method-assign]
    assert bool(auth._admitted("event_pub", b"k" * 32)) is admitted
    # On 4507 each request is decided by itself.
    assert bool(auth._admitted("control", b"k" * 32)) is True


#: Attack of an operator who may run test.* on web* -> the request.
BEYOND: dict[str, dict[str, Any]] = {
    "another minion": {"fun": "test.ping", "tgt": "db1"},
    "every minion": {"fun": "test.ping", "tgt": "*"},
    "another function": {"fun": "cmd.run", "arg": ["id"], "tgt": "web1"},
    "one allowed function and another": {"fun": ["test.ping", "cmd.run"], "arg": [[], ["id"]], "tgt": "web1"},
    "another function, then an allowed one": {"fun": ["cmd.run", "test.ping"], "arg": [["id"], []], "tgt": "web1"},
    "a function that contains an allowed one": {"fun": "mytest.ping", "tgt": "web1"},
    "a list with another minion": {"fun": "test.ping", "tgt": ["web1", "db1"], "tgt_type": "list"},
    "a compound with another minion": {"fun": "test.ping", "tgt": "web1 or db1", "tgt_type": "compound"},
    "a denied compound": {"fun": "test.ping", "tgt": "not web1", "tgt_type": "compound"},
    "another minion's grain": {"fun": "test.ping", "tgt": "role:bank", "tgt_type": "grain"},
    "a node group": {"fun": "test.ping", "tgt": "all", "tgt_type": "nodegroup"},
    "its own restriction": {"fun": "test.ping", "tgt": "db1", "within": ["db1"]},
    "no restriction": {"fun": "test.ping", "tgt": "db1", "within": None},
    "another user's name": {"fun": "test.ping", "tgt": "db1", "user": "cli"},
    "a delimiter that moves the target": {
        "fun": "test.ping", "tgt": "role|bank", "tgt_type": "grain", "kwargs": {"delimiter": "|"},
    },
    "a pillar of another minion": {"fun": "test.ping", "tgt": "secret:s*", "tgt_type": "pillar"},
    "an expression that backtracks": {"fun": "test.ping", "tgt": "(a+)+$", "tgt_type": "pcre"},
    "an expression of grains that backtracks": {"fun": "test.ping", "tgt": "g:(a+)+$", "tgt_type": "grain_pcre"},
    "a function that backtracks in the rule": {"fun": "a" * 60 + "!", "tgt": "web1"},
    "a runner": {"cmd": "runner", "fun": "test.arg"},
    "a wheel function": {"cmd": "wheel", "fun": "key.accept", "kwarg": {"match": "*"}},
    "a runner named as a function": {"fun": "@runner", "tgt": "web1"},
}  # fmt: skip


@pytest.mark.redis
@pytest.mark.parametrize("request_", BEYOND.values(), ids=list(BEYOND))
def test_an_operator_reaches_nothing_beyond_the_row(new_worker: NewWorker, request_: dict[str, Any]) -> None:
    rows = {"ann": [{"web*": ["test.", "(a+)+$"]}]}
    master = new_worker(publisher_acl=rows, nodegroups={"all": "*"})
    victim = "a" * 60 + "!"
    master.accept("web1", "db1", victim)
    master.store.cache.set_grains("db1", {"role": "bank"})
    master.store.cache.set_grains(victim, {"g": victim})
    master.context.keep_pillar("db1", {"secret": "sesame"})
    started = time.process_time()
    answer = master.control(**{"cmd": "publish", "client": "ann", **request_})
    # An operator's expression may take two seconds, see docs/security.md.
    assert time.process_time() - started < 4
    assert isinstance(answer, tuple) or answer["minions"] == []
    assert master.store.publications.range_since(0) == []


@pytest.mark.redis
@pytest.mark.parametrize(
    ("right", "wrong", "tgt_type"),
    [
        ("secret:sesame", "secret:another", "pillar"),
        ("secret:s*", "secret:t*", "pillar"),
        ("secret:s.*", "secret:t.*", "pillar_pcre"),
        ("I@secret:s*", "I@secret:t*", "compound"),
        ("web1 or I@secret:s*", "web1 or I@secret:t*", "compound"),
    ],
)
def test_an_operator_reads_no_pillar_beyond_the_row(
    new_worker: NewWorker, right: str, wrong: str, tgt_type: str
) -> None:
    master = new_worker(publisher_acl={"ann": [{"web*": ["test."]}]})
    master.accept("web1", "db1")
    master.context.keep_pillar("db1", {"secret": "sesame"})
    seen = []
    for tgt in (right, wrong):
        answer = master.control("publish", "ann", fun="test.ping", tgt=tgt, tgt_type=tgt_type)
        seen.append(answer if isinstance(answer, tuple) else (answer["minions"], answer["missing"]))
    assert seen[0] == seen[1]

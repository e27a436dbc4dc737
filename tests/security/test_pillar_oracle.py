"""Finding 38.6: no target tells a sender what the pillar of a minion outside of the sender's rows holds.

Each kind of expression that reads pillar, addresses or ranges is sent through each way in that takes a target. The right
guess about another minion gets the same answer as a wrong one, and nothing reaches that minion.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from saltern.mworker import targets
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

pytestmark = pytest.mark.redis

#: The user's rows cover web1 and web2. db1 holds the secret.
BOB: list[Any] = [{"web*": ["test.ping"]}, {"@runner": ["manage.up", "cache.grains"]}, {"@wheel": ["key.finger"]}]

#: What the range server answers.
RANGES = {"%right": ["db1", "web1"], "%wrong": ["web1"]}

NODEGROUPS = {
    "right": "I@secret:s*",
    "wrong": "I@secret:t*",
    "right-address": "S@10.9.0.0/16",
    "wrong-address": "S@10.8.0.0/16",
    "right-range": "R@%right",
    "wrong-range": "R@%wrong",
}


class Guess(NamedTuple):
    """A right and a wrong guess about db1, as targets of one type."""

    right: object
    wrong: object
    tgt_type: str


GUESSES = {
    "a glob of a value": Guess("secret:s*", "secret:t*", "pillar"),
    "a whole value": Guess("secret:sesame", "secret:sesama", "pillar"),
    "the presence of a key": Guess("secret:*", "secreT:*", "pillar"),
    "a nested value": Guess("deep:inner:9*", "deep:inner:8*", "pillar"),
    "a wildcard key": Guess("deep:*:9*", "deep:*:8*", "pillar"),
    "an expression": Guess("secret:s.+", "secret:t.+", "pillar_pcre"),
    "an exact value": Guess("secret:sesame", "secret:another", "pillar_exact"),
    "a compound word": Guess("I@secret:s*", "I@secret:t*", "compound"),
    "a compound expression": Guess("J@secret:s.*e", "J@secret:t.*e", "compound"),
    "a negated word": Guess("db1 and not I@secret:t*", "db1 and not I@secret:s*", "compound"),
    "a word in brackets": Guess("( web1 or I@secret:s* )", "( web1 or I@secret:t* )", "compound"),
    "a word with a delimiter": Guess("I|@deep|inner|9*", "I|@deep|inner|8*", "compound"),
    "a list of words": Guess(["web1", "or", "I@secret:s*"], ["web1", "or", "I@secret:t*"], "compound"),
    "an exact compound word": Guess("I@secret:sesame", "I@secret:another", "compound_pillar_exact"),
    "a node group": Guess("right", "wrong", "nodegroup"),
    "a node group in a compound": Guess("web1 or N@right", "web1 or N@wrong", "compound"),
    "an address": Guess("10.9.0.7", "10.8.0.7", "ipcidr"),
    "a network": Guess("10.9.0.0/16", "10.8.0.0/16", "ipcidr"),
    "an IPv6 network": Guess("fd00:9::/32", "fd00:8::/32", "ipcidr"),
    "a network in a compound": Guess("web1 or S@10.9.0.0/16", "web1 or S@10.8.0.0/16", "compound"),
    "a node group of a network": Guess("right-address", "wrong-address", "nodegroup"),
    "a range": Guess("%right", "%wrong", "range"),
    "a range in a compound": Guess("web1 or R@%right", "web1 or R@%wrong", "compound"),
    "a node group of a range": Guess("right-range", "wrong-range", "nodegroup"),
}


def _asks(cmd: str, client: str = "bob", **more: Any) -> Callable[[Worker, object, str], Any]:
    return lambda master, tgt, tgt_type: master.control(cmd, client, tgt=tgt, tgt_type=tgt_type, **more)


BEHALF = {"way": "key", "name": "bob", "eauth": "", "groups": []}

#: Way in -> how a target is sent through it.
WAYS: dict[str, Callable[[Worker, object, str], Any]] = {
    # A command's completion, `--preview-target`, and the first look of a batch.
    "targets": _asks("targets"),
    "a list of the fleet": _asks("fleet", ids=True),
    "the rows of the fleet": _asks("fleet"),
    "a publication": _asks("publish", fun="test.ping"),
    # Of the role mworker: what a runner that bob started sends.
    "a runner's target": _asks("targets", "mworker", on_behalf=BEHALF),
    "a runner's publication": _asks("publish", "mworker", on_behalf=BEHALF, fun="test.ping", user="bob"),
}


@pytest.fixture
def master(new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setattr(targets, "expand", lambda server, expression: RANGES[expression])
    made = new_worker(publisher_acl={"bob": BOB}, nodegroups=NODEGROUPS, range_server="range:80")
    made.accept("web1", "web2", "db1")
    for number, minion in enumerate(("web1", "web2")):
        made.store.cache.set_grains(minion, {"ipv4": [f"10.1.0.{number}"], "ipv6": ["fd00:1::1"]})
        made.context.keep_pillar(minion, {"own": minion})
    made.store.cache.set_grains("db1", {"ipv4": ["10.9.0.7"], "ipv6": ["fd00:9::7"]})
    made.context.keep_pillar("db1", {"secret": "sesame", "deep": {"inner": "9876"}})
    return made


def _without_times(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return answer
    return {name: value for name, value in answer.items() if name not in ("jid", "now", "error")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("guess", GUESSES)
def test_a_right_guess_is_answered_like_a_wrong_one(master: Worker, guess: str, way: str) -> None:
    right, wrong, tgt_type = GUESSES[guess]
    hit, miss = (_without_times(WAYS[way](master, tgt, tgt_type)) for tgt in (right, wrong))
    said = [master.store.publications.range_since(0)]
    if guess != "a negated word":
        # That one matches db1 for both guesses, because its pillar counts as empty.
        assert "db1" not in str(hit).replace(str(right), "")
        assert all("db1" not in str(sent.get("expected")) for group in said for _, sent in group)
    assert str(hit).replace(str(right), "") == str(miss).replace(str(wrong), "")


@pytest.mark.parametrize("guess", [name for name in GUESSES if "address" not in name and "network" not in name])
def test_a_user_with_a_token_sees_no_more(new_worker: NewWorker, tmp_path: Path, guess: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(targets, "expand", lambda server, expression: RANGES[expression])
    users = tmp_path / "users"
    users.write_text("bob:pw\n")
    rows = {"file": {"^filename": str(users), "bob": ["@jobs", {"web*": ["test.ping"]}]}}
    master = new_worker(external_auth=rows, nodegroups=NODEGROUPS, range_server="range:80")
    master.accept("web1", "db1")
    master.context.keep_pillar("db1", {"secret": "sesame", "deep": {"inner": "9876"}})
    token = master.control("login", "api", username="bob", password="pw", eauth="file")["token"]
    right, wrong, tgt_type = GUESSES[guess]
    hit, miss = (master.control("targets", "api", token=token, tgt=tgt, tgt_type=tgt_type) for tgt in (right, wrong))
    assert hit == miss


@pytest.mark.parametrize("client", ["bob", "api", "cli", "reactor", "maintenance"])
def test_only_a_runner_names_another_sender(new_worker: NewWorker, client: str) -> None:
    """Whoever could name `cli` as the sender of the own request would see with its rows."""
    rows = {"bob": BOB, **{name: [{"web*": ["test.ping"]}] for name in ("api", "cli", "reactor", "maintenance")}}
    master = new_worker(publisher_acl=rows)
    master.accept("web1", "db1")
    master.context.keep_pillar("db1", {"secret": "sesame"})
    other = {"way": "key", "name": "mworker", "eauth": "", "groups": []}
    asked = {"tgt": "secret:sesame", "tgt_type": "pillar", "on_behalf": other}
    assert master.control("targets", client, **asked)["minions"] == []


@pytest.mark.parametrize(
    "behalf", ["bob", 5, [], {}, {"way": "root"}, {"way": "user"}, {"way": "key", "name": "eve"}], ids=str
)
def test_a_runner_whose_sender_is_not_known_sees_nothing(master: Worker, behalf: Any) -> None:
    found = master.control("targets", "mworker", tgt="secret:s*", tgt_type="pillar", on_behalf=behalf)
    assert isinstance(found, tuple) or found["minions"] == []


@pytest.mark.parametrize(
    "rows",
    [
        ["@jobs"],
        ["@wheel"],
        [{"@runner": ["manage.up"]}],
        [{"@runner": [".*"]}],
        [{"web*": []}],
        [{"web*": ["test.ping"]}, "@jobs", "@wheel"],
        [{"G@role:db and not *": ["test.ping"]}],
        [{"( broken": ["test.ping"]}],
        [5, None, ["test.ping"], {}],
    ],
    ids=str,
)
def test_rows_that_reach_no_minion_show_no_pillar(new_worker: NewWorker, rows: list[Any]) -> None:
    master = new_worker(publisher_acl={"bob": rows})
    master.accept("web1", "db1")
    master.context.keep_pillar("db1", {"secret": "sesame"})
    assert master.control("targets", "bob", tgt="I@secret:sesame", tgt_type="compound")["minions"] == []


@pytest.mark.parametrize("guess", [name for name in GUESSES if GUESSES[name].tgt_type not in ("range", "nodegroup")])
def test_a_minions_job_tells_nothing_about_others(new_worker: NewWorker, guess: str, monkeypatch: Any) -> None:
    """A minion with a row of `peer` for web* asks about db1."""
    monkeypatch.setattr(targets, "expand", lambda server, expression: RANGES[expression])
    master = new_worker(peer={"web1": [{"web*": ["test.ping"]}]}, nodegroups=NODEGROUPS, range_server="range:80")
    minion = master.minion("web1")
    master.accept("db1")
    master.store.cache.set_grains("web1", {"ipv4": ["10.1.0.1"], "ipv6": ["fd00:1::1"]})
    master.store.cache.set_grains("db1", {"ipv4": ["10.9.0.7"], "ipv6": ["fd00:9::7"]})
    master.context.keep_pillar("db1", {"secret": "sesame", "deep": {"inner": "9876"}})
    right, wrong, tgt_type = GUESSES[guess]
    seen = []
    for tgt in (right, wrong):
        answer = minion.ask("minion_pub", fun="test.ping", arg=[], tgt=tgt, tgt_type=tgt_type, ret="")
        seen.append(answer.get("minions"))
    assert seen[0] == seen[1]
    assert "db1" not in (seen[0] or ())


# -------------------------------------------------------------------------------------------------------- ordinary use


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "rows",
    [
        ["test.ping"],
        [{"*": ["test.ping"]}],
        ["@runner"],
        [{"db*": ["test.ping"]}],
        [{"I@secret:sesame": ["test.ping"]}],
    ],
    ids=str,
)
def test_whoever_may_reach_a_minion_targets_it_by_pillar(new_worker: NewWorker, rows: list[Any]) -> None:
    master = new_worker(publisher_acl={"bob": rows})
    master.accept("web1", "db1")
    master.context.keep_pillar("db1", {"secret": "sesame"})
    assert master.control("targets", "bob", tgt="secret:s*", tgt_type="pillar")["minions"] == ["db1"]


@pytest.mark.ordinary
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("tgt", "tgt_type"),
    [
        ("own:web1", "pillar"),
        ("I@own:web1", "compound"),
        ("10.1.0.0", "ipcidr"),
        ("web1", "glob"),
        (["web1"], "list"),
        ("%wrong", "range"),
    ],
)
def test_the_own_minions_are_found(master: Worker, tgt: object, tgt_type: str, way: str) -> None:
    found = WAYS[way](master, tgt, tgt_type)["minions"]
    assert [each["id"] if isinstance(each, dict) else each for each in found] == ["web1"]


@pytest.mark.ordinary
@pytest.mark.parametrize("client", ["cli", "mworker", "reactor"])
@pytest.mark.parametrize("guess", [name for name in GUESSES if name != "a negated word"])
def test_the_masters_own_keys_target_everything(master: Worker, guess: str, client: str) -> None:
    right, _, tgt_type = GUESSES[guess]
    assert "db1" in master.control("targets", client, tgt=right, tgt_type=tgt_type)["minions"]


@pytest.mark.ordinary
@pytest.mark.parametrize("name", ["cli", "reactor", "maintenance"])
def test_a_runner_of_an_administrator_sees_everything(master: Worker, name: str) -> None:
    behalf = {"way": "key", "name": name, "eauth": "", "groups": []}
    found = master.control("targets", "mworker", tgt="secret:s*", tgt_type="pillar", on_behalf=behalf)
    assert found["minions"] == ["db1"]


@pytest.mark.ordinary
def test_a_signing_policy_may_name_an_exact_value(master: Worker) -> None:
    """match.compound_matches, started by a minion (`peer_run`), as the signing policies of x509 need it."""
    behalf = {"way": "minion", "name": "web1", "eauth": "", "groups": []}
    asked = {"tgt": "I@secret:sesame", "tgt_type": "compound_pillar_exact"}
    assert master.control("targets", "mworker", on_behalf=behalf, **asked)["minions"] == ["db1"]

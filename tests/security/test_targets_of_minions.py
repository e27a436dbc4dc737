"""Attacks by targets that a minion writes: expressions that keep workers or minions busy, and guesses at others' pillar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from saltern.mworker import authorise
from saltern.mworker.commands import mine
from saltern.mworker.deferred_reply import SealedDeferredReply
from saltern.mworker.linear_regex import linear_regex
from statecore.model.errors import TargetError
from tests.services.mworker.conftest import FakeMinion, Worker

pytestmark = pytest.mark.redis

#: An id and a grain on which a pattern with nested repetition backtracks for longer than the universe is old.
VICTIM = "a" * 60 + "!"
BACKTRACKS = "(a+)+$"

JOB = {"fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "ret": "", "tmo": 5}

#: Seconds of CPU time for one request; a worker is not to notice the attack.
SOON = 0.5

#: Seconds of CPU time where only the limit of one second ends an expression of the master's options.
LIMITED = 1.5


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"a": "end"}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.fixture
def master(new_worker: Callable[..., Worker]) -> Worker:
    """A worker whose option ``peer`` lets web1 publish test.* everywhere, web2 only on db*, and nobody else."""
    made: Worker = new_worker(
        peer={"web1": ["test."], "web2": [{"db*": ["test."]}]}, nodegroups={"dear": "I@secret:s*"}
    )
    made.accept("db1", "vault", VICTIM)
    made.store.cache.set_grains(VICTIM, {"g": VICTIM, "deep": nested(40), "a": nested(40)})
    made.context.keep_pillar("db1", {"secret": "sesame", "map": {"password": "x"}, "list": ["one", "two"]})
    made.context.keep_pillar("vault", {"secret": "sesame"})
    return made


#: Attack -> (target, its type).
SLOW: dict[str, tuple[Any, str]] = {
    "a pcre that backtracks": (BACKTRACKS, "pcre"),
    "alternatives that backtrack": ("(a|aa|a?)+$", "pcre"),
    "a polynomial pcre": ("a*" * 200 + "b", "pcre"),
    "a pcre in a compound": (f"E@{BACKTRACKS}", "compound"),
    "a pcre in a list of words": (["E@" + BACKTRACKS, "or", "x"], "compound"),
    "a pcre of a grain": (f"g:{BACKTRACKS}", "grain_pcre"),
    "a pcre of a grain in a compound": (f"P@g:{BACKTRACKS}", "compound"),
    "a pcre with another delimiter": (f"P|@g|{BACKTRACKS}", "compound"),
    "a pcre of pillar": (f"secret:{BACKTRACKS}", "pillar_pcre"),
    "lookahead that backtracks": (f"(?={BACKTRACKS})", "pcre"),
    "a back reference that backtracks": (r"(a*)\1+$(a*)*\2b", "pcre"),
    "a pcre of a megabyte": ("a?" * 500_000, "pcre"),
    "repetitions of repetitions": ("((((a{1,900}){1,900}){1,900}){1,900})", "pcre"),
    "a path through nested grains": (":".join("a" * 42) + ":b", "grain"),
    "any key of nested grains": ("*:" * 40 + "b", "grain"),
    "a path of 30000 parts": ("a:" * 30_000 + "b", "grain"),
    "a path of 30000 parts in a compound": ("G@" + "a:" * 30_000 + "b", "compound"),
    "a megabyte of closing parentheses": (")" * 1_000_000, "compound"),
    "a megabyte of opening parentheses": ("(" * 1_000_000, "compound"),
    "60 kB of closing parentheses": (")" * 60_000, "compound"),
    "40000 words": ("x or " * 40_000 + "x", "compound"),
    "40000 negations": ("not " * 40_000 + "x", "compound"),
    "a glob of a megabyte": ("*a" * 500_000, "glob"),
    "globs of a grain": ("g:" + "*a" * 400 + "b", "grain"),
}


@pytest.mark.parametrize(("tgt", "tgt_type"), SLOW.values(), ids=list(SLOW))
@pytest.mark.parametrize(
    ("name", "cmd"),
    [("web1", "minion_pub"), ("web1", "minion_publish"), ("web3", "minion_pub"), ("web1", "_mine_get")],
    ids=["by minion_pub", "by minion_publish", "without any right in peer", "by _mine_get"],
)
def test_no_target_of_a_minion_keeps_a_worker_busy(
    master: Worker, name: str, cmd: str, tgt: Any, tgt_type: str
) -> None:
    minion = master.minion(name)
    fields = {"fun": "network.ip_addrs"} if cmd == "_mine_get" else {**JOB}
    started = time.process_time()
    answer = minion.ask(cmd, **{**fields, "tgt": tgt, "tgt_type": tgt_type})
    assert time.process_time() - started < SOON
    assert answer in ({}, {"jid": 0, "minions": []})


@pytest.mark.parametrize(("tgt", "tgt_type"), SLOW.values(), ids=list(SLOW))
def test_no_allow_tgt_of_a_mine_keeps_a_worker_busy(master: Worker, tgt: Any, tgt_type: str) -> None:
    """The owner of the mine wrote the target; it is compared when another minion asks."""
    owner = master.minion("web1")
    guarded = {"__saltmine_acl__": 1, "__data__": "x", "allow_tgt": tgt, "allow_tgt_type": tgt_type}
    assert owner.ask("_mine", data={"f": guarded}) is True
    started = time.process_time()
    assert mine.get(master.context, VICTIM, {"fun": "f", "tgt": "web1"}) == {}
    assert time.process_time() - started < SOON


@pytest.mark.parametrize("cmd", ["minion_pub", "_mine_get"])
def test_without_a_right_no_target_is_compared(
    new_worker: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, cmd: str
) -> None:
    master = new_worker(peer={"web2": [".*"]}, mine_get={"web2": [".*"]})
    compared: list[object] = []
    monkeypatch.setattr(authorise, "resolve", lambda *given, **named: compared.append(given))
    assert master.minion("web1").ask(cmd, **JOB) == {}
    assert compared == []


@pytest.mark.parametrize("tgt", ["(?!db).*", r"(a)\1", "a++", "x" * 1001, "(", "a{1001}"])
def test_expressions_that_need_backtracking_are_refused(tgt: str) -> None:
    with pytest.raises(TargetError):
        linear_regex(tgt, False)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"web\d+\Z", "web12", True),
        (r"web\d+\Z", "web12x", False),
        ("(web|db)[0-9]{2}$", "db07.example", False),
        ("eb", "web1", False),
        (r"a\\Z", "a\\Z", True),
        ("w", "w\udcff", False),
    ],
)
@pytest.mark.ordinary
def test_plain_expressions_mean_what_they_meant(pattern: str, text: str, fits: bool) -> None:
    assert (linear_regex(pattern, False).match(text) is not None) is fits
    assert (linear_regex(pattern, True).match(text.upper()) is not None) is fits or "Z" in pattern or "d" in pattern


@pytest.mark.parametrize("option", ["peer", "mine_get", "peer_run"])
def test_an_expression_of_the_masters_options_does_not_backtrack_on_a_minions_text(
    new_worker: Callable[..., Worker], option: str
) -> None:
    rules = {"web1": [BACKTRACKS]}
    master = new_worker(**{option: rules})
    minion = master.minion("web1")
    started = time.process_time()
    if option == "mine_get":
        assert minion.ask("_mine_get", tgt="*", fun=VICTIM) == {}
    else:
        assert minion.ask("minion_pub" if option == "peer" else "minion_runner", **{**JOB, "fun": VICTIM}) == {}
    assert time.process_time() - started < LIMITED


def test_an_id_does_not_backtrack_in_autosign_file(new_worker: Callable[..., Worker], tmp_path: Any) -> None:
    (tmp_path / "autosign").write_text(BACKTRACKS + "\n")
    master = new_worker(autosign_file=str(tmp_path / "autosign"))
    started = time.process_time()
    assert master.minion(VICTIM, accepted=False).sign_in().credentials is None
    assert time.process_time() - started < LIMITED


@pytest.mark.parametrize(
    ("tgt", "tgt_type", "meant"),
    [
        ("db.", "pcre", ["db1"]),
        ("E@db. or web1", "compound", ["db1", "web1"]),
        ("G@g:x or P@g:a", "compound", [VICTIM]),
        ("secret:sesame", "pillar", ["db1", "vault"]),
        ("I@secret:sesame and db*", "compound", ["db1"]),
    ],
)
def test_minions_get_no_expression_that_keeps_them_busy(
    master: Worker, tgt: str, tgt_type: str, meant: list[str]
) -> None:
    """Minions compare targets in their main process: they get names instead."""
    answer = master.minion("web1").ask("minion_pub", **JOB | {"tgt": tgt, "tgt_type": tgt_type})
    assert sorted(answer["minions"]) == sorted(meant)
    ((_, sent),) = master.store.publications.range_since(0)
    assert (sorted(sent["tgt"]), sent["tgt_type"]) == (sorted(meant), "list")


#: Probe of another minion's pillar -> (target that is right, one that is not, target type).
PROBES: dict[str, tuple[str, str, str]] = {
    "a glob": ("secret:s*", "secret:t*", "pillar"),
    "a glob of everything": ("secret:*", "nosecret:*", "pillar"),
    "question marks": ("secret:??????", "secret:?????", "pillar"),
    "a set of characters": ("secret:[a-s]esame", "secret:[t-z]esame", "pillar"),
    "an expression": ("secret:s.*", "secret:t.*", "pillar_pcre"),
    "an expression that is a dot": ("secret:.", "nosecret:.", "pillar_pcre"),
    "a glob in a compound": ("I@secret:s*", "I@secret:t*", "compound"),
    "an expression in a compound": ("J@secret:s.*", "J@secret:t.*", "compound"),
    "another delimiter": ("I|@secret|s*", "I|@secret|t*", "compound"),
    "beside oneself": ("I@secret:s* or web1", "I@secret:t* or web1", "compound"),
    "a glob that is denied": ("db1 and not I@secret:s*", "db1 and not I@secret:t*", "compound"),
    "in parentheses": ("( I@secret:s* )", "( I@secret:t* )", "compound"),
    "any key": ("*:sesame", "*:sesamo", "pillar"),
    "any value of a map": ("map:*", "mop:*", "pillar"),
    "a glob of list members": ("list:o*", "list:x*", "pillar"),
    "exact type with a glob": ("map:*", "mop:*", "pillar_exact"),
    "exact compound with any key": ("I@*:sesame", "I@*:sesamo", "compound_pillar_exact"),
    "a list of words": ("J@secret:^s", "J@secret:^t", "compound"),
}


@pytest.mark.parametrize(("hit", "miss", "tgt_type"), PROBES.values(), ids=list(PROBES))
@pytest.mark.parametrize("cmd", ["minion_pub", "minion_publish", "_mine_get"])
@pytest.mark.parametrize("name", ["web1", "web2"], ids=["with a right everywhere", "with a right elsewhere"])
def test_pillar_is_not_read_piece_by_piece(
    master: Worker, name: str, cmd: str, hit: str, miss: str, tgt_type: str
) -> None:
    minion = master.minion(name)
    master.store.cache.mine_set("db1", {"f": 1})
    fun = "f" if cmd == "_mine_get" else "test.ping"
    seen = [
        outcome(master, minion, cmd, **{**JOB, "fun": fun, "tgt": tgt, "tgt_type": tgt_type}) for tgt in (hit, miss)
    ]
    assert seen[0] == seen[1]


def outcome(master: Worker, minion: FakeMinion, cmd: str, **fields: Any) -> Any:
    """Send a request of a minion; return what the minion learns: the answer, or the targets to which a job was published."""
    before = len(master.store.publications.range_since(0))
    reply, nonce = minion.send({"cmd": cmd, "id": minion.id, **fields})
    if isinstance(reply, SealedDeferredReply):
        return [job["tgt"] for _, job in master.store.publications.range_since(0)[before:]]
    return shown(minion.session.open(reply, nonce))


def shown(answer: Any) -> Any:
    """Return the answer to a minion with True or False in place of the JID, so that answers can be compared."""
    if isinstance(answer, dict) and "jid" in answer:
        return {**answer, "jid": bool(answer["jid"])}
    return answer


@pytest.mark.parametrize(
    ("tgt", "tgt_type"),
    [("secret:sesame", "pillar"), ("I@secret:sesame and vault", "compound"), ("J@secret:sesame and v*", "compound")],
)
def test_pillar_of_minions_without_a_right_on_them_is_not_even_compared(
    master: Worker, tgt: str, tgt_type: str
) -> None:
    """web2 may publish on db* only; whether vault holds the exact value changes nothing."""
    minion = master.minion("web2")
    right = minion.ask("minion_pub", **JOB | {"tgt": tgt, "tgt_type": tgt_type})
    master.context.keep_pillar("vault", {"secret": "another"})
    wrong = minion.ask("minion_pub", **JOB | {"tgt": tgt, "tgt_type": tgt_type})
    assert shown(right) == shown(wrong)
    assert "vault" not in right.get("minions", [])

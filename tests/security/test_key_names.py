"""Finding 38.14: no two keys of the store have one name, whatever ids, functions and users are in them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masterstore import keys
from masterstore.cluster_keys import cluster_name, plain_name

#: Texts that minions, operators and runners choose. Separators and names of other keys are likely in them.
FREE = st.lists(
    st.sampled_from(
        [
            ":",
            "%",
            "%3A",
            "{",
            "}",
            "salt",
            "{salt}",
            "load",
            "ret",
            "mine",
            "own",
            "keys",
            "a",
            "test.ping",
            "minions",
            "é",
        ]
    ),
    min_size=1,
    max_size=5,
).map("".join)
FUN = FREE | st.sampled_from(["test.ping", "a.b,c.d", "state.apply"])
#: The master and its readers accept no other JIDs (``saltwire.jid.is_jid``).
JID = st.sampled_from(["20260101000000000000", "20260101000000000001", "20260101000000000000_a-b.c"])

#: Row of the table -> the function that makes its key, and what its arguments may be.
FAMILIES: dict[str, tuple[Callable[..., object], tuple[st.SearchStrategy[str], ...]]] = {
    "load": (keys.load, (JID,)),
    "ret": (keys.ret, (JID,)),
    "large": (keys.large, (JID,)),
    "last_jid": (keys.last_jid, (FREE, FUN)),
    "job": (keys.job, (JID,)),
    "job_minions": (keys.job_minions, (JID,)),
    "index": (keys.index, (st.sampled_from(["minion", "fun", "user", "tgt", "result", "state"]), FREE)),
    "life": (keys.life, (JID,)),
    "waiting_of": (keys.waiting_of, (FREE,)),
    "request": (keys.request, (FREE,)),
    "orders": (keys.orders, (JID,)),
    "own_job": (keys.own_job, (FREE, FREE)),
    "spent": (keys.spent, (FREE,)),
    "event_group": (keys.event_group, (FREE,)),
    "event_readers": (keys.event_readers, (FREE,)),
    "dead_events": (keys.dead_events, (FREE,)),
    "minion_keys": (keys.minion_keys, (st.sampled_from(["accepted", "pending", "rejected", "denied"]),)),
    "nonce": (keys.nonce, (FREE, FREE)),
    "changed": (keys.changed, (st.sampled_from([keys.GRAINS, keys.PILLAR]),)),
    "version": (keys.version, (st.sampled_from([keys.GRAINS, keys.PILLAR]),)),
    "pillar_cache": (keys.pillar_cache, (FREE,)),
    "mine": (keys.mine, (FREE,)),
    "bank": (keys.bank, (FREE,)),
    "lock": (keys.lock, (FREE,)),
    "token": (keys.token, (st.sampled_from(["0" * 64, "1" * 64]),)),
    "tokens_of": (keys.tokens_of, (FREE, FREE)),
    "login_failures": (keys.login_failures, (FREE,)),
}

#: Keys without a part that varies.
FIXED = {spec.pattern for spec in keys.KEYS if "<" not in spec.pattern}


#: Some key of the store, as (row of the table, values of its parts).
ANY = st.sampled_from(sorted(FAMILIES)).flatmap(lambda name: st.tuples(st.just(name), st.tuples(*FAMILIES[name][1])))


def named(family: str, fields: tuple[str, ...]) -> str | None:
    """The key of these fields; None if the store writes none for them."""
    made = FAMILIES[family][0](*fields)
    return made if isinstance(made, str) else next(iter(made), None)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_key_has_the_name_of_no_other_key(family: str) -> None:
    @settings(max_examples=150)
    @given(st.tuples(*FAMILIES[family][1]), ANY)
    def attempt(fields: tuple[str, ...], other: tuple[str, tuple[str, ...]]) -> None:
        one, two = named(family, fields), named(*other)
        if (family, fields) != other and one is not None and two is not None:
            assert one != two, f"{family}{fields} and {other}"
            assert cluster_name(one) != cluster_name(two), f"{family}{fields} and {other}"

    attempt()


@pytest.mark.parametrize("family", FAMILIES)
def test_no_key_has_the_name_of_one_without_parts(family: str) -> None:
    @given(st.tuples(*FAMILIES[family][1]))
    def attempt(fields: tuple[str, ...]) -> None:
        name = named(family, fields)
        if name is not None:
            assert name not in FIXED
            assert cluster_name(name) not in set(map(cluster_name, FIXED))
            assert plain_name(cluster_name(name)) == name

    attempt()


#: Two different things that had one key: in a Redis Cluster, or in every Redis.
MET: dict[str, tuple[str | tuple[str, ...], str, Callable[[str], str]]] = {
    "the function of a minion, a mine": (keys.last_jid(":mine", "test.ping"), keys.mine("test.ping"), cluster_name),
    "the function of a minion, a bank": (keys.last_jid(":bank", "a.b"), keys.bank("a.b"), cluster_name),
    "the function of a minion, a lock": (keys.last_jid(":lock", "a.b"), keys.lock("a.b"), cluster_name),
    "the function of a minion, a request": (keys.last_jid(":request", "a.b"), keys.request("a.b"), cluster_name),
    "the function of a minion, jobs by user": (
        keys.last_jid(":idx:user", "a.b"),
        keys.index("user", "a.b"),
        cluster_name,
    ),
    "the function of a minion, jobs that wait": (
        keys.last_jid(":waiting", "a.b"),
        keys.waiting_of("a.b"),
        cluster_name,
    ),
    "the function of a minion, readers of events": (
        keys.last_jid(":events:group", "a.b"),
        keys.event_group("a.b"),
        cluster_name,
    ),
    "the function of a minion, a job of a minion": (
        keys.last_jid(":own:web1", "a.b"),
        keys.own_job("web1", "a.b"),
        cluster_name,
    ),
    "jobs of two minions": (keys.own_job("web1:a", "b"), keys.own_job("web1", "a:b"), str),
    "nonces of two minions": (keys.nonce("web1:a", "b"), keys.nonce("web1", "a:b"), str),
}


@pytest.mark.parametrize("case", MET)
def test_two_things_do_not_share_a_key(case: str) -> None:
    one, other, shown = MET[case]
    names = (one,) if isinstance(one, str) else one
    assert shown(other) not in map(shown, names)


@pytest.mark.ordinary
def test_every_row_with_a_part_is_tried() -> None:
    assert set(FAMILIES) == {spec.name for spec in keys.KEYS if "<" in spec.pattern}


@pytest.mark.ordinary
@pytest.mark.parametrize("minion", ["web1", "web1.example.com", "2001-db8--1", "a_b", "Ä"])
def test_keys_of_ordinary_ids_stay(minion: str) -> None:
    assert keys.own_job(minion, "1") == f"salt:own:{minion}:1"
    assert keys.nonce(minion, "0" * 32) == f"salt:nonce:{minion}:{'0' * 32}"
    assert keys.last_jid(minion, "test.ping") == (f"{minion}:test.ping",)

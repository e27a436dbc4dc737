"""Whom the master expects: any target, over the same keys and caches, as real Salt's master (marker oracle)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from saltern.mworker.targets import resolve
from statecore.model.errors import TargetError
from tests.conftest import Oracle

pytestmark = [pytest.mark.redis, pytest.mark.oracle]

#: Minion -> grains; "ghost" never told any.
GRAINS: dict[str, dict[str, Any]] = {
    "web1": {
        "id": "web1",
        "os": "Debian",
        "roles": ["web", "a:b"],
        "ipv4": ["127.0.0.1", "10.0.0.1"],
        "n": {"a": {"b": 1}},
    },
    "web2": {
        "id": "web2",
        "os": "debian",
        "roles": "web",
        "ipv4": ["10.0.1.1"],
        "ipv6": ["2001:db8::1"],
        "n": {"a": "b"},
    },
    "db1": {"id": "db1", "os": "RedHat", "roles": [], "ipv4": [], "n": {"a": ["b", {"c": True}]}},
    "db2.example": {"id": "db2.example", "os": None, "n": 5},
    "odd": {},
}
PILLAR: dict[str, dict[str, Any]] = {
    "web1": {"tier": "gold", "os": "Debian", "n": {"a": {"b": 1}}},
    "web2": {"tier": "gold*", "n": {"a": "b"}},
    "db1": {"tier": "Silver"},
    "odd": {},
}
ACCEPTED = [*GRAINS, "ghost"]
NODEGROUPS = {
    # Without the parentheses Salt's "not N@web" denies the first word alone.
    "web": "( G@os:Debian or db* )",
    "nested": "N@web and not E@^db",
    "listed": ["web1", "db1"],
    "plain": "web1 ghost nobody",
    "mixed": ["L@web1,ghost", "or", "N@listed"],
}

KEYS = st.sampled_from(["os", "roles", "n:a", "n:a:b", "n:a:c", "n", "tier", "id", "nosuch", "*", "n:*"])
VALUES = st.sampled_from(
    ["Debian", "Deb*", "web", "a:b", "b", "1", "True", "None", "gold", "gold*", "*", "Silver", "web1", ""]
)
NESTED = st.builds("{}:{}".format, KEYS, VALUES)
GLOBS = st.sampled_from(["*", "web*", "web1", "db?", "db2.example", "ghost", "[!d]*", "nobody", "WEB*"])
REGEXES = st.sampled_from(["web.*", "web1", "^db", "db2.example", ".", "(web|db)1", "x"])
LISTS = st.lists(st.sampled_from([*ACCEPTED, "nobody"]), min_size=1, max_size=3, unique=True).map(",".join)
NETWORKS = st.sampled_from(
    ["10.0.0.0/16", "10.0.0.1", "10.0.1.0/24", "2001:db8::/32", "127.0.0.1", "10.9.0.0/16", "0.0.0.0/0"]
)


def as_regex(expression: str) -> str:
    """A last ``*`` is no regular expression: ours says so."""
    return expression[:-1] + ".*" if expression.endswith("*") else expression


def delimited(word: tuple[str, str, str]) -> str:
    engine, delimiter, expression = word
    if engine in "PJ":
        expression = as_regex(expression)
    return f"{engine}{delimiter}@{expression.replace(':', delimiter or ':')}"


WORDS = st.one_of(
    GLOBS,
    st.tuples(st.sampled_from("GPIJ"), st.sampled_from(["", "|", ";", "%"]), NESTED).map(delimited),
    LISTS.map("L@{}".format),
    REGEXES.map("E@{}".format),
    NETWORKS.map("S@{}".format),
    st.sampled_from(["N@web", "N@nested", "N@listed", "N@mixed"]),
)  # fmt: skip


def joined(words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(words, st.sampled_from(["and", "or", "and not", "or not"]), words).map(" ".join),
        words.map("( {} )".format),
        words.map("not {}".format),
    )


#: Salt does not understand two in a row.
COMPOUNDS = st.recursive(WORDS, joined, max_leaves=4).filter(lambda text: "not not" not in text)

TARGETS = st.one_of(
    st.tuples(GLOBS, st.just("glob"), st.just(":")),
    st.tuples(REGEXES, st.just("pcre"), st.just(":")),
    st.tuples(LISTS, st.just("list"), st.just(":")),
    st.tuples(NESTED, st.sampled_from(["grain", "pillar", "pillar_exact"]), st.just(":")),
    st.tuples(NESTED.map(as_regex), st.sampled_from(["grain_pcre", "pillar_pcre"]), st.just(":")),
    st.tuples(NESTED, st.sampled_from(["grain", "pillar"]), st.just("|")).map(
        lambda target: (target[0].replace(":", "|"), *target[1:])
    ),
    st.tuples(NETWORKS, st.just("ipcidr"), st.just(":")),
    st.tuples(st.sampled_from(sorted(NODEGROUPS)), st.just("nodegroup"), st.just(":")),
    st.tuples(COMPOUNDS, st.sampled_from(["compound", "compound_pillar_exact"]), st.sampled_from([":", "|"])),
)


@pytest.fixture(scope="module")
def salts(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, list[str]]]]:
    """Asks real Salt's master, started once."""
    words = [oracle.program("python"), str(Path(__file__).with_name("salt_ck_minions.py"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        fleet = {"accepted": ACCEPTED, "grains": GRAINS, "pillar": PILLAR, "nodegroups": NODEGROUPS}
        place = str(tmp_path_factory.mktemp("salt"))
        process.stdin.write(json.dumps({**fleet, "directory": place, "pub": "a key"}) + "\n")

        def ask(*target: str) -> dict[str, list[str]]:
            process.stdin.write(json.dumps(target) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            answer: dict[str, list[str]] = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            return answer

        yield ask
        process.stdin.close()


@pytest.fixture
def ours(new_worker: Callable[..., Any]) -> Callable[..., dict[str, list[str]]]:
    """Asks our master; what it refuses means nobody."""
    worker = new_worker(nodegroups=NODEGROUPS)
    worker.accept(*ACCEPTED)
    for minion, grains in GRAINS.items():
        worker.store.cache.set_grains(minion, grains)
    for minion, pillar in PILLAR.items():
        worker.context.keep_pillar(minion, pillar)

    def ask(tgt: str, tgt_type: str, delimiter: str) -> dict[str, list[str]]:
        try:
            found = resolve(worker.context, tgt, tgt_type, delimiter)
        except TargetError:
            return {"minions": [], "missing": []}
        return {"minions": sorted(found.minions), "missing": sorted(found.missing)}

    return ask


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(target=TARGETS)
@example(target=("not ( web* or G@os:RedHat )", "compound", ":"))
@example(target=("web* and ( not N@nested )", "compound", ":"))
def test_a_master_expects_whom_salts_expects(
    target: tuple[str, str, str], ours: Callable[..., Any], salts: Callable[..., Any]
) -> None:
    assert ours(*target) == salts(*target)

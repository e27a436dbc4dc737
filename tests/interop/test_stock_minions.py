"""Unmodified minions of every release that we promise to serve, at our master: a day in their life, on two kinds of wire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.stock import PATIENCE, VERSIONS, Bus, StockMinion, need_namespace, venv_of
from tests.roles.conftest import NewLab
from tests.roles.lab import Lab, until

pytestmark = [pytest.mark.interop, pytest.mark.roles]

#: Salt's defaults; and what a site sets that wants topics, signatures that are checked, and no SHA-1.
WIRES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "strict": (
        {"zmq_filtering": True, "sign_pub_messages": True, "publish_signing_algorithm": "PKCS1v15-SHA224"},
        {
            "zmq_filtering": True,
            "sign_pub_messages": True,
            "encryption_algorithm": "OAEP-SHA224",
            "signing_algorithm": "PKCS1v15-SHA224",
        },
    ),
}


def name_of(version: str) -> str:
    """Id of the stock minion of a release."""
    return f"stock{version.partition('.')[0]}"


NAMES = tuple(sorted(map(name_of, VERSIONS)))

#: What they say of their pillar: the newest masks it.
PILLAR = {name: "**********" if name == name_of("3008.3") else "the platform team" for name in NAMES}


@dataclass
class Fleet:
    """A lab of ours with a stock minion of each release, all signed in."""

    lab: Lab
    bus: Bus
    minions: dict[str, StockMinion]

    def everybody(self, value: Any) -> dict[str, Any]:
        """What is returned when each returns the same."""
        return dict.fromkeys(NAMES, value)

    def await_pings(self) -> None:
        """Each answers again."""
        until(
            lambda: (
                self.lab.run("salt", "-t", "3", "--out", "json", "--static", "*", "test.ping").out.count("true")
                == len(NAMES)
            ),
            PATIENCE,
            "every stock minion answers",
        )


@pytest.fixture(scope="module", params=sorted(WIRES))
def fleet(request: pytest.FixtureRequest, module_labs: NewLab) -> Iterator[Fleet]:
    need_namespace()
    ours, theirs = WIRES[request.param]
    lab = module_labs(minions=(), options={"auto_accept": False, "peer": {"stock.*": ["test.*"]}, **ours})
    minions = {
        name_of(version): StockMinion(
            name_of(version), venv_of(version), lab, {**theirs, "mine_functions": {"test.ping": []}}
        )
        for version in VERSIONS
    }
    lab.start_all(*lab.roles)
    bus = Bus.of_lab(lab)
    try:
        for minion in minions.values():
            minion.start()
        until(lambda: lab.keys()["minions_pre"] == list(NAMES), PATIENCE, "the stock minions' keys")
        lab.ok("salt-key", "-y", "-A")
        fleet = Fleet(lab, bus, minions)
        fleet.await_pings()
        yield fleet
    finally:
        for minion in minions.values():
            minion.end()
        bus.close()


def test_they_announce_themselves(fleet: Fleet) -> None:
    for name in NAMES:
        assert fleet.bus.await_event("salt/auth", lambda data, name=name: data["id"] == name and data["act"] == "pend")
        assert fleet.bus.await_event(
            "salt/auth", lambda data, name=name: data["id"] == name and data["act"] == "accept"
        )
        assert fleet.bus.await_event(f"salt/minion/{name}/start")["id"] == name


def test_they_answer(fleet: Fleet) -> None:
    lab = fleet.lab
    assert lab.salt("*", "test.ping") == fleet.everybody(True)
    assert lab.salt("*", "test.version") == {name_of(version): version for version in VERSIONS}
    assert lab.salt("*", "test.echo", "gr\u00fc\u00df dich") == fleet.everybody("gr\u00fc\u00df dich")
    assert lab.salt("*", "grains.get", "id") == {name: name for name in NAMES}
    assert lab.salt("*", "cmd.run", "echo $((40 + 2))", "python_shell=True") == fleet.everybody("42")
    assert lab.salt("*", "pillar.get", "owner") == PILLAR
    both = {"test.ping": True, "test.echo": "hello"}
    assert lab.salt("*", "test.ping,test.echo", ",", "hello") == fleet.everybody(both)


def test_they_are_found_by_every_kind_of_target(fleet: Fleet) -> None:
    lab = fleet.lab
    one = NAMES[0]
    targets = (
        ("-E", "stock300[0-9]"),
        ("-L", ",".join(NAMES)),
        ("-G", "kernel:Linux"),
        ("-P", "kernel:Lin.*"),
        ("-I", "owner:the platform team"),
        ("-J", "owner:the .* team"),
        ("-C", "G@kernel:Linux and stock* and not E@nobody"),
        ("-S", "127.0.0.1"),
    )
    for target in targets:
        assert lab.salt(*target, "test.ping") == fleet.everybody(True), target
    assert lab.salt("-C", f"L@{one} or nobody", "test.ping") == {one: True}


def test_they_fetch_files(fleet: Fleet) -> None:
    lab = fleet.lab
    content = bytes(range(256)) * 5000
    (lab.tree / "salt" / "large.bin").write_bytes(content)
    wanted = lab.root / "fetched"
    wanted.mkdir(exist_ok=True)
    for name in NAMES:
        path = wanted / name
        assert lab.salt(name, "cp.get_file", "salt://large.bin", str(path)) == {name: str(path)}
        assert path.read_bytes() == content
    listed = lab.salt("*", "cp.list_master")
    assert all("large.bin" in paths for paths in listed.values())
    digests = lab.salt("*", "cp.hash_file", "salt://large.bin")
    assert len({digest["hsum"] for digest in digests.values()}) == 1


def test_they_apply_the_base_role(fleet: Fleet) -> None:
    states = {"motd", "sysctl", "cron-tidy"}
    machine = Path("/etc/motd").read_text() if Path("/etc/motd").exists() else None

    def applied(*words: str) -> dict[str, dict[str, Any]]:
        runs = fleet.lab.salt("*", "state.apply", "base", *words)
        return {name: {result["__id__"]: result for result in run.values()} for name, run in runs.items()}

    for name, run in applied("test=True").items():
        assert {state: result["result"] for state, result in run.items()} == dict.fromkeys(states), name
    for name, run in applied().items():
        assert {state: result["result"] for state, result in run.items()} == dict.fromkeys(states, True), name
        assert all(result["changes"] for result in run.values()), name
    for name, run in applied().items():
        assert {state: result["changes"] for state, result in run.items()} == {state: {} for state in states}, name
    for name, motd in fleet.lab.salt("*", "cmd.run", "cat /etc/motd").items():
        assert motd.startswith(f"{name} belongs to the platform team.\n")
    assert (Path("/etc/motd").read_text() if Path("/etc/motd").exists() else None) == machine


def test_their_jobs_are_in_the_job_cache(fleet: Fleet) -> None:
    said = fleet.lab.ok("salt", "--async", "*", "test.echo", "remember").out
    jid = said.rsplit(" ", 1)[1].strip()
    until(
        lambda: sorted(fleet.lab.runner("jobs.list_job", jid)["Result"]) == list(NAMES), PATIENCE, "the job is complete"
    )
    seen = fleet.lab.runner("jobs.list_job", jid)
    assert {name: result["return"] for name, result in seen["Result"].items()} == fleet.everybody("remember")
    assert sorted(seen["Minions"]) == list(NAMES)
    assert fleet.lab.runner("manage.up") == list(NAMES)


def test_they_share_their_mines(fleet: Fleet) -> None:
    lab = fleet.lab
    for name in NAMES:
        sent = lab.salt(name, "mine.send", "offered", "mine_function=test.echo", f"text=of {name}")
        assert sent == {name: True}
    offered = {name: f"of {name}" for name in NAMES}
    for name, seen in lab.salt("*", "mine.get", "*", "offered").items():
        assert seen == offered, name
    assert lab.salt("*", "mine.update") == fleet.everybody(True)
    assert lab.salt(NAMES[0], "mine.get", "*", "test.ping") == {NAMES[0]: fleet.everybody(True)}
    assert lab.salt("*", "mine.delete", "offered") == fleet.everybody(True)
    assert lab.salt(NAMES[0], "mine.get", "*", "offered") == {NAMES[0]: {}}


def test_they_publish_to_each_other(fleet: Fleet) -> None:
    lab, first = fleet.lab, NAMES[0]
    for name in NAMES:
        assert lab.salt(name, "publish.publish", "*", "test.ping") == {name: fleet.everybody(True)}
    full = lab.salt(first, "publish.full_data", first, "test.echo", "told")[first]
    assert full[first]["ret"] == "told"
    assert not lab.salt(first, "publish.publish", "*", "cmd.run", "id")[first]


def test_what_they_tell_by_themselves_is_heard(fleet: Fleet) -> None:
    lab = fleet.lab
    assert lab.salt("*", "event.send", "site/told", "{'a': 1}") == fleet.everybody(True)
    assert lab.salt("*", "event.fire_master", "{'b': 2}", "site/fired") == fleet.everybody(True)
    for name in NAMES:
        assert fleet.bus.await_event("site/told", lambda data, name=name: data["id"] == name)["data"]["a"] == 1
        assert fleet.bus.await_event("site/fired", lambda data, name=name: data["id"] == name)["data"] == {"b": 2}
    added = lab.salt("*", "schedule.add", "often", "function=test.echo", "job_args=['by itself']", "seconds=1")
    assert all(one["result"] for one in added.values())
    for name in NAMES:
        heard = fleet.bus.await_event(f"salt/job/*/ret/{name}", lambda data: data.get("schedule") == "often")
        assert heard["return"] == "by itself"
        found = lab.runner("jobs.list_job", heard["jid"])
        assert found["Result"][name]["return"] == "by itself"
    lab.salt("*", "schedule.delete", "often")


def test_a_failure_is_a_failure(fleet: Fleet) -> None:
    for words in (("test.no_such_function",), ("test.echo",), ("cmd.run", "exit 3", "python_shell=True")):
        answer = fleet.lab.run("salt", "--out", "json", "--static", "*", *words)
        assert answer.code == 1, words
        assert sorted(answer.data) == list(NAMES), words


def test_they_keep_up_with_rotated_keys(fleet: Fleet) -> None:
    """The key of publications, twice the session keys: nothing is lost, and nobody is restarted."""
    redis = fleet.lab.redis()
    for _ in range(2):
        redis.hincrby("salt:epochs", "aes", 1)
        until(lambda: fleet.lab.salt("*", "test.ping") == fleet.everybody(True), PATIENCE, "pings after a new AES key")
    for _ in range(2):
        redis.hincrby("salt:epochs", "session", 1)
    # A stock minion sends with its old session key, is refused, signs in and sends once more.
    assert fleet.lab.salt("*", "test.echo", "after") == fleet.everybody("after")
    fetched = fleet.lab.salt("*", "cp.get_file_str", "salt://top.sls")
    assert all("base:" in text for text in fetched.values())


def test_they_outlive_a_restart_of_the_master(fleet: Fleet) -> None:
    for role in fleet.lab.roles:
        fleet.lab.restart(role)
    fleet.lab.await_ready(*fleet.lab.roles)
    fleet.await_pings()
    assert fleet.lab.salt("*", "pillar.get", "owner") == PILLAR


def test_a_deleted_key_is_accepted_anew(fleet: Fleet) -> None:
    lab = fleet.lab
    for gone, left in ((NAMES[:1], NAMES[1:]), (NAMES[1:], NAMES[:1])):
        for name in gone:
            lab.ok("salt-key", "-y", "-d", name)
        # They learn it from the next publication that reaches them, for they cannot open it; a compound target goes to all.
        assert lab.salt("-C", "stock*", "test.ping") == dict.fromkeys(left, True)
        until(lambda gone=gone: lab.keys()["minions_pre"] == list(gone), PATIENCE, f"{gone} sign in anew")
        lab.ok("salt-key", "-y", "-A")
        fleet.await_pings()


def test_nothing_of_ours_crashed(fleet: Fleet) -> None:
    assert [name for name in fleet.lab.tracebacks() if name not in NAMES] == []
    assert fleet.lab.dead() == {}

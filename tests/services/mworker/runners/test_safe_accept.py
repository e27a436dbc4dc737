"""Keys that are accepted as their machines say over SSH: a program ``ssh`` of the test's own stands for these."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltern.mworker.runners.safe_accept import safe_accept

FINGERS = {name: ":".join([code] * 8) for name, code in (("web1", "a1"), ("web2", "b2"), ("db1", "c3"))}

#: It notes what it was called with; the last word but one is the host, whose fingerprint lies in a file.
SSH = """#!/bin/sh
echo "$@" >> HERE/calls
for word; do before=$host host=$word; done
[ -f "HERE/$before" ] || { echo "ssh: $before: Connection refused" >&2; exit 255; }
cat "HERE/$before"
"""


@dataclass
class Master:
    """Control and bus of a runner, as far as it needs them."""

    keys: dict[str, dict[str, str]]
    accepted: list[str] = field(default_factory=list)
    fired: list[Any] = field(default_factory=list)

    def call(self, cmd: str, *, fun: str, kwarg: dict[str, Any], user: str = "", timeout: float | None = None) -> Any:
        assert cmd == "wheel"
        if fun == "key.finger":
            return self.keys
        assert (fun, user) == ("key.accept", "ann")
        self.accepted += kwarg["match"]
        return None

    def fire(self, tag: str, data: Any) -> bool:
        self.fired.append((tag, data))
        return True


@dataclass
class Place:
    """Machines of the test, and the runner's tools."""

    root: Path
    master: Master

    def roster(self, content: Any) -> None:
        (self.root / "roster").write_text(content if isinstance(content, str) else yaml.safe_dump(content))

    def run(self, target: Any, tgt_type: str = "glob") -> Any:
        options = SimpleNamespace(
            roster_file="",
            conf_file=str(self.root / "master"),
            ssh_user="root",
            ssh_port=22,
            ssh_priv="",
            ssh_timeout=20,
        )
        tools = SimpleNamespace(
            options=options, control=self.master, sender=self.master, jid="20260101000000000000", user="ann"
        )
        return safe_accept(cast(RunnerTools, tools), target, tgt_type)

    def calls(self) -> list[str]:
        return (self.root / "calls").read_text().splitlines()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH.replace("HERE", str(tmp_path)))
    (tmp_path / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for name, finger in FINGERS.items():
        (tmp_path / f"{name}.example").write_text(f"local: {finger}\n")
    master = Master(
        {"minions_pre": {"web1": FINGERS["web1"], "web2": FINGERS["web2"]}, "minions": {"db1": FINGERS["db1"]}}
    )
    made = Place(tmp_path, master)
    made.roster({name: f"{name}.example" for name in FINGERS})
    return made


def test_what_the_machine_says_is_accepted(place: Place) -> None:
    good = {name: FINGERS[name] for name in ("web1", "web2")}
    assert place.run("*") == [good, {}]
    assert place.master.accepted == ["web1", "web2"]
    assert place.master.fired == [("salt/run/20260101000000000000/progress", {"message": "Accepted 2 keys"})]
    assert len(place.calls()) == 2, "db1 is accepted already, and not asked"


@pytest.mark.parametrize(
    ("target", "tgt_type", "meant"),
    [
        ("web1", "glob", ["web1"]),
        ("web1, web2", "list", ["web1", "web2"]),
        (["web2"], "list", ["web2"]),
        ("w.*1", "pcre", ["web1"]),
    ],
)
def test_who_is_meant(place: Place, target: Any, tgt_type: str, meant: list[str]) -> None:
    assert list(place.run(target, tgt_type)[0]) == meant


def test_what_is_not_accepted_and_why(place: Place) -> None:
    place.roster({"web1": "web2.example", "web2": "nowhere.example", "new1": "web1.example", "db9": "db9.example"})
    (place.root / "db9.example").write_text("salt-call: command not found")
    good, failures = place.run("*")
    assert good == {}
    assert failures["web1"] == f"Minion key {FINGERS['web2']} does not match the key in salt-key: {FINGERS['web1']}"
    assert "ended with 255: ssh: nowhere.example: Connection refused" in failures["web2"]
    assert failures["new1"] == "Minion key new1 not found by salt-key"
    assert "command not found" in failures["db9"]
    assert place.master.accepted == []


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (r"printf '\377\376\300'", "ended with 0: \ufffd\ufffd\ufffd"),
        (r"printf '\377' >&2; exit 3", "ended with 3: \ufffd"),
        ("exec yes", "says more than 65536 bytes"),
        ("exec yes >&2", "says more than 65536 bytes"),
        ("exec sleep 60", "no answer within 2 s from: ssh"),
    ],
)
def test_a_machine_that_answers_with_anything_is_named(place: Place, program: str, said: str) -> None:
    """It is the minion's, and may say what it likes, as long as it likes."""
    place.roster({"web1": {"host": "web1.example", "timeout": 1}, "web2": "web2.example"})
    usual = (place.root / "bin" / "ssh").read_text()
    (place.root / "bin" / "ssh").write_text(
        usual.replace("[ -f", f'if [ "$before" = web1.example ]; then {program}; exit; fi\n[ -f')
    )
    good, failures = place.run("*")
    assert good == {"web2": FINGERS["web2"]}
    assert said in failures["web1"]
    assert len(failures["web1"]) < 1000


def test_how_a_machine_is_reached(place: Place) -> None:
    place.roster(
        {"web1": {"host": "web1.example", "user": "ann", "port": 2222, "priv": "/key", "sudo": True, "timeout": 7}}
    )
    assert list(place.run("web1")[0]) == ["web1"]
    (call,) = place.calls()
    assert call == (
        "-o BatchMode=yes -o ConnectTimeout=7 -p 2222 -o IdentitiesOnly=yes -i /key -l ann -- web1.example"
        " sudo -n salt-call --local --out=txt key.finger"
    )


@pytest.mark.parametrize(
    ("roster", "tgt_type", "said"),
    [
        ({"web1": {"host": "-oProxyCommand=x"}}, "glob", "not usable: host"),
        ({"web1": {"host": "h", "user": "-x"}}, "glob", "not usable: user"),
        ({"web1": {"host": "h", "port": "x"}}, "glob", "not usable: port"),
        ({"web1": {"host": "h", "passwd": "x"}}, "glob", "passwd is not supported"),
        ({"web1": 5}, "glob", "web1 must be a host"),
        ("web1: [", "glob", "not YAML"),
        ("- web1", "glob", "must map minions"),
        ({"db1": "h"}, "glob", "no minion of the roster"),
        ({"web1": "h"}, "grain", "tgt_type is one of glob, pcre, list"),
        ({"web1": "h"}, "pcre", "is not a valid regular expression"),
    ],
)
def test_what_is_refused(place: Place, roster: Any, tgt_type: str, said: str) -> None:
    place.roster(roster)
    with pytest.raises(RunnerFault, match=said):
        place.run("(web" if tgt_type == "pcre" else "web*", tgt_type)
    assert not (place.root / "calls").exists()


def test_without_a_roster(place: Place) -> None:
    (place.root / "roster").unlink()
    with pytest.raises(RunnerFault, match="roster_file names a file"):
        place.run("*")

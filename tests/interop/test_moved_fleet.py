"""A fleet of real Salt moves over by the commands of docs/moving.md, and back, and loses nothing on the way.

The stock master is 3008.3, its minions are 3008.3 and 3006.x. They have what fleets have: gitfs, an external pillar that is a
program, a reactor, schedules on both sides, the mine, and a module, state, grain, returner and runner of their own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.interop.stock import PATIENCE, StockMaster, StockMinion, need_namespace, venv_of
from tests.roles.conftest import NewLab
from tests.roles.lab import BIN, ROOT, Answer, Lab, until

pytestmark = [pytest.mark.interop, pytest.mark.roles, pytest.mark.timeout(1500)]

#: Minion -> release of Salt.
MINIONS: Mapping[str, str] = {"new1": "3008.3", "old1": "3006.30"}
NAMES = sorted(MINIONS)

#: Below the state tree -> content. ``{root}`` is the directory of the test.
FILES: Mapping[str, str] = {
    "_modules/site.py": """\
import os


def hello():
    return "hello from " + __grains__["id"]


def tick(path):
    with open(os.path.join(path, "ticks-" + __grains__["id"]), "a") as file:
        file.write("tick\\n")
    return True
""",
    "_states/site_own.py": """\
def present(name):
    return {"name": name, "result": True, "changes": {}, "comment": __salt__["site.hello"]()}
""",
    "_grains/site_grains.py": """\
def rack():
    return {"site_rack": "r7"}
""",
    "_returners/site_file.py": """\
def returner(ret):
    with open("{root}/returned", "a") as file:
        file.write(ret["id"] + " " + ret["fun"] + "\\n")
""",
    "own.sls": "own:\n  site_own.present: []\n",
}

RUNNER = """\
def known():
    return sorted(__salt__["cache.grains"]("*"))


def tick():
    with open("{root}/ticks-master", "a") as file:
        file.write("tick\\n")
    return True
"""

REACTION = """\
answer:
  local.site.tick:
    - tgt: new1
    - args:
      - path: {root}/reacted
"""


def commands(heading: str) -> list[list[str]]:
    """The words of each command in a part of docs/moving.md."""
    page = (ROOT / "docs" / "moving.md").read_text()
    part = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.removeprefix("$ ").split() for line in re.findall(r"^\$ .*$", part, re.MULTILINE)]


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory with a short name: Salt's sockets are in it, whose names may have a hundred letters."""
    with tempfile.TemporaryDirectory(prefix="mf") as made:
        yield Path(made)


@dataclass
class OurMinion(StockMinion):
    """A Saltern minion in the place of a stock minion: the same configuration directory, and the same namespace."""

    def words(self) -> list[str]:
        return [str(BIN / "saltern"), "minion", "-c", str(self.directory)]


@dataclass
class Fleet:
    """The fleet, and the master that it has at the moment."""

    lab: Lab
    root: Path
    minions: dict[str, StockMinion]
    #: Runs a command of the present master.
    run: Callable[..., Answer] = field(default=lambda *words: pytest.fail("no master"))

    def data(self, *words: str) -> Any:
        """What a command of the present master shows as JSON."""
        answer = self.run(
            words[0], "--out", "json", *(["--static", "-t", "30"] if words[0] == "salt" else []), *words[1:]
        )
        assert answer.code == 0, str(answer)
        return answer.data

    def everybody(self, value: object) -> dict[str, object]:
        return dict.fromkeys(NAMES, value)

    def await_minions(self) -> None:
        def answered() -> bool:
            said = self.run("salt", "-t", "5", "--out", "json", "--static", "*", "test.ping").out
            return said.count("true") == len(NAMES)

        until(answered, PATIENCE, "every minion answers")

    def grows(self, name: str, what: str) -> None:
        """Waits until a line is added to a file."""
        path = self.root / name
        before = path.read_text() if path.exists() else ""
        until(lambda: path.exists() and len(path.read_text()) > len(before), PATIENCE, what)

    def check_memory(self) -> None:
        """The master knows its minions without asking them."""
        grains = self.data("salt-run", "cache.grains", "*")
        assert {name: (one["team"], one["site_rack"]) for name, one in grains.items()} == self.everybody(
            ("platform", "r7")
        )
        offered = {name: f"hello from {name}" for name in NAMES}
        assert self.data("salt-run", "mine.get", "*", "site.hello") == offered
        assert self.data("salt-run", "site_runner.known") == NAMES

    def check(self) -> None:
        """Everything that the fleet has of its own works."""
        ping = self.everybody(True)
        for target in (
            ("-G", "team:platform"),
            ("-G", "site_rack:r7"),
            ("-I", "from_program:yes"),
            ("-E", "(new|old)1"),
        ):
            assert self.data("salt", *target, "test.ping") == ping, target
        offered = {name: f"hello from {name}" for name in NAMES}
        assert self.data("salt", "*", "site.hello") == offered
        assert self.data("salt", "*", "mine.get", "*", "site.hello") == self.everybody(offered)
        assert self.data("salt", "*", "grains.get", "id") == {name: name for name in NAMES}
        self.check_schedules()
        for sls in ("own", "fromgit"):
            for name, run in self.data("salt", "*", "state.apply", sls).items():
                assert [state["result"] for state in run.values()] == [True], (name, sls)
        assert self.run("salt", "*", "test.echo", "x", "--return", "site_file").code == 0
        returned = self.root / "returned"
        until(lambda: returned.exists() and len(returned.read_text().split()) == 4, PATIENCE, "returns are in the file")
        returned.unlink()
        reacted = self.root / "reacted" / "ticks-new1"
        reacted.parent.mkdir(exist_ok=True)
        reacted.unlink(missing_ok=True)
        self.data("salt-run", "event.send", "site/hello")
        until(reacted.exists, PATIENCE, "the reaction ran")
        self.grows("ticks-master", "the master's schedule ran")

    def check_schedules(self) -> None:
        """The minions have their schedules, and run them."""
        for name, jobs in self.data("salt", "*", "schedule.list", "return_yaml=False").items():
            assert (jobs["often"]["function"], jobs["often"]["seconds"], jobs["often"]["enabled"]) == (
                "site.tick",
                5,
                True,
            )
            assert jobs["paused"]["enabled"] is False, name
            assert not any("_error" in job for job in jobs.values() if isinstance(job, dict)), jobs
            self.grows(f"ticks-{name}", f"the schedule of {name} ran")


def make_tree(lab: Lab, root: Path) -> dict[str, Any]:
    """Lay out the fleet's trees, and return the options of a stock master that serve them."""
    for name, text in FILES.items():
        path = lab.tree / "salt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{root}", str(root)))
    (root / "runners").mkdir()
    (root / "runners" / "site_runner.py").write_text(RUNNER.replace("{root}", str(root)))
    reaction = lab.tree / "reactor" / "site.sls"
    reaction.write_text(REACTION.replace("{root}", str(root)))
    repository = root / "states"
    repository.mkdir()
    (repository / "fromgit.sls").write_text("from git:\n  test.succeed_without_changes: []\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(repository)]
    for words in (["init", "-q", "-b", "master"], ["add", "."], ["commit", "-q", "-m", "states"]):
        subprocess.run([*git, *words], check=True)
    return {
        "file_roots": {"base": [str(lab.tree / "salt")]},
        "pillar_roots": {"base": [str(lab.tree / "pillar")]},
        "fileserver_backend": ["roots", "gitfs"],
        "gitfs_remotes": [f"file://{repository}"],
        "ext_pillar": [{"cmd_yaml": "echo 'from_program: \"yes\"' #%s"}],
        "reactor": [{"site/hello": [str(reaction)]}],
        "runner_dirs": [str(root / "runners")],
        "schedule": {"tick": {"function": "site_runner.tick", "seconds": 5}},
    }


def test_a_fleet_moves_over_and_back(module_labs: NewLab, root: Path) -> None:
    need_namespace()
    lab = module_labs(minions=(), options={"auto_accept": False})
    options = make_tree(lab, root)
    stock = StockMaster(
        root,
        venv_of("3008.3"),
        {**options, "publish_port": lab.port["publish_port"], "ret_port": lab.port["ret_port"], "worker_threads": 3},
    )
    of_minions = {
        "mine_functions": {"site.hello": []},
        "mine_interval": 60,
        "schedule": {"paused": {"function": "test.ping", "hours": 1, "enabled": False}},
    }
    minions = {name: StockMinion(name, venv_of(release), lab, of_minions) for name, release in MINIONS.items()}
    fleet = Fleet(lab, root, minions, stock.run)
    ours, back = root / "ours", root / "back"
    cache = root / "master" / "var" / "cache" / "salt" / "master"
    places = {
        "/etc/salt/pki/master": root / "master" / "pki",
        "/var/cache/salt/master": cache,
        "/etc/salt": stock.etc,
        "/srv/saltern": ours,
        "/srv/back": back,
        "'*'": "*",
    }

    def typed(words: list[str]) -> Answer:
        for place, here in places.items():
            words = [word.replace(place, str(here)) for word in words]
        answer = lab.run(*words, seconds=300)
        assert answer.code == 0, str(answer)
        return answer

    try:
        # The stock fleet, in use.
        stock.start()
        for minion in minions.values():
            minion.start()
        for name in minions:
            stock.accept(name)
        fleet.await_minions()
        fleet.data("salt", "*", "saltutil.sync_all")
        fleet.data("salt", "*", "grains.setval", "team", "platform")
        added = fleet.data(
            "salt", "*", "schedule.add", "often", "function=site.tick", f"job_args=['{root}']", "seconds=5"
        )
        assert all(one["result"] for one in added.values()), added
        assert fleet.data("salt", "*", "mine.update") == fleet.everybody(True)
        fleet.data("salt", "*", "saltutil.refresh_grains")
        until(
            lambda: all("team" in one for one in fleet.data("salt-run", "cache.grains", "*").values()),
            PATIENCE,
            "the stock master knows the grains",
        )
        fleet.check_memory()
        fleet.check()
        keys = {
            path: path.read_bytes().strip()
            for one in minions.values()
            for path in (one.directory / "root" / "pki").rglob("*.p*")
        }
        assert keys

        # There.
        check, bring, import_keys, data, ping, versions = commands("There")
        said = typed(check)
        assert "Not supported" not in said.out
        stock.end()
        typed(bring)
        imported = yaml.safe_load((ours / "etc" / "master").read_text())
        own = yaml.safe_load((lab.etc / "master").read_text())
        assert imported["id"].endswith("_master")
        assert {name: imported[name] for name in options} == options
        (ours / "etc" / "master.d").mkdir()
        (ours / "etc" / "master.d" / "saltern.conf").write_text(
            yaml.safe_dump({name: value for name, value in own.items() if name not in imported})
        )
        lab.etc = ours / "etc"
        fleet.run = lab.run
        lab.start_all(*lab.roles)
        typed(import_keys)
        # Nobody has told the new master anything yet, or everything: what is known does not depend on it.
        assert re.search(r"Stored of 2 minions: grains of \d, pillar of \d, mine of \d", typed(data).out)
        fleet.check_memory()
        for target in (("-G", "team:platform"), ("-I", "from_program:yes")):
            assert json.loads(lab.ok("salt", "--preview-target", "--out", "json", *target).out) == NAMES
        fleet.await_minions()
        typed(ping)
        listed = typed(versions).out
        assert all(name in listed for name in NAMES)
        fleet.check()

        # A stock minion is replaced in its place, and returns to it.
        minions["old1"].end()
        replaced = OurMinion("old1", minions["old1"].venv, lab, of_minions)
        replaced.start()
        fleet.await_minions()
        assert "saltern" in fleet.data("salt", "old1", "test.version")["old1"]
        fleet.check()
        replaced.end()
        minions["old1"].start()
        fleet.await_minions()
        fleet.check_schedules()

        # And back.
        for words in commands("Back"):
            typed(words)
        lab.close()
        (back / "master.d").mkdir()
        (back / "master.d" / "places.conf").write_text(
            yaml.safe_dump(
                {
                    **{name: yaml.safe_load((stock.etc / "master").read_text())[name] for name in ("sock_dir", "user")},
                    "root_dir": str(root / "master"),
                    "worker_threads": 3,
                }
            )
        )
        # As the page says: both are copied over.
        for old, new in ((root / "master" / "pki", back / "pki" / "master"), (cache, back / "cache")):
            subprocess.run(["rm", "-rf", str(old)], check=True)
            subprocess.run(["cp", "-a", str(new), str(old)], check=True)
        config = yaml.safe_load((back / "master").read_text())
        # These two are of the lab's roles.
        config = {name: value for name, value in config.items() if name not in ("cachedir", "extension_modules")}
        (back / "master").write_text(yaml.safe_dump({**config, "pki_dir": str(root / "master" / "pki")}))
        stock.etc = back
        fleet.run = stock.run
        stock.start()
        until(
            lambda: stock.run("salt-run", "--out", "json", "test.arg").code == 0, PATIENCE, "the stock master is back"
        )
        fleet.check_memory()
        fleet.await_minions()
        fleet.check()
        # A minion of ours ends the master's key with a line break.
        assert {path: path.read_bytes().strip() for path in keys} == keys
    except BaseException:
        # For the report of the failed test; the directory goes.
        sys.stdout.write((root / "stock-master.log").read_text(errors="replace")[-6000:])
        raise
    finally:
        for minion in minions.values():
            minion.end()
        stock.end()

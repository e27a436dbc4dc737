"""The promises of tests/chaos on real containers: killed, stopped and taken off their networks at random while jobs go on.

The plan and the accountant are those of tests/chaos. ``CHAOS_SECONDS`` and ``CHAOS_SEED`` set the plan: `make chaos-containers`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.chaos.accountant import Asked, Evidence, Execution, Made, Result, account
from tests.chaos.field import CHAOS_MODULE, read_journal
from tests.chaos.plan import TO, Ask, Cast, Fault, Kind, Plan, Way, make_plan
from tests.chaos.run import play

if TYPE_CHECKING:
    from tests.container.compose_lab import Lab

SEED, SECONDS = int(os.environ.get("CHAOS_SEED") or 5), float(os.environ.get("CHAOS_SECONDS") or 60)

#: Seconds until all is at rest.
SETTLE = 180.0

#: Jobs that are asked for at the same time.
_ASKERS = 4

pytestmark = [pytest.mark.container, pytest.mark.chaos, pytest.mark.timeout(1800 + SECONDS)]

MINIONS = ("web1", "web2")
ROLES = ("redis", "publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance", "master")

#: Where a minion's jobs write; a host outlives the container of its minion.
JOURNAL = "/var/tmp/chaos.journal"


class Containers:
    """Those of a lab by name: a service's second one is called ``mworker2``."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.id: dict[str, str] = {}
        self.networks: dict[str, dict[str, list[str]]] = {}
        for service in (*ROLES, *MINIONS):
            for number, container in enumerate(lab.containers(service), 1):
                name = service if number == 1 else f"{service}{number}"
                found = lab.inspect(container)["NetworkSettings"]["Networks"]
                self.id[name] = container
                self.networks[name] = {network: one["Aliases"] or [] for network, one in found.items()}

    @property
    def cast(self) -> Cast:
        """Who can be broken."""
        links = {name: [f"{name}{TO}{_room(network)}" for network in self.networks[name]] for name in self.id}
        return Cast(
            processes=tuple(name for name in self.id if name not in MINIONS),
            minions=MINIONS,
            stock=frozenset(),
            links=tuple(link for name in self.id if name not in MINIONS for link in links[name]),
            minion_links=tuple(link for name in MINIONS for link in links[name]),
            shelves={"both": MINIONS},
        )

    def break_(self, victim: str, kind: Kind) -> None:
        """A fault begins."""
        name, _, room = victim.partition(TO)
        if room:
            self.lab.docker("network", "disconnect", "--force", self._network(name, room), self.id[name])
        elif kind is Kind.STOP:
            self._signal(name, "STOP")
        else:
            self.lab.docker("kill", self.id[name])

    def mend(self, victim: str, kind: Kind) -> None:
        """It ends."""
        name, _, room = victim.partition(TO)
        if room:
            network = self._network(name, room)
            aliases = [f"--alias={alias}" for alias in self.networks[name][network]]
            self.lab.docker("network", "connect", *aliases, network, self.id[name])
        elif kind is Kind.STOP:
            self._signal(name, "CONT")
        else:
            self.lab.docker("start", self.id[name])

    def _signal(self, name: str, signal: str) -> None:
        """To each process of a container: to its first, which none of the others may signal, and to these.

        Not by ``docker pause``: a freezer that does not freeze is an error of some engines.
        """
        self.lab.docker("kill", "--signal", signal, self.id[name])
        self.lab.docker("exec", self.id[name], "sh", "-c", f"kill -{signal} -1", check=False)

    def _network(self, name: str, room: str) -> str:
        (found,) = [network for network in self.networks[name] if _room(network) == room]
        return found


def _room(network: str) -> str:
    return network.rpartition("_")[2]


@pytest.fixture
def cli(accepted: Lab) -> Iterator[Callable[..., str]]:
    """Commands of an operator, in one container for all of them."""
    container = accepted.compose("run", "--detach", "--entrypoint", "sleep", "cli", "3600").split()[-1]

    def run(*words: str) -> str:
        return accepted.docker("exec", container, *words, check=False, seconds=300)

    yield run
    accepted.docker("rm", "--force", container)


def test_no_job_is_lost_and_none_runs_twice(accepted: Lab, cli: Callable[..., str]) -> None:
    (accepted.tree / "salt" / "_modules").mkdir(exist_ok=True)
    module = accepted.tree / "salt" / "_modules" / "chaos.py"
    module.write_text(CHAOS_MODULE.replace('__grains__["chaos_journal"]', f'"/host{JOURNAL}"'))
    module.parent.chmod(0o755)
    module.chmod(0o644)
    cli("salt", "*", "saltutil.sync_modules")
    said = cli("salt", "*", "chaos.run", "muster")
    for minion in MINIONS:
        assert f"{minion}:\n    ----------\n    filling:" in said, said
        accepted.inside(minion, "rm", f"/host{JOURNAL}")
    containers = Containers(accepted)
    plan = _by_command(make_plan(SEED, SECONDS, containers.cast, executions=1.0, faults=0.25))
    print(plan)  # noqa: T201 - for pytest -s
    asked, made = _go(containers, cli, plan)
    results = _results(accepted, asked)
    found = account(Evidence(asked, dict(_executions(accepted)), results, made, frozenset(MINIONS)))
    told = f"{found}\n{found.last_line()}"
    print(told)  # noqa: T201
    assert found.broken == [], told
    assert found.acknowledged >= len(asked) / 3, told
    # A busy machine is late with its probes.
    accepted.all_healthy(600)


def _by_command(plan: Plan) -> Plan:
    """All of it asked for by ``salt --async``. These minions have no grain of the plan."""
    return replace(plan, asks=tuple(replace(ask, way=Way.COMMAND) for ask in plan.asks if ask.tgt_type != "grain"))


def _words(ask: Ask) -> list[str]:
    tgt = ",".join(ask.tgt) if isinstance(ask.tgt, tuple) else ask.tgt
    flag = {"glob": [], "list": ["-L"], "pcre": ["-E"]}[ask.tgt_type]
    return ["salt", "--async", *flag, tgt, "chaos.run", ask.token, str(ask.seconds), str(ask.size)]


def _go(containers: Containers, cli: Callable[..., str], plan: Plan) -> tuple[list[Asked], list[Made]]:
    """Everything at its time; what was asked, and what was broken."""
    began: dict[Fault, float] = {}
    made: list[Made] = []

    def begin(fault: Fault) -> None:
        began[fault] = time.time()
        containers.break_(fault.victim, fault.kind)

    def end(fault: Fault) -> None:
        containers.mend(fault.victim, fault.kind)
        made.append(Made(fault.victim, fault.kind, began[fault], time.time()))

    def ask(one: Ask) -> Asked:
        at = time.time()
        found = re.search(r"job ID: (\d{20})", cli(*_words(one)))
        return Asked(one.token, one.minions, one.seconds, at, found[1] if found else None, time.time())

    with ThreadPoolExecutor(_ASKERS) as pool:
        asking: list[Future[Asked]] = []
        agenda: list[tuple[float, Callable[[], object]]] = []
        for fault in plan.faults:
            agenda += [(fault.at, partial(begin, fault)), (fault.end, partial(end, fault))]
        for one in plan.asks:
            agenda.append((one.at, lambda one=one: asking.append(pool.submit(ask, one))))  # type: ignore[misc]
        play(agenda)
        return [one.result() for one in asking], made


def _results(lab: Lab, asked: Sequence[Asked]) -> Mapping[tuple[str, str], Result]:
    """What Redis has when everything has come to rest, or the time for that is over."""
    owed = {one.jid: one for one in asked if one.jid is not None}
    found: dict[tuple[str, str], Result] = {}
    login = f"export REDISCLI_AUTH={urlsplit(lab.redis_url()).password}; "

    def complete() -> bool:
        missing = [(jid, name) for jid, one in owed.items() for name in one.minions if (jid, name) not in found]
        if not missing:
            return True
        program = "; ".join(f"redis-cli --user mworker --raw hget ret:{jid} {name} | head -n1" for jid, name in missing)
        lines = lab.inside("redis", "sh", "-c", login + program, check=False).split("\n")
        for (jid, name), line in zip(missing, lines, strict=False):
            if line.startswith("{"):
                value = json.loads(line)
                # When it came nobody saw: how late it was is asked of processes, not of containers.
                found[jid, name] = Result(value["return"], value["success"] is True, owed[jid].answered)
        return False

    deadline = time.monotonic() + SETTLE
    while not complete() and time.monotonic() < deadline:
        time.sleep(1)
    return found


def _executions(lab: Lab) -> Iterator[tuple[tuple[str, str], list[Execution]]]:
    for minion in MINIONS:
        for token, runs in read_journal(lab.inside(minion, "cat", f"/host{JOURNAL}")).items():
            yield (token, minion), runs

"""overlays/ha on a real cluster: two of every role on two nodes; one of each is killed under load, and nobody waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import pytest

from tests.cluster.cluster import PATIENCE
from tests.cluster.ha import Ha, Operators
from tests.cluster.lab import ROLES, SPACES
from tests.cluster.places import NODES, ClusterError, until
from tests.k8s_run.accounting import Accounts

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]

#: Roles that are two, or three workers.
DOUBLED = (*ROLES, "front")

#: Seconds that a command may take longer than the slowest one before, while a process of a doubled role is killed.
LATE = 2.0


def test_two_of_every_role_run_on_two_nodes(ha: Ha) -> None:
    assert ha.cluster.unready(*SPACES, "outside") == {}
    for role in DOUBLED:
        pods = ha.cluster.pods("saltern", component=role)
        assert len(pods) == (3 if role == "mworker" else 2), role
        assert {pod["spec"]["nodeName"] for pod in pods} == set(NODES), role


def test_a_second_of_each_has_a_budget(ha: Ha) -> None:
    budgets = {
        one["metadata"]["name"]: one["status"]["disruptionsAllowed"]
        for one in ha.cluster.get("poddisruptionbudgets", namespace="saltern")["items"]
    }
    assert {name: allowed for name, allowed in budgets.items() if allowed < 1} == {}
    assert {f"saltern-{role}" for role in DOUBLED} <= budgets.keys()


def test_trees_come_from_git(ha: Ha) -> None:
    runs = ha.cluster.salt("-t", "600", "*", "state.apply", seconds=900)
    assert sorted(runs) == sorted(NODES)
    for node, found in runs.items():
        assert isinstance(found, dict), (node, found)
        assert {tag: one["comment"] for tag, one in found.items() if one["result"] is not True} == {}, node


def test_workers_and_operators_use_both_reqservers(ha: Ha) -> None:
    for pod in ha.cluster.pods("saltern", component="reqserver"):
        metrics = ha.cluster.exec(pod["metadata"]["name"], "python3", "-c", _METRICS, "8080")
        assert "salt_workers " in metrics or "salt_workers{" in metrics
        found = [line for line in metrics.splitlines() if line.startswith(("salt_workers ", "salt_workers{"))]
        assert sum(float(line.split()[-1]) for line in found) == 6, found


_METRICS = "import sys, urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8080/metrics').read().decode())"


def test_nobody_waits_for_a_killed_process(ha: Ha, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[str, float, float, float, int]] = []
    late: list[str] = []
    for node in NODES:
        ha.cluster.nodes[node].path("/var/tmp/ran").unlink(missing_ok=True)
    with Operators(ha.cluster) as operators:
        operators.await_more(5)
        for role in (*DOUBLED, "redis"):
            # Others use this machine: what a command takes is compared with the slowest one of the same minute.
            begun = len(operators.said)
            operators.await_more(4)
            before = {kind: operators.longest(kind, begun) for kind in ("publish", "answer")}
            begun = len(operators.said)
            started = time.monotonic()
            if role == "redis":
                _kill_master_of_redis(ha)
            else:
                ha.kill(role)
            took = time.monotonic() - started
            operators.await_more(4)
            slow = {kind: operators.longest(kind, begun) for kind in ("publish", "answer")}
            errors = [one["error"] for one in operators.said[begun:] if "error" in one]
            rows.append((role, took, slow["publish"], slow["answer"], len(errors)))
            if role != "redis":
                late += [f"{role}: {error}" for error in errors]
                late += [
                    f"{role}: {kind} {slow[kind]:.1f} s, before {before[kind]:.1f} s"
                    for kind in slow
                    if slow[kind] > before[kind] + LATE
                ]
    with capsys.disabled():
        sys.stdout.write(_table(rows))
    accounts = Accounts(NODES)
    for one in operators.of("publish"):
        if "jid" in one:
            accounts.acknowledged[one["number"]] = one["jid"]
        else:
            accounts.refused[one["number"]] = one["error"]
    faults: list[str] = []

    def settled() -> bool:
        faults[:] = accounts.faults(_returned(ha, list(accounts.acknowledged.values())), ha.ran())
        return not faults

    try:
        until(settled, 300, "every acknowledged job has run once and has its results")
    except ClusterError:
        pytest.fail(f"{len(accounts.acknowledged)} jobs acknowledged:\n" + "\n".join(faults))
    heard = [one["jid"] for one in operators.of("event")]
    assert len(heard) == len(set(heard)), "a listener heard a job twice"
    assert set(accounts.acknowledged.values()) <= set(heard), "a listener missed a job"
    assert late == []


def _kill_master_of_redis(ha: Ha) -> None:
    """kill -9 of the Redis that writes; the Sentinels choose the other one, and the killed one follows it."""

    def address() -> str:
        words = ("redis-cli", "-p", "26379", "--raw", "sentinel", "get-master-addr-by-name", "saltern")
        return ha.cluster.exec("sentinel-0", *words, namespace="outside").split()[0]

    before = address()
    ha.kill("redis", pod=f"redis-{'1' if before.endswith('1') else '0'}", namespace="outside")
    until(lambda: address() != before, PATIENCE, "the Sentinels name another Redis", pause=1)

    def follows() -> bool:
        return "connected_slaves:1" in ha.cluster.exec(
            f"redis-{'1' if address().endswith('1') else '0'}", "redis-cli", "info", "replication", namespace="outside"
        )

    until(follows, PATIENCE, "the killed Redis follows", pause=1)


def _returned(ha: Ha, jids: Sequence[str]) -> dict[str, list[str]]:
    """Minions whose results the job cache has, by JID: asked of a Redis, for Sentinels take another client."""
    found = {}
    script = "while read -r jid; do echo \"$jid $(redis-cli --raw hkeys ret:$jid | tr '\\n' ' ')\"; done"
    words = ("-n", "outside", "exec", "-i", "redis-0", "--", "sh", "-c", script)
    for line in ha.cluster.kubectl(*words, stdin="".join(f"{jid}\n" for jid in jids)).splitlines():
        jid, *minions = line.split()
        found[jid] = minions
    return found


def _table(rows: Sequence[tuple[str, float, float, float, int]]) -> str:
    lines = [
        "",
        "| kill -9 of | Ready again, s | Slowest command, s | Slowest answer of both minions, s | Commands refused |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {name} | {took:.0f} | {slow:.1f} | {answer:.1f} | {n} |" for name, took, slow, answer, n in rows]
    return "\n".join(lines) + "\n"

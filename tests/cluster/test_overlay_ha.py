"""overlays/ha on a real cluster: two of every role on two nodes; one of each is killed under load, and nobody waits for it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from tests.cluster.cluster import PATIENCE
from tests.cluster.ha import Ha, Operators
from tests.cluster.lab import ROLES, SPACES
from tests.cluster.node import tree
from tests.cluster.places import NODES, ClusterError, until
from tests.cluster.programs import build
from tests.k8s_run.accounting import Accounts

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]

#: Roles that are two, or three workers.
DOUBLED = (*ROLES, "front")

#: Seconds that a command, or an answer of both minions, may take longer than the slowest before, while a process of a doubled role
#: is killed.
LATE = 2.0


#: Seconds after which a publication was asked for again: its worker died, which a reqserver notices after half a second, or a
#: replica of Redis did not confirm it within a second. Others take less than a fifth of a second.
_REPEATED = 0.45


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


def _hang_redis(ha: Ha) -> None:
    """The Redis that writes hangs until the Sentinels have chosen the other one; then it dies, and follows."""

    def address() -> str:
        words = ("redis-cli", "-p", "26379", "--raw", "sentinel", "get-master-addr-by-name", "saltern")
        return ha.cluster.exec("sentinel-0", *words, namespace="outside").split()[0]

    before = address()
    name = f"redis-{'1' if before.endswith('1') else '0'}"
    ha.signal("STOP", ha.cluster.get("pod", name, namespace="outside"), "redis")
    until(lambda: address() != before, PATIENCE, "the Sentinels name another Redis", pause=0.5)
    ha.kill("redis", pod=name, namespace="outside")

    def follows() -> bool:
        return "connected_slaves:1" in ha.cluster.exec(
            f"redis-{'1' if address().endswith('1') else '0'}", "redis-cli", "info", "replication", namespace="outside"
        )

    until(follows, PATIENCE, "the killed Redis follows", pause=1)


def _kill(role: str) -> Callable[[Ha], None]:
    return lambda ha: ha.kill(role)


def _without_toolbox(ha: Ha) -> str:
    """The node on which the operators are not."""
    (toolbox,) = ha.cluster.pods("saltern", component="cli")
    (node,) = set(NODES) - {toolbox["spec"]["nodeName"]}
    return node


def _drain(ha: Ha) -> None:
    """A node is emptied by the usual command, within the budgets; what is left of each role may then not be evicted."""
    node = _without_toolbox(ha)
    try:
        # The master's pods: Redis and Git are outside, and have no budgets here.
        chosen = "--pod-selector=app.kubernetes.io/part-of=saltern"
        words = ("drain", node, chosen, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=600s")
        ha.cluster.kubectl(*words, seconds=630)
        assert [one for one in ha.cluster.pods("saltern") if one["spec"].get("nodeName") == node] == []
        for role in ("reqserver", "eventpublisher", "publisher", "front"):
            (left,) = [one for one in ha.cluster.pods("saltern", component=role) if one["spec"].get("nodeName")]
            name = left["metadata"]["name"]
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": "saltern"},
                "deleteOptions": {"dryRun": ["All"]},
            }
            path = f"/api/v1/namespaces/saltern/pods/{name}/eviction"
            code, said = ha.cluster.tried("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
            assert code != 0, role
            assert "disruption budget" in said, said
    finally:
        ha.cluster.kubectl("uncordon", node)
    until(lambda: not ha.cluster.unready("saltern", "outside"), PATIENCE, "every pod is ready again", pause=1)


def _power_cut(ha: Ha) -> None:
    """A node without a word, and back as a machine that boots."""
    node = ha.cluster.nodes[_without_toolbox(ha)]
    node.stop(cleanly=False)
    node.start(build(), tree())
    until(
        lambda: not ha.cluster.unready("kube-system", "outside", *SPACES), PATIENCE, "every pod is ready again", pause=1
    )


#: By name: what happens to a process of a doubled role, and nobody may wait for it.
UNNOTICED: Mapping[str, Callable[[Ha], None]] = {f"{role}: kill -9": _kill(role) for role in DOUBLED}

#: These and what takes a Redis along, too: until the Sentinels have chosen another one, commands are refused.
DISTURBANCES: Mapping[str, Callable[[Ha], None]] = {
    **UNNOTICED,
    "the Redis that writes hangs, and is killed": _hang_redis,
    "drain of a node": _drain,
    "power cut of a node": _power_cut,
}


def test_no_job_is_lost_and_nobody_waits_for_a_killed_process(ha: Ha, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[str, float, float, float, int]] = []
    late: list[str] = []
    #: (when it began, UTC as in a JID, its name): what a job that nobody heard of met.
    begins: list[tuple[str, str]] = []
    for node in NODES:
        ha.cluster.nodes[node].path("/var/tmp/ran").unlink(missing_ok=True)
    with Operators(ha.cluster) as operators, _printed(rows, capsys):
        operators.await_more(5)
        for name, disturb in DISTURBANCES.items():
            # Others use this machine: what a command takes is compared with the slowest one of the same minute.
            begun = len(operators.said)
            operators.await_more(5)
            before = {kind: operators.longest(kind, begun) for kind in ("publish", "answer")}
            begun = len(operators.said)
            started = time.monotonic()
            begins.append((datetime.now(UTC).strftime("%Y%m%d%H%M%S%f"), name))
            disturb(ha)
            took = time.monotonic() - started
            operators.await_more(5)
            slow = {kind: operators.longest(kind, begun) for kind in ("publish", "answer")}
            errors = [one["error"] for one in operators.said[begun:] if "error" in one]
            rows.append((name, took, slow["publish"], slow["answer"], len(errors)))
            if name in UNNOTICED:
                late += [f"{name}: {error}" for error in errors]
                late += [
                    f"{name}: {kind} {slow[kind]:.1f} s, before {before[kind]:.1f} s"
                    for kind in slow
                    if slow[kind] > before[kind] + LATE
                ]
    accounts = Accounts(NODES)
    for one in operators.of("publish"):
        if "jid" in one:
            accounts.acknowledged[one["number"]] = one["jid"]
        else:
            accounts.refused[one["number"]] = one["error"]
    faults: list[str] = []

    def settled() -> bool:
        returned = _returned(ha, list(accounts.acknowledged.values()))
        faults[:] = accounts.faults(returned, ha.ran(), power_cut=True)
        return not faults

    try:
        until(settled, 300, "every acknowledged job has run once and has its results")
    except ClusterError:
        pytest.fail(f"{len(accounts.acknowledged)} jobs acknowledged:\n" + "\n".join(faults))
    heard = [one["jid"] for one in operators.of("event")]
    assert len(heard) == len(set(heard)), "a listener heard a job twice"
    # A command that met the failover of Redis or the end of its worker is repeated. The repeated one gets the JID and fires no
    # event, because nobody knows whether the first one did (docs/operations/outages.md).
    repeated = {one["jid"] for one in operators.of("publish") if "jid" in one and one["took"] >= _REPEATED}
    missed = sorted(set(accounts.acknowledged.values()) - repeated - set(heard))
    assert missed == [], f"a listener missed jobs; disturbances began: {begins}"
    assert late == []


@contextmanager
def _printed(
    rows: Sequence[tuple[str, float, float, float, int]], capsys: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """Print the rows at the end, also those before a failure."""
    try:
        yield
    finally:
        with capsys.disabled():
            sys.stdout.write(_table(rows))


def _returned(ha: Ha, jids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Results that the job cache has, by JID and minion: asked of a Redis, for Sentinels take another client."""
    found: dict[str, dict[str, str]] = {}
    # Two lines for each result: the minion, and its JSON.
    script = 'while read -r jid; do redis-cli --raw hgetall "ret:$jid" </dev/null | sed "s/^/$jid /"; done'
    words = ("-n", "outside", "exec", "-i", "redis-0", "--", "sh", "-c", script)
    lines = ha.cluster.kubectl(*words, stdin="".join(f"{jid}\n" for jid in jids)).splitlines()
    for name, result in zip(lines[::2], lines[1::2], strict=True):
        jid, _, minion = name.partition(" ")
        found.setdefault(jid, {})[minion] = result.partition(" ")[2]
    return found


def _table(rows: Sequence[tuple[str, float, float, float, int]]) -> str:
    lines = [
        "",
        "| What happens | Takes, s | Slowest command, s | Slowest answer of both minions, s | Commands refused |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {name} | {took:.0f} | {slow:.1f} | {answer:.1f} | {n} |" for name, took, slow, answer, n in rows]
    return "\n".join(lines) + "\n"

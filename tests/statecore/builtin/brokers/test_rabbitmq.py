"""The module rabbitmq and the states rabbitmq_*: a played rabbitmqctl answers ours and real Salt."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, NotAvailable
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion
from tests.statecore.function_calls import Call, ours, salts

_STATES = Path(__file__).parents[2] / "salt_state_calls.py"

CALLS: list[Call] = [
    ("rabbitmq.user_exists", ["guest"], {}),
    ("rabbitmq.add_user", ["ann", "secret"], {}),
    ("rabbitmq.add_user", ["ann", "secret"], {}),
    ("rabbitmq.check_password", ["ann", "secret"], {}),
    ("rabbitmq.check_password", ["ann", "other"], {}),
    ("rabbitmq.change_password", ["ann", "other"], {}),
    ("rabbitmq.check_password", ["ann", "other"], {}),
    ("rabbitmq.clear_password", ["none"], {}),
    ("rabbitmq.set_user_tags", ["ann", ["a", "b"]], {}),
    ("rabbitmq.set_user_tags", ["ann", "management"], {}),
    ("rabbitmq.add_vhost", ["/app"], {}),
    ("rabbitmq.vhost_exists", ["/app"], {}),
    ("rabbitmq.set_permissions", ["/app", "ann"], {}),
    ("rabbitmq.set_permissions", ["/none", "ann", "a", "b", "c"], {}),
    ("rabbitmq.list_permissions", ["/app"], {}),
    ("rabbitmq.list_user_permissions", ["ann"], {}),
    ("rabbitmq.set_policy", ["/", "HA", ".*", {"ha-mode": "all"}], {}),
    ("rabbitmq.set_policy", ["/", "TTL", "^x", '{"ttl": 5}'], {"priority": 3, "apply_to": "queues"}),
    ("rabbitmq.set_policy", ["/", "TTL", "^x", 5], {}),
    ("rabbitmq.set_policy", ["/", "TTL", "^x", "no json"], {}),
    ("rabbitmq.delete_policy", ["/", "HA"], {}),
    ("rabbitmq.set_upstream", ["up", "amqp://x"], {"max_hops": 2, "prefetch_count": 0}),
    ("rabbitmq.upstream_exists", ["up"], {}),
    ("rabbitmq.delete_upstream", ["up"], {}),
    ("rabbitmq.list_available_plugins", [], {}),
    ("rabbitmq.list_enabled_plugins", [], {}),
    ("rabbitmq.enable_plugin", ["rabbitmq_shovel"], {}),
    ("rabbitmq.enable_plugin", ["none"], {}),
    ("rabbitmq.plugin_is_enabled", ["rabbitmq_shovel"], {}),
    ("rabbitmq.disable_plugin", ["rabbitmq_shovel"], {}),
    ("rabbitmq.cluster_status", [], {}),
    ("rabbitmq.join_cluster", ["other"], {"ram_node": True}),
    ("rabbitmq.join_cluster", ["gone"], {}),
    ("rabbitmq.status", [], {}),
    ("rabbitmq.reset", [], {}),
    ("rabbitmq.force_reset", [], {}),
    ("rabbitmq.delete_vhost", ["/app"], {}),
    ("rabbitmq.delete_vhost", ["/app"], {}),
    ("rabbitmq.delete_user", ["ann"], {}),
]

#: One after the other: state, arguments, and why Salt's answer in a phase is another ("" for none).
STATES: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    (
        "rabbitmq_user.present",
        {"name": "ann", "password": "p", "tags": ["a"], "perms": [{"/": ["c", "w", "r"]}]},
        {"would": "Salt tells of the user only"},
    ),
    ("rabbitmq_user.present", {"name": "ann", "password": "p"}, {}),
    ("rabbitmq_user.present", {"name": "ann", "password": "q"}, {}),
    ("rabbitmq_user.present", {"name": "ann", "tags": "a b"}, {}),
    ("rabbitmq_user.present", {"name": "ann", "perms": [{"/": ["x", "w", "r"]}]}, {}),
    ("rabbitmq_user.present", {"name": "ann", "perms": [{"/none": ["x", "w", "r"]}]}, {}),
    ("rabbitmq_user.present", {"name": "ann", "force": True}, {}),
    ("rabbitmq_user.absent", {"name": "ann"}, {}),
    ("rabbitmq_vhost.present", {"name": "/v"}, {}),
    ("rabbitmq_vhost.absent", {"name": "/v"}, {}),
    ("rabbitmq_plugin.enabled", {"name": "rabbitmq_shovel"}, {}),
    ("rabbitmq_plugin.disabled", {"name": "rabbitmq_shovel"}, {}),
    ("rabbitmq_plugin.enabled", {"name": "none"}, {}),
    ("rabbitmq_cluster.joined", {"name": "c", "host": "other"}, {}),
    ("rabbitmq_cluster.join", {"name": "c", "host": "other"}, {}),
    ("rabbitmq_upstream.present", {"name": "up", "uri": "amqp://x", "max_hops": 2}, {"would": "Salt tells no changes"}),
    ("rabbitmq_upstream.present", {"name": "up", "uri": "amqp://y"}, {"would": "Salt tells no changes"}),
    ("rabbitmq_upstream.absent", {"name": "up"}, {"would": "Salt tells no changes"}),
]

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def minion(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlainMinion:
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Host(), **changes}))
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    monkeypatch.setenv("RABBIT", str(tmp_path / "ours.json"))
    return plain


@pytest.mark.oracle
def test_functions_are_salts(
    minion: PlainMinion, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ours(minion.call, CALLS)
    monkeypatch.setenv("RABBIT", str(tmp_path / "salts.json"))
    stock = salts(oracle, tmp_path / "cache", CALLS)
    assert [[*call, answer] for call, answer in zip(CALLS, told, strict=True)] == [
        [*call, answer] for call, answer in zip(CALLS, stock, strict=True)
    ]


def phases(minion: PlainMinion, state: str, arguments: dict[str, Any]) -> list[list[Any]]:
    told = []
    for test in (True, False, False):
        entry = minion.state(state, test=test, **arguments)
        told.append([entry["result"], json.loads(json.dumps(entry["changes"])), entry["comment"]])
    return told


@pytest.mark.oracle
def test_states_are_salts(minion: PlainMinion, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [phases(minion, state, arguments) for state, arguments, _ in STATES]
    monkeypatch.setenv("RABBIT", str(tmp_path / "salts.json"))
    asked = {"cachedir": str(tmp_path / "cache"), "calls": [[state, args] for state, args, _ in STATES]}
    stock = json.loads(oracle.run("python", str(_STATES), stdin=json.dumps(asked)))
    for (state, arguments, differs), mine, salts_own in zip(STATES, told, stock, strict=True):
        for number, phase in enumerate(("would", "does", "again")):
            left, right = mine[number], salts_own[number]
            if phase in differs:
                assert left[0] == right[0], (state, arguments, phase)
            else:
                assert left == right, (state, arguments, phase)


def test_lists_are_read_without_their_headers(minion: PlainMinion) -> None:
    """Salt takes the names of columns, which newer versions print, for a user, a virtual host ..."""
    assert minion.call("rabbitmq.list_users") == {"guest": ["administrator"]}
    assert minion.call("rabbitmq.list_vhosts") == ["/"]
    assert minion.call("rabbitmq.list_upstreams") == {}
    assert minion.call("rabbitmq.list_queues") == {"jobs": ["3"], "mail": ["0"]}
    assert minion.call("rabbitmq.list_queues", None, "name", "consumers")["jobs"] == ["3"]


#: Tables of other versions -> what list_policies makes of them.
POLICIES = [
    ("/\tHA\tall\t.*\t{}\t0\n", {"HA": {"apply_to": "all", "pattern": ".*", "definition": "{}", "priority": "0"}}),
    ("/\tHA\t.*\t{}\t0\n", {"HA": {"pattern": ".*", "definition": "{}", "priority": "0"}}),
    (
        "/\tHA\t.*\tqueues\t{}\t1\n",
        {"HA": {"apply_to": "queues", "pattern": ".*", "definition": "{}", "priority": "1"}},
    ),
    ("Listing policies ...\n...done.\n", None),
]


@pytest.mark.parametrize(("output", "policies"), POLICIES)
def test_policies_of_older_versions(
    minion: PlainMinion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, policies: dict[str, Any] | None
) -> None:
    program = tmp_path / "rabbitmqctl"
    program.write_text(f"#!/bin/sh\ncat <<'X'\n{output}X\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert minion.call("rabbitmq.list_policies") == ({"/": policies} if policies else {})


def test_policies(minion: PlainMinion) -> None:
    """Salt's state updates a policy with apply_to in each run, and takes no map as definition."""
    wanted = {"name": "HA", "pattern": ".*", "definition": {"ha-mode": "all"}, "apply_to": "queues", "priority": 2}
    first, second, third = phases(minion, "rabbitmq_policy.present", wanted)
    assert first == [None, {"old": {}, "new": "HA"}, "Policy / HA is set to be created"]
    assert (second[0], second[1]) == (True, {"old": {}, "new": "HA"})
    assert third == [True, {}, "Policy / HA is already present"]
    changed = phases(
        minion, "rabbitmq_policy.present", wanted | {"pattern": "^a", "definition": '{"x": 1}', "priority": 0}
    )
    assert changed[0][1]["new"] == ["Pattern", "Definition", "Priority"]
    assert changed[2] == [True, {}, "Policy / HA is already present"]
    assert phases(minion, "rabbitmq_policy.absent", {"name": "HA"}) == [
        [None, {"new": "", "old": "HA"}, "Policy '/ HA' will be removed."],
        [True, {"new": "", "old": "HA"}, "Deleted"],
        [True, {}, "Policy '/ HA' is not present."],
    ]
    bad = minion.state("rabbitmq_policy.present", name="x", pattern="x", definition="{")
    assert (bad["result"], bad["comment"][:21]) == (False, "definition is no JSON")


def test_a_program_that_fails(minion: PlainMinion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rabbitmqctl"
    program.write_text("#!/bin/sh\necho 'node is down' >&2\nexit 69\n")
    program.chmod(0o755)
    (tmp_path / "rabbitmq-plugins").symlink_to("rabbitmqctl")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CommandError, match="RabbitMQ command failed: node is down"):
        minion.call("rabbitmq.list_users")
    for state, arguments in (
        ("rabbitmq_user.present", {}),
        ("rabbitmq_user.absent", {}),
        ("rabbitmq_vhost.present", {}),
        ("rabbitmq_policy.present", {"pattern": "x", "definition": "{}"}),
        ("rabbitmq_policy.absent", {}),
        ("rabbitmq_plugin.enabled", {}),
        ("rabbitmq_cluster.joined", {"host": "h"}),
        ("rabbitmq_upstream.present", {"uri": "x"}),
        ("rabbitmq_upstream.absent", {}),
    ):
        entry = minion.state(state, name="x", **arguments)
        assert (entry["result"], entry["changes"]) == (False, {}), state
        assert "node is down" in entry["comment"], state


def test_without_the_program(plain: PlainMinion) -> None:
    with pytest.raises(NotAvailable, match="the host has no program rabbitmqctl"):
        plain.call("rabbitmq.status")


def test_a_user_without_a_password_that_cannot_be_cleared_is_removed(
    minion: PlainMinion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "rabbitmqctl"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = clear_password ] && {{ echo no >&2; exit 1; }}\nexec {PROGRAMS}/rabbitmqctl "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CommandError, match="no"):
        minion.call("rabbitmq.add_user", "ann")
    assert not minion.call("rabbitmq.user_exists", "ann")
    assert subprocess.run([PROGRAMS / "rabbitmqctl", "status"], check=True, capture_output=True).stdout

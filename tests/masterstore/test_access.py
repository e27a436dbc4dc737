"""The users of Redis have the commands that the store sends, and the keys of the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import masterstore
from masterstore import keys
from masterstore.access import ROLES, acl_file, commands_of, keys_of, patterns_of, rules_of
from masterstore.keys import KEYS

SOURCES = Path(masterstore.__file__).parent

#: Modules of operators' tools, whose user may do everything.
TOOLS = {"check.py", "check_scripts.py"}

#: Method of redis-py -> the command that it sends, where that has another name; "" for methods that send none.
SENT = {
    "delete": "del",
    "incr": "incrby",
    "client_list": "client|list",
    **dict.fromkeys(
        ("execute", "execute_command", "pipeline", "names", "disconnect_idle", "peer_certificate", "masters"), ""
    ),
    # A role does without the answer: masterstore.durability.
    "config_get": "",
}


def sent() -> dict[str, str]:
    """{command: a module that sends it}."""
    found = {}
    for path in SOURCES.glob("*.py"):
        if path.name in TOOLS:
            continue
        text = path.read_text("utf-8")
        lua = re.findall(r"\b(?:call|pcall|try)\('([A-Z]+)'(?:, '([A-Z]+)')?", text)
        names = [f"{name}|{sub}".lower() if name == "XGROUP" else name.lower() for name, sub in lua]
        verbs = re.findall(r"\b(?:pipe|server|ask|request)\.([a-z_]+)\(|\.call\(\s*\"([a-z_]+)\"", text)
        names += [SENT.get(verb, verb) for pair in verbs for verb in pair if verb]
        found |= dict.fromkeys(filter(None, names), path.name)
    return found


def test_some_role_may_send_what_the_store_sends() -> None:
    allowed = {command for role in ROLES for command in commands_of(role, (8, 0))}
    commands = sent()
    assert len(commands) > 50
    assert {command: module for command, module in commands.items() if command not in allowed} == {}


def test_no_role_may_send_what_the_store_never_sends() -> None:
    known = {
        *sent(),
        *("ping", "client|setname", "cluster|slots", "multi", "exec", "discard", "eval", "evalsha", "setrange"),
    }
    # Commands of options, of readers of event groups, and reads beside those of the store's own.
    known |= {"wait", "waitaof", "xgroup|create", "xgroup|delconsumer"}
    assert {command for role in ROLES for command in commands_of(role, (8, 0))} - known == set()


def test_each_name_in_the_table_is_a_user() -> None:
    names = {name for access in ROLES.values() for name in access.names} | {"tools", "all"}
    assert {name for spec in KEYS for name in (*spec.writers.split(", "), *spec.readers.split(", "))} <= names


def test_patterns_of_rows() -> None:
    found = {spec.name: patterns_of(spec) for spec in KEYS}
    assert found["jobs"] == ("salt:jobs",)
    assert found["last_jid"] == ("*:*.*",)
    assert found["changed"] == ("salt:grains:changed", "salt:pillar:changed")
    assert found["minion_keys"] == tuple(
        f"salt:keys:{state}" for state in ("accepted", "pending", "rejected", "denied")
    )
    assert found["own_job"] == ("salt:own:*:*",)


def test_a_role_writes_or_reads_a_pattern() -> None:
    for role in ROLES:
        written, read = keys_of(role)
        assert not set(written) & set(read)
        assert keys.WRITE_PROBE in written


@pytest.mark.parametrize(("version", "found"), [((6, 2), False), ((7, 0), True), ((8, 0), True)])
def test_versions_of_redis(version: tuple[int, int], found: bool) -> None:
    rules = rules_of("mworker", version)
    assert any(rule.startswith("%R~") for rule in rules) is found
    assert ("+waitaof" in rules) is (version >= (7, 2))


def test_names_in_a_cluster() -> None:
    rules = rules_of("mworker", (7, 0), in_cluster=True)
    assert {"~{salt}:jobs", "~{salt}ret:*", "~salt:large:{*}", "~{salt}:absent"} <= set(rules)
    assert "~salt:jobs" not in rules


def test_a_file_with_one_user_for_all_roles() -> None:
    lines = acl_file({"default": ["a", "b"]}, (7, 0)).decode().splitlines()
    assert lines[0].startswith("user default on #")
    assert lines[0].endswith(" ~* &* +@all")
    assert lines[0].count("#") == 2
    assert len(lines) == 2

"""Secrets that a log at the finest level would show: in pillar, in rendered SLS, in arguments of states and jobs, in commands."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.model import log_text
from statecore.model.log_levels import GARBAGE
from statecore.model.values import MASK
from statecore.runtime.runtime import local_runtime

SECRET = "hunter2-swordfish"

PILLAR = f"""
db: {{user: bob, password: {SECRET}, url: 'mysql://bob:{SECRET}@db/x'}}
tokens: [{{token: {SECRET}}}]
psk: {SECRET}
tls: {{key: {SECRET}}}
"""

#: Attack: (SLS that is run, or function and arguments of a job).
ATTACKS: Mapping[str, Any] = {
    "pillar alone": "x: test.nop\n",
    "a password in a command": "x:\n  cmd.run:\n    - name: 'echo {{ pillar.db.password }}'\n",
    "a password in a failing command": "x:\n  cmd.run:\n    - name: 'echo {{ pillar.db.password }}; exit 3'\n",
    "a password in the SLS itself": f"x:\n  user.present:\n    - password: {SECRET}\n",
    "a password that a state reports": f"x:\n  test.configurable_test_state:\n    - comment: {SECRET}\n    - password: {SECRET}\n",
    "standard input": f"x:\n  cmd.run:\n    - name: 'true'\n    - stdin: {SECRET}\n",
    "the environment": f"x:\n  cmd.run:\n    - name: env\n    - env: {{DB_PASSWORD: {SECRET}}}\n",
    "no_log": f"x:\n  cmd.run:\n    - name: 'echo {SECRET}'\n    - no_log: True\n",
    "a quiet command": f"'echo {SECRET}':\n  cmd.run:\n    - output_loglevel: quiet\n",
    "a requisite on a quiet command": f"'echo {SECRET}':\n  cmd.run:\n    - output_loglevel: quiet\n"
    f"y:\n  test.nop:\n    - require: [cmd: 'echo {SECRET}']\n",
    "hidden output": f"x:\n  cmd.run:\n    - name: 'echo {SECRET}'\n    - hide_output: True\n    - output_loglevel: quiet\n",
    "an SLS with an error": "x:\n  cmd.nothing:\n    - name: '{{ pillar.db.password }}'\n",
    "a job's argument": ("test.kwarg", [], {"password": SECRET}),
    "a job's pillar": ("state.apply", ["plain"], {"pillar": {"more": {"password": SECRET}}}),
    "a job's quiet command": ("cmd.run", [f"echo {SECRET}"], {"output_loglevel": "quiet"}),
    "a job's positional password": ("shadow.gen_password", [SECRET], {}),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_log_has_no_secret(attack: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(GARBAGE)
    given = ATTACKS[attack]
    fun, args, kwargs = ("state.apply", ["attack"], {}) if isinstance(given, str) else given
    for name, text in {
        "states/attack.sls": given if isinstance(given, str) else "",
        "states/plain.sls": "x: test.nop\n",
        "pillar/top.sls": "base: {'*': [data]}\n",
        "pillar/data.sls": PILLAR,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    opts = {
        "id": "web1",
        "cachedir": str(tmp_path / "cache"),
        "file_roots": {"base": [str(tmp_path / "states")]},
        "pillar_roots": {"base": [str(tmp_path / "pillar")]},
    }
    local_runtime(opts, grains={"id": "web1", "os": "Debian"}).call(fun, args, kwargs)
    assert f"Executing function {fun}" in caplog.text
    assert SECRET not in caplog.text


#: Attack: command -> its form in the log, None: without the secret.
COMMANDS: Mapping[str, tuple[Any, str]] = {
    "an option with =": (["x", f"--password={SECRET}"], f"x --password={MASK}"),
    "an option and its value": (["x", "--db-password", SECRET, "y"], f"x --db-password {MASK} y"),
    "usermod": (["/usr/sbin/usermod", "-p", SECRET, "bob"], f"/usr/sbin/usermod -p {MASK} bob"),
    "mysql": (["mysql", f"-p{SECRET}", "x"], f"mysql -p{MASK} x"),
    "rabbitmqctl": (["rabbitmqctl", "add_user", "bob", SECRET], f"rabbitmqctl {MASK}"),
    "a URL": (["git", "clone", f"https://bob:{SECRET}@x/y"], f"git clone https://bob:{MASK}@x/y"),
    "SQL": (["psql", "-c", f"ALTER ROLE bob PASSWORD '{SECRET}'"], f"psql -c 'ALTER ROLE bob PASSWORD {MASK}'"),
    "a text": (f"PGPASSWORD={SECRET} psql --token {SECRET}", f"PGPASSWORD={MASK} psql --token {MASK}"),
    "a shell": (["sh", "-c", f"x --secret='{SECRET}'"], f"sh -c x --secret={MASK}"),
    "curl": (["curl", "-u", f"bob:{SECRET}", "http://x"], f"curl -u {MASK} http://x"),
}


@pytest.mark.parametrize("level", [logging.ERROR, logging.WARNING])
def test_a_failed_command_shows_its_program_only(level: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At the levels that are logged everywhere no word of the command is shown: it may be a password."""
    caplog.set_level(level)
    runtime = local_runtime({"id": "web1", "cachedir": str(tmp_path)}, grains={"id": "web1"})
    runtime.call("cmd.run", [f"false -p{SECRET}"])
    runtime.call("cmd.run", [["false", f"-p{SECRET}"]])
    runtime.call("state.single", ["cmd.run", f"false --password {SECRET}"])
    runtime.close()
    assert caplog.text.count("Command 'false' failed with return code: 1") == 3
    assert SECRET not in caplog.text


@pytest.mark.parametrize("attack", COMMANDS)
def test_commands_are_logged_without_passwords(attack: str) -> None:
    command, shown = COMMANDS[attack]
    assert log_text.command_text(command) == shown


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "command", ["ls -l /root", "echo a=b password is", "apt-get -q -y -o DPkg::Options=--force install x"]
)
def test_other_commands_are_logged_as_they_are(command: str) -> None:
    assert log_text.command_text(command) == command
    assert log_text.command_text(command.split()) == command


def test_decrypted_pillar_shows_its_keys_only() -> None:
    assert log_text.keys_text({"a": {"b": [SECRET, 5, True]}}) == f"a:\n  b:\n  - '{MASK}'\n  - '{MASK}'\n  - true"


@pytest.mark.ordinary
def test_a_long_text_is_cut() -> None:
    assert log_text.clipped("x" * 20_005).endswith("x\n... (5 characters more)")


@pytest.mark.ordinary
def test_secrets_of_a_closed_runtime_are_forgotten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    opts = {"id": "web1", "cachedir": str(tmp_path)}
    runtime = local_runtime(opts, grains={"id": "web1"}, pillar={"password": "closed-then"})
    assert runtime.pillar
    logging.getLogger("x").info("first closed-then")
    runtime.close()
    logging.getLogger("x").info("second closed-then")
    assert (f"first {MASK}" in caplog.text, "second closed-then" in caplog.text) == (True, True)

"""Logs of real processes at the level debug: what they tell of a job, with its JID, and what they keep to themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.roles.lab import Lab, until

pytestmark = pytest.mark.roles

SECRET = "hunter2-swordfish"


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab whose processes all log at the level debug."""
    lab = Lab(tmp_path_factory.mktemp("logs"), options={"log_level": "debug"}, secrets={SECRET})
    for minion in lab.minions:
        path = lab.root / "minions" / minion / "minion"
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "log_level": "debug"}))
    (lab.tree / "pillar/login.sls").write_text(f"login: {{user: bob, password: {SECRET}}}\n")
    top = lab.tree / "pillar/top.sls"
    data = yaml.safe_load(top.read_text())
    data["base"].setdefault("*", []).append("login")
    top.write_text(yaml.safe_dump(data))
    (lab.tree / "salt/told.sls").write_text(
        "kept:\n  file.managed:\n    - name: /etc/login\n    - contents: '{{ pillar.login.user }} {{ pillar.login.password }}'\n"
        "failed:\n  test.fail_without_changes: []\n"
    )
    try:
        lab.start_all()
        yield lab
    finally:
        lab.close()


def _lines(text: str, pattern: str) -> list[str]:
    return [line for line in text.splitlines() if re.search(pattern, line)]


def test_a_job_is_told_by_everybody_with_its_jid(talkative: Lab) -> None:
    lab = talkative
    done = lab.run("salt", "-l", "debug", "--show-jid", "--out", "json", "--static", "web1", "state.apply", "told")
    assert done.code == 1
    (jid,) = set(re.findall(r"\b20\d{18}\b", "\n".join(_lines(done.err, "^jid"))))
    assert _lines(done.err, r"\[DEBUG +\] request publish to tcp://127.0.0.1:\d+: \{.*'fun': 'state.apply'")
    assert _lines(done.err, rf"\[DEBUG +\] event salt/job/{jid}/ret/web1")
    of_job = rf"\[jid={jid}"
    until(lambda: _lines(lab.log("web1"), rf"State failed of.*{of_job}"), 10, "the end of the run in the minion's log")
    minion = lab.log("web1")
    for pattern in (
        rf"INFO.*Executing state file\.managed for \[/etc/login\] {of_job}",
        rf"INFO.*Completed state \[/etc/login\] with result True .*{of_job}",
        rf"ERROR.*State failed of SLS told \(test\.fail_without_changes\) failed: Failure! {of_job}",
        rf"DEBUG.*Rendered data of SLS 'told' .*{of_job}",
        rf"DEBUG.*Pillar \(saltenv .*{of_job}",
        rf"DEBUG.*request _pillar to tcp://.*{of_job}",
        rf"DEBUG.*answer to _pillar after .*{of_job}",
        rf"INFO.*Fetched salt://told\.sls .*{of_job}",
    ):
        assert _lines(minion, pattern), pattern
    worker = lab.log("mworker")
    assert _lines(worker, r"DEBUG.*request publish \(fun state\.apply, tgt web1\)")
    assert _lines(worker, r"DEBUG.*request _return .*\[jid=" + jid)
    assert _lines(worker, r"DEBUG.*answered _pillar: ok, after [\d.]+ ms")
    assert _lines(lab.log("publisher"), rf"INFO.*published state\.apply {of_job}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("salt-run", "-l", "debug", "test.arg", "password=hunter2-swordfish"),
            r"request runner to tcp://.*'fun': 'test.arg'",
        ),
        (("salt-key", "--log-level", "debug", "-L"), r"request wheel to tcp://.*'key.list_all'"),
        (("salt-cp", "-l", "debug", "web1", __file__, "/etc/copied"), r"request publish to tcp://"),
    ],
)
def test_operators_commands_tell_their_requests(talkative: Lab, words: tuple[str, ...], says: str) -> None:
    done = talkative.run(*words)
    assert _lines(done.err, rf"\[DEBUG +\] {says}"), done.err
    assert SECRET not in done.err


def test_a_command_logs_into_a_file(talkative: Lab, tmp_path: Path) -> None:
    path = tmp_path / "salt.log"
    done = talkative.ok("salt", "--log-file", str(path), "--log-file-level", "debug", "web1", "test.ping")
    assert done.err == ""
    assert "request publish" in path.read_text()


def test_nobody_logs_a_secret(talkative: Lab) -> None:
    talkative.salt("*", "pillar.items")
    talkative.call("web1", "-l", "debug", "state.apply", "told")
    talkative.salt("web1", "test.kwarg", f"password={SECRET}")
    for path in sorted((talkative.root / "log").iterdir()):
        found = [line for line in path.read_text(errors="replace").splitlines() if SECRET in line]
        assert not found, (path.name, found[:3])

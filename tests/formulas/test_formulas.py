"""Ten formulas leave equal hosts: files, packages, users, units; test mode tells the truth; a second run changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .conftest import Applied, Caller, Figures, Returns, applied
from .snapshots import differences, line_differences

pytestmark = [pytest.mark.formulas, pytest.mark.oracle, pytest.mark.timeout(9000)]


@dataclass(frozen=True)
class Case:
    """A formula: what is applied, and what besides files, packages, users and units is compared (name -> shell command)."""

    sls: str
    states: int
    probes: Mapping[str, str] = field(default_factory=dict)
    #: State ids that a second run changes again, and why.
    again: Mapping[str, str] = field(default_factory=dict)


_PSQL = "su postgres -c \"psql -XAtc '%s'\""

CASES: Mapping[str, Case] = {
    "webserver": Case("webserver", 15, {"configuration": "nginx -T 2>&1"}),
    "database": Case(
        "database",
        15,
        {
            "roles": _PSQL % "select rolname, rolcanlogin, rolcreatedb, rolsuper, rolinherit from pg_roles",
            "databases": _PSQL % "select datname, datdba::regrole, datacl, encoding from pg_database",
            "schemas": "su postgres -c 'pg_dumpall --schema-only --no-role-passwords' | grep -v restrict",
            "settings": _PSQL % "select name, setting from pg_file_settings where applied",
            "password": "PGPASSWORD=sEcret-1 psql -XAt -h 127.0.0.1 -U shop shop -c 'select 1'",
        },
    ),
    "accounts": Case("accounts", 18),
    "ssh": Case("openssh", 10, {"effective": "sshd -T; sshd -T -C user=deploy,host=h,addr=192.0.2.1"}),
    "firewall": Case(
        "firewall",
        15,
        {
            "rules": "iptables-save | grep -v '^#' | sed 's/\\[[0-9:]*\\]//'",
            "sysctl": "sysctl net.ipv4.ip_forward net.ipv4.conf.all.rp_filter net.ipv4.tcp_syncookies",
        },
    ),
    "scheduling": Case("scheduling", 15, {"tables": "crontab -l; crontab -l -u backup-runner"}),
    "mounts": Case(
        "mounts",
        8,
        {
            "mounts": "findmnt --raw --noheadings -o TARGET,FSTYPE,OPTIONS -t tmpfs,overlay | grep /srv | sed s/,lowerdir.*//"
        },
    ),
    "certificates": Case(
        "certificates",
        10,
        {
            name: f"openssl x509 -noout -subject -issuer -ext basicConstraints,keyUsage,extendedKeyUsage,subjectAltName "
            f"-in /etc/pki/example/{name}.crt; "
            f"openssl verify -CAfile /etc/pki/example/authority.crt /etc/pki/example/{name}.crt; "
            f"openssl x509 -noout -pubkey -in /etc/pki/example/{name}.crt | openssl pkey -pubin -noout -text | head -1"
            for name in ("authority", "www.example.org", "db.example.org")
        },
    ),
    "containers": Case(
        "containers",
        10,
        {
            "containers": "docker ps --format '{{.Names}} {{.Image}} {{.Command}}'",
            "inspected": "docker inspect -f '{{.Config.Env}} {{.Config.Cmd}} {{.HostConfig.NetworkMode}}' index",
            "images": "docker images --format '{{.Repository}}:{{.Tag}} {{.Size}}'",
        },
    ),
    "application": Case(
        "application",
        12,
        {
            "answer": "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8000\").read().decode())'",
            "commit": "git -c safe.directory=* -C /srv/shop/code log -1 --format='%H %D'",
            "schema": "stat -c '%U %G %a' /srv/shop/schema; cat /srv/shop/schema",
        },
    ),
}


@dataclass(frozen=True)
class Both:
    """One formula, applied by both."""

    name: str
    case: Case
    ours: Applied
    salt: Applied


@pytest.fixture(scope="module", params=CASES)
def both(
    request: pytest.FixtureRequest,
    base: Path,
    callers: Mapping[str, Caller],
    tmp_path_factory: pytest.TempPathFactory,
    figures: Figures,
) -> Both:
    """One formula after the other, applied by both."""
    name = request.param
    case = CASES[name]
    told = applied(base, tmp_path_factory.mktemp("machines"), callers, name, case.sls, case.probes)
    ours, salt = told["ours"], told["salt"]
    times = {who: ", ".join(f"{each:.1f}" for each in one.seconds.values()) for who, one in told.items()}
    changed = sum(bool(entry["changes"]) for entry in ours.first.values())
    surprises = f"{len(_surprises(ours))} / {len(_surprises(salt))}"
    figures.rows.append(
        f"| {name} | {len(ours.first)} | {changed} | {surprises} | {len(ours.after)} | {times['ours']} | {times['salt']} |"
    )
    return Both(name, case, ours, salt)


def _none(lines: list[str]) -> None:
    """Fail with all lines, if there are any."""
    assert not lines, "\n".join(lines)


def _failed(returns: Returns) -> dict[str, str]:
    return {tag: entry["comment"] for tag, entry in returns.items() if entry["result"] is False}


def test_every_state_succeeds(both: Both) -> None:
    for one in (both.salt, both.ours):
        _none([f"{tag}: {comment}" for tag, comment in _failed(one.first).items()])
        _none([f"{tag}: {comment}" for tag, comment in _failed(one.second).items()])
    assert len(both.ours.first) >= both.case.states


def test_test_mode_fails_only_where_salts_does(both: Both) -> None:
    """A state whose program is installed by the formula itself cannot be tested before."""
    theirs = _failed(both.salt.tested)
    _none([f"{tag}: {comment}" for tag, comment in _failed(both.ours.tested).items() if tag not in theirs])


#: An id that a program prints and that is another one each time.
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def _plain(value: Any) -> Any:
    """A value of a return without process ids, times and digests of what was just made."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != "pid"}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return _DIGEST.sub("DIGEST", value) if isinstance(value, str) else value


def _entry(tag: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    changes = _plain(entry["changes"])
    if tag.endswith("|-directory"):
        # docs/differences.md: Salt names the attributes of what it changed last a second time, without its path.
        changes = {path: change for path, change in changes.items() if path.startswith("/")}
    return {"result": entry["result"], "comment": _plain(entry["comment"]), "changes": changes}


def _shown(returns: Returns) -> dict[str, Any]:
    """Result, comment and changes of each state. A failed one shows its result alone: Salt's words hold Python's.

    docs/differences.md: in Salt the states of x509 add an entry of ``file.managed``; ours have its changes.
    """
    own = {entry["__id__"] for tag, entry in returns.items() if tag.startswith("x509_")}
    return {
        tag: _entry(tag, entry) if entry["result"] is not False else {"result": False}
        for tag, entry in returns.items()
        if not (tag.startswith("file_") and entry["__id__"] in own)
    }


@pytest.mark.parametrize("run", ["tested", "first", "second"])
def test_returns_are_salts(both: Both, run: str) -> None:
    ours, salts = _shown(getattr(both.ours, run)), _shown(getattr(both.salt, run))
    # Where Salt's test mode fails, ours may know better.
    known = [tag for tag in salts if run != "tested" or salts[tag]["result"] is not False]
    _none(differences({tag: ours.get(tag) for tag in known}, {tag: salts[tag] for tag in known}))
    assert list(ours) == list(salts)


def test_files_are_equal(both: Both) -> None:
    _none(differences(both.ours.after, both.salt.after))
    # The comparison has something to compare: the formula changed files.
    assert differences(both.ours.before, both.ours.after)


def test_packages_users_and_units_are_equal(both: Both) -> None:
    _none(line_differences(both.ours.facts, both.salt.facts))
    assert all(both.ours.facts[name] for name in both.case.probes)


def test_test_mode_changes_nothing(both: Both) -> None:
    _none(differences(both.ours.before, both.ours.after_test))
    _none(line_differences(both.ours.facts_before, both.ours.facts_after_test))


def _surprises(one: Applied) -> dict[str, str]:
    """States of which the run does another thing than test mode announced."""
    return {
        tag: f"announced as {tested.get('result')}, changes {entry['changes']}"
        for tag, entry in one.first.items()
        if ((tested := one.tested.get(tag, {})).get("result") is None) != bool(entry["changes"])
    }


def test_test_mode_tells_the_truth(both: Both) -> None:
    """The run does what test mode announced. Where Salt cannot know it (a package that is not there yet), ours need not."""
    theirs = _surprises(both.salt)
    _none([f"{tag}: {what}" for tag, what in _surprises(both.ours).items() if tag not in theirs])


def test_second_run_changes_nothing(both: Both) -> None:
    again = {entry["__id__"] for entry in both.ours.second.values() if entry["changes"]}
    assert again == set(both.case.again)
    _none(differences(both.ours.after, both.ours.after_second))

"""Ten formulas leave equal hosts: files, packages, users, units; test mode tells the truth; a second run changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .conftest import Applied, Caller, Figures, Returns, applied
from .snapshots import differences, line_differences

pytestmark = [pytest.mark.formulas, pytest.mark.oracle, pytest.mark.timeout(1800)]


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
            "schemas": "su postgres -c 'pg_dumpall --schema-only --no-role-passwords'",
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
    "mounts": Case("mounts", 8, {"mounts": "findmnt --raw --noheadings -o TARGET,FSTYPE,OPTIONS -t tmpfs,overlay | grep /srv"}),
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
) -> Iterator[Both]:
    """One formula after the other, applied by both."""
    name = request.param
    case = CASES[name]
    told = applied(base, tmp_path_factory.mktemp("machines"), callers, name, case.sls, case.probes)
    ours, salt = told["ours"], told["salt"]
    times = {who: ", ".join(f"{each:.1f}" for each in one.seconds.values()) for who, one in told.items()}
    changed = sum(bool(entry["changes"]) for entry in ours.first.values())
    figures.rows.append(f"| {name} | {len(ours.first)} | {changed} | {len(ours.after)} | {times['ours']} | {times['salt']} |")
    yield Both(name, case, ours, salt)


def _none(lines: list[str]) -> None:
    """Fail with all lines, if there are any."""
    assert not lines, "\n".join(lines)


def _failed(returns: Returns) -> list[str]:
    return [f"{tag}: {entry['comment']}" for tag, entry in returns.items() if entry["result"] is False]


def test_every_state_succeeds(both: Both) -> None:
    for one in (both.salt, both.ours):
        _none(_failed(one.tested))
        _none(_failed(one.first))
        _none(_failed(one.second))
    assert len(both.ours.first) >= both.case.states


def _plain(value: Any) -> Any:
    """A value of a return without process ids and times."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != "pid"}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _shown(returns: Returns) -> dict[str, Any]:
    return {tag: {key: _plain(entry[key]) for key in ("result", "comment", "changes")} for tag, entry in returns.items()}


@pytest.mark.parametrize("run", ["tested", "first", "second"])
def test_returns_are_salts(both: Both, run: str) -> None:
    _none(differences(_shown(getattr(both.ours, run)), _shown(getattr(both.salt, run))))


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


def test_test_mode_tells_the_truth(both: Both) -> None:
    """What the first run changes was announced, and nothing else was."""
    announced = {tag for tag, entry in both.ours.tested.items() if entry["result"] is None}
    changed = {tag for tag, entry in both.ours.first.items() if entry["changes"]}
    assert sorted(announced) == sorted(changed)


def test_second_run_changes_nothing(both: Both) -> None:
    again = {entry["__id__"] for entry in both.ours.second.values() if entry["changes"]}
    assert again == set(both.case.again)
    _none(differences(both.ours.after, both.ours.after_second))



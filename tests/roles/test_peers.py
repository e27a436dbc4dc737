"""What minions ask of the master for others: jobs, runners, files; and what they may not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from saltern.kit.config.minion_options import load_minion
from saltern.minion.master.channel import Channel
from saltern.minion.master.identity import Identity
from tests.roles.conftest import NewLab
from tests.roles.lab import Lab

pytestmark = pytest.mark.roles

#: web2 signs for others: who may have a certificate by which of its policies.
POLICIES = """
x509_signing_policies:
  by_name: {minions: web1, signing_private_key: /etc/ca.key, signing_cert: /etc/ca.crt, CN: named}
  by_grain: {minions: 'G@id:web1 and not web2', signing_private_key: /etc/ca.key, signing_cert: /etc/ca.crt}
  for_others: {minions: 'G@id:db1', signing_private_key: /etc/ca.key, signing_cert: /etc/ca.crt}
"""

SSH_POLICIES = """
ssh_signing_policies:
  by_name: {minions: web1, signing_private_key: /etc/ssh_ca.key, cert_type: host, key_id: named, all_principals: true}
  for_others: {minions: db1, signing_private_key: /etc/ssh_ca.key, cert_type: host, all_principals: true}
"""

CERTIFICATE = """
{%- for policy in ('by_name', 'by_grain', 'for_others') %}
/etc/{{ policy }}.crt:
  x509.certificate_managed:
    - ca_server: web2
    - signing_policy: {{ policy }}
    - private_key: /etc/own.key
{%- endfor %}
"""

CERTIFICATE_OF_SSH = """
{%- for policy in ('by_name', 'for_others') %}
/etc/{{ policy }}.pub:
  ssh_pki.certificate_managed:
    - ca_server: web2
    - signing_policy: {{ policy }}
    - private_key: /etc/ssh_own.key
{%- endfor %}
"""


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One worker: what a minion's runner asks for must not wait behind the runner."""
    made = module_labs(
        options={
            "peer": {
                "web1": ["test.", "schedule.add", {"web2": [{"grains.get": {"args": ["id"]}}]}],
                "web.": ["x509.sign_remote_certificate", "ssh_pki.sign_remote_certificate"],
            },
            "peer_run": {
                "web1": ["manage.up", "test.arg", {"@wheel": ["key.list_all"]}],
                "web2": ["match.compound_matches"],
            },
            "file_recv": True,
            "file_recv_max_size": 1,
            "cachedir": str(tmp_path_factory.mktemp("cache")),
        }
    )
    pillar = made.tree / "pillar" / "web2.sls"
    pillar.write_text(pillar.read_text() + POLICIES + SSH_POLICIES)
    made.start_all()
    yield made
    assert made.tracebacks() == []


def test_a_minion_asks_others(lab: Lab) -> None:
    assert lab.salt("web1", "publish.publish", "*", "test.ping")["web1"] == {"web1": True, "web2": True}
    assert lab.salt("web1", "publish.publish", "web2", "grains.get", "id")["web1"] == {"web2": "web2"}
    full = lab.salt("web1", "publish.full_data", "web2", "test.kwarg", "[a=1, b=two]")["web1"]
    assert full["web2"]["ret"].items() >= {"a": 1, "b": "two"}.items()


def test_saltutil_on_minions(lab: Lab) -> None:
    told = lab.salt("web1", "saltutil.cmd", "web2", "grains.get", "[id]")["web1"]
    assert (told["web2"]["ret"], told["web2"]["retcode"]) == ("web2", 0)
    assert lab.salt("web1", "saltutil.runner", "manage.up")["web1"] == ["web1", "web2"]
    full = lab.salt("web1", "saltutil.runner", "test.arg", "[1]", "full_return=True")["web1"]
    assert (full["success"], full["return"]["args"]) == (True, [1])
    keys = lab.salt("web1", "saltutil.wheel", "key.list_all")["web1"]
    assert (keys["success"], keys["return"]["minions"]) == (True, ["web1", "web2"])
    for call, row in (
        (("saltutil.runner", "test.arg"), "`peer_run: {'web2$': [test.arg]}`"),
        (("saltutil.wheel", "key.list_all"), "`peer_run: {'web2$': [{'@wheel': [key.list_all]}]}`"),
        (("saltutil.cmd", "*", "cmd.run", "[id]"), "`peer: {'web2$': [cmd.run]}`"),
    ):
        answer = lab.run("salt", "--out", "json", "--static", "web2", *call)
        assert answer.code == 1
        assert row in answer.data["web2"]


def test_a_minion_is_answered_with_what_came_back(lab: Lab) -> None:
    """``minion_publish``, which no module sends: a job and its returns in one answer."""
    load = {"cmd": "minion_publish", "fun": "test.ping", "arg": [], "ret": "", "tgt_type": "glob", "timeout": 30}
    with as_minion(lab, "web1") as web1, as_minion(lab, "web2") as web2:
        assert web1.ask({**load, "id": "web1", "tgt": "*"}) == {"web1": True, "web2": True}
        full = web1.ask({**load, "id": "web1", "tgt": "web2", "form": "full"})
        assert (full["web2"]["ret"], full["web2"]["retcode"], full["web2"]["jid"]) == (True, 0, full["__jid__"])
        assert web1.ask({**load, "id": "web1", "tgt": "nobody"}) == {}
        # Not granted.
        assert web2.ask({**load, "id": "web2", "tgt": "*"}) == {}
    job = lab.runner("jobs.list_job", full["__jid__"])
    assert (job["User"], job["Minions"]) == ("web1", ["web2"])


def as_minion(lab: Lab, minion: str) -> Channel:
    """A connection of the minion's, beside its own."""
    options = load_minion(str(lab.root / "minions" / minion), env={})
    return Channel(options, Identity.load(minion, Path(options.pki_dir), options.keysize), None)


@pytest.mark.parametrize(
    "words",
    [
        ("web2", "publish.publish", "*", "test.ping"),
        ("web1", "publish.publish", "*", "grains.get", "id"),
        ("web1", "publish.publish", "web2", "grains.get", "os"),
        ("web1", "publish.publish", "web2", "publish.publish", "[web2, test.ping]"),
        ("web2", "publish.runner", "manage.up"),
        ("web1", "publish.runner", "jobs.active"),
    ],
)
def test_what_is_not_granted_is_not_done(lab: Lab, words: tuple[str, ...]) -> None:
    assert lab.salt(*words)[words[0]] == {}


def test_a_runner_that_needs_the_only_worker(lab: Lab) -> None:
    assert lab.salt("web1", "publish.runner", "manage.up")["web1"] == ["web1", "web2"]
    assert lab.salt("web1", "publish.runner", "test.arg", "[1, a=2]")["web1"] == {"args": [1], "kwargs": {"a": 2}}


def test_files_are_sent(lab: Lab) -> None:
    etc = lab.host("web1") / "etc"
    (etc / "large").write_bytes(b"x" * 600_000)
    assert lab.salt("web1", "cp.push", "/etc/large")["web1"] is True
    files = Path(lab.master_options.cachedir, "minions", "web1", "files")
    assert (files / "etc" / "large").read_bytes() == b"x" * 600_000
    (etc / "large").write_bytes(b"y" * 1_100_000)
    assert lab.salt("web1", "cp.push", "/etc/large", "upload_path=/too/large")["web1"] is False


def test_a_minion_signs_for_another(lab: Lab) -> None:
    lab.salt("web2", "x509.create_private_key", "path=/etc/ca.key", "algo=ec")
    lab.salt("web2", "x509.create_certificate", "path=/etc/ca.crt", "signing_private_key=/etc/ca.key", "CN=CA")
    lab.salt("web1", "x509.create_private_key", "path=/etc/own.key", "algo=ec")
    (lab.tree / "salt" / "signed.sls").write_text(CERTIFICATE)
    run = lab.run("salt", "--out", "json", "--static", "web1", "state.apply", "signed").data["web1"]
    found = {entry["name"]: (entry["result"], entry["comment"]) for entry in run.values()}
    assert found["/etc/by_name.crt"][0] is found["/etc/by_grain.crt"][0] is True, found
    assert found["/etc/for_others.crt"][0] is False
    assert "minion not permitted to use specified signing policy" in found["/etc/for_others.crt"][1]
    shown = lab.salt("web1", "x509.read_certificate", "/etc/by_name.crt")["web1"]
    assert shown["subject"]["CN"] == "named"
    again = lab.salt("web1", "state.apply", "signed", "exclude=[{id: /etc/for_others.crt}]")["web1"]
    assert all(entry["result"] and not entry["changes"] for entry in again.values())


def test_a_minion_signs_ssh_certificates_for_another(lab: Lab) -> None:
    lab.salt("web2", "ssh_pki.create_private_key", "path=/etc/ssh_ca.key", "algo=ed25519")
    lab.salt("web1", "ssh_pki.create_private_key", "path=/etc/ssh_own.key", "algo=ed25519")
    (lab.tree / "salt" / "ssh_signed.sls").write_text(CERTIFICATE_OF_SSH)
    run = lab.run("salt", "--out", "json", "--static", "web1", "state.apply", "ssh_signed").data["web1"]
    found = {entry["name"]: (entry["result"], entry["comment"]) for entry in run.values()}
    assert found["/etc/by_name.pub"][0] is True, found
    assert found["/etc/for_others.pub"][0] is False
    assert "minion not permitted to use specified signing policy" in found["/etc/for_others.pub"][1]
    assert lab.salt("web1", "ssh_pki.read_certificate", "/etc/by_name.pub")["web1"]["key_id"] == "named"
    again = lab.salt("web1", "state.apply", "ssh_signed", "exclude=[{id: /etc/for_others.pub}]")["web1"]
    assert all(entry["result"] and not entry["changes"] for entry in again.values())


def test_a_job_of_the_schedule_is_handed_on(lab: Lab) -> None:
    lab.salt(
        "web1", "schedule.add", "nightly", "function=test.arg", "cron=0 3 * * *", "job_args=[1]", "job_kwargs={a: 2}"
    )
    copied = lab.salt("web1", "schedule.copy", "nightly", "web2")["web1"]
    assert copied == {"result": True, "comment": "Copied Job nightly from schedule to minion(s).", "minions": ["web2"]}
    jobs = {name: lab.salt(name, "schedule.list", "return_yaml=False")[name]["nightly"] for name in lab.minions}
    assert jobs["web1"] == jobs["web2"]
    assert jobs["web2"]["args"] == [1]

"""``ssh_pki`` states: in test mode, applied and applied again; beside Salt in the same three runs.

A certificate of OpenSSH has chance in it, so the contents of files are compared by what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from statecore.system.ssh_certificates import desired, keys
from tests.statecore.builtin.modules.test_ssh_pki import FIXED, key_of, texts
from tests.statecore.builtin.states.played import conftest as played
from tests.statecore.builtin.states.played.conftest import Case

BY_CA = {"signing_private_key": "/etc/pki/ca.key", "private_key": "/etc/pki/one.key", "cert_type": "user"}
USER = {"name": "/etc/pki/c", **BY_CA, **FIXED, "valid_principals": ["ann"]}


def certificate(**more: Any) -> str:
    """A certificate that the arguments of ``USER`` describe, but for ``more``."""
    files = {"/etc/pki/ca.key": texts(1)[0].encode(), "/etc/pki/one.key": texts(2)[0].encode()}
    wanted = {name: value for name, value in {**USER, **more}.items() if name != "name" and value is not None}
    order = desired.certificate(lambda path: files[str(path)], wanted)
    assert order.signing_key is not None
    return order.desired.signed(order.signing_key).public_bytes().decode() + "\n"


def locked(number: int, passphrase: str) -> str:
    return keys.encoded_private(key_of(number), passphrase).decode()


PKI = {"etc/pki/ca.key": texts(1)[0], "etc/pki/one.key": texts(2)[0], "etc/pki/other.key": texts(3)[0]}
KEY = {"name": "/etc/pki/k", "algo": "ed25519"}
PUB = {"name": "/etc/pki/p", "public_key_source": "/etc/pki/one.key"}

#: Name -> (state, arguments, what the host has beside the keys, changes, comments in test mode and applied).
CASES: Mapping[str, tuple[str, dict[str, Any], dict[str, str], dict[str, Any], tuple[str, str]]] = {
    "a new key": (
        *("private_key_managed", KEY, {}, {"created": "/etc/pki/k"}),
        ("The private key would have been created", "The private key has been created"),
    ),
    "a key of another kind": (
        *("private_key_managed", {**KEY, "algo": "ec"}, {"etc/pki/k": texts(4)[0]}, {"algo": "ec"}),
        ("The private key would have been recreated", "The private key has been recreated"),
    ),
    "no key, overwritten": (
        *("private_key_managed", {**KEY, "overwrite": True}, {"etc/pki/k": "nonsense\n"}, {"replaced": "/etc/pki/k"}),
        ("The private key would have been recreated", "The private key has been recreated"),
    ),
    "a new certificate": (
        *("certificate_managed", USER, {}, {"created": "/etc/pki/c"}),
        ("The certificate would have been created", "The certificate has been created"),
    ),
    "no certificate": (
        *("certificate_managed", USER, {"etc/pki/c": "nonsense\n"}, {"replaced": "/etc/pki/c"}),
        ("The certificate would have been created", "The certificate has been created"),
    ),
    "another host": (
        "certificate_managed",
        {**USER, "cert_type": "host", "valid_principals": ["a.example.com"], "key_id": "web"},
        {"etc/pki/c": certificate(key_id="ann")},
        {
            "cert_type": "host",
            "key_id": {"old": "ann", "new": "web"},
            "principals": {"added": ["a.example.com"], "removed": ["ann"]},
        },
        ("The certificate would have been recreated", "The certificate has been recreated"),
    ),
    "all users": (
        "certificate_managed",
        {**USER, "valid_principals": None, "all_principals": True},
        {"etc/pki/c": certificate()},
        {"principals": {"added": "*ALL*", "removed": []}},
        ("The certificate would have been recreated", "The certificate has been recreated"),
    ),
    "no longer all users": (
        "certificate_managed",
        USER,
        {"etc/pki/c": certificate(valid_principals=None, all_principals=True)},
        {"principals": {"added": ["ann"], "removed": "*ALL*"}},
        ("The certificate would have been recreated", "The certificate has been recreated"),
    ),
    "other options": (
        "certificate_managed",
        {**USER, "extensions": {"permit-pty": True}, "critical_options": {"force-command": "/bin/b", "a": "1"}},
        {"etc/pki/c": certificate(extensions={"x": True}, critical_options={"force-command": "/bin/a"})},
        {
            "extensions": {"added": ["permit-pty"], "changed": [], "removed": ["x"]},
            "critical_options": {"added": ["a"], "changed": ["force-command"], "removed": []},
        },
        ("The certificate would have been recreated", "The certificate has been recreated"),
    ),
    "another signer, key and number": (
        "certificate_managed",
        {**USER, "signing_private_key": "/etc/pki/other.key", "private_key": "/etc/pki/ca.key", "serial_number": 7},
        {"etc/pki/c": certificate()},
        {"signing_private_key": True, "private_key": True, "serial_number": 7},
        ("The certificate would have been recreated", "The certificate has been recreated"),
    ),
    "a certificate that ended": (
        "certificate_managed",
        USER,
        {"etc/pki/c": certificate(not_after="2024-02-02 00:00:00")},
        {"expiration": True},
        ("The certificate would have been recreated", "The certificate has been recreated"),
    ),
    "a right certificate": (
        *("certificate_managed", USER, {"etc/pki/c": certificate()}, {}),
        ("The certificate is in the correct state", "The certificate is in the correct state"),
    ),
    "a certificate with any number": (
        *("certificate_managed", {**USER, "serial_number": None}, {"etc/pki/c": certificate()}, {}),
        ("The certificate is in the correct state", "The certificate is in the correct state"),
    ),
    "a public key": (
        *("public_key_managed", PUB, {}, {"created": "/etc/pki/p"}),
        ("The public key would have been created", "The public key has been created"),
    ),
    "another public key": (
        *("public_key_managed", PUB, {"etc/pki/p": texts(4)[1] + "\n"}, {"updated": "/etc/pki/p"}),
        ("The public key would have been updated", "The public key has been updated"),
    ),
    "the public key with a comment": (
        *("public_key_managed", PUB, {"etc/pki/p": texts(2)[1] + " ann@host\n"}, {}),
        ("The public key is in the correct state", "The public key is in the correct state"),
    ),
}

#: Name -> (state, arguments, what the host has beside the keys, comment): calls that fail in each phase.
FAILING: Mapping[str, tuple[str, dict[str, Any], dict[str, str], str]] = {
    "nonsense is no key": (
        *("private_key_managed", KEY, {"etc/pki/k": "nonsense\n"}),
        "The existing file does not seem to be a private key. Pass overwrite: true to force regeneration",
    ),
    "a size of ed25519": (
        *("private_key_managed", {**KEY, "keysize": 256}, {}),
        "keysize is an invalid parameter for ed25519",
    ),
    "a public key is no certificate": (
        *("certificate_managed", USER, {"etc/pki/c": texts(2)[1] + "\n"}),
        "The data decoded to a Ed25519PublicKey, not SSHCertificate",
    ),
    "nonsense is no public key": (
        *("public_key_managed", PUB, {"etc/pki/p": "nonsense\n"}),
        "Could not load OpenSSH public key.",
    ),
    "no principals": (
        *("certificate_managed", {**USER, "valid_principals": None}, {"etc/pki/c": certificate()}),
        "Must either set all_principals to true or specify principals to allow",
    ),
}


def case_of(name: str) -> Case:
    state, arguments, has, *_ = (CASES.get(name) or FAILING[name])[:3]
    given = {argument: value for argument, value in arguments.items() if value is not None}
    return Case(id=f"ssh/{name}", state=f"ssh_pki.{state}", args=given, have={**PKI, **has})


def expected(name: str) -> list[dict[str, Any]]:
    """result, changes and comment of each phase."""
    if name in FAILING:
        return [{"result": False, "changes": {}, "comment": FAILING[name][3]}] * 3
    state, _, _, changes, (would, does) = CASES[name]
    word = {"private_key_managed": "private key", "certificate_managed": "certificate"}.get(state, "public key")
    return [
        {"result": None if changes else True, "changes": changes, "comment": would},
        {"result": True, "changes": changes, "comment": does},
        {"result": True, "changes": {}, "comment": f"The {word} is in the correct state"},
    ]


def phases(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{key: told[phase][key] for key in ("result", "changes", "comment")} for phase in played.PHASES]


@pytest.mark.parametrize("name", [*CASES, *FAILING])
def test_case(name, tmp_path):
    played.write_tree(tmp_path / "tree")
    told = played.play(case_of(name), tmp_path / "host", tmp_path / "tree")
    assert phases(told) == expected(name)
    if (file := case_of(name).args["name"].lstrip("/")) in told["left"] and name in CASES:
        mode = {"private_key_managed": "0400"}.get(CASES[name][0], "0644")
        assert told["left"][file].partition(" ")[0] == mode
        assert told["left"][file].endswith("\n")


@pytest.mark.oracle
def test_cases_are_as_salt_has_them(oracle, tmp_path):
    names = [*CASES, *FAILING]
    salts = played.ask_salt(oracle.venv, tmp_path, [case_of(name) for name in names])
    told = {name: phases(salts[f"ssh/{name}"]) for name in names}
    assert {name: (told[name], expected(name)) for name in names if told[name] != expected(name)} == {}


@pytest.fixture
def host(plain):
    """The minion, with an authority in /pki."""
    (plain.root / "pki").mkdir()
    for name, number in (("ca", 1), ("one", 2)):
        (plain.root / f"pki/{name}.key").write_text(texts(number)[0])
    return plain


#: Present key, arguments -> changes, comment of the first run, whether the key stays.
LOCKS = {
    "locked": (texts(4)[0], {"passphrase": "p"}, {"passphrase": True}, "has been encrypted", True),
    "locked already": (locked(4, "p"), {"passphrase": "p"}, {}, "is in the correct state", True),
    "another lock": (
        *(locked(4, "p"), {"passphrase": "q", "overwrite": True}),
        *({"passphrase": True, "replaced": "/pki/k"}, "has been recreated", False),
    ),
    "no lock": (
        *(locked(4, "p"), {"overwrite": True}),
        *({"passphrase": True, "replaced": "/pki/k"}, "has been recreated", False),
    ),
}


@pytest.mark.parametrize("kind", LOCKS)
def test_a_key_is_locked(kind, host):
    before, wanted, changes, comment, stays = LOCKS[kind]
    (host.root / "pki/k").write_text(before)
    (host.root / "pki/k").chmod(0o400)
    told = host.state("ssh_pki.private_key_managed", name="/pki/k", algo="ed25519", **wanted)
    assert (told["changes"], told["comment"]) == (changes, f"The private key {comment}")
    again = host.state("ssh_pki.private_key_managed", name="/pki/k", algo="ed25519", **wanted)
    assert (again["result"], again["changes"]) == (True, {})
    public = host.call("ssh_pki.get_public_key", "/pki/k", passphrase=wanted.get("passphrase"))
    assert (public == texts(4)[1]) is stays


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"passphrase": "q"}, "The provided passphrase cannot decrypt the private key. Pass overwrite"),
        ({}, "The current key is encrypted with a passphrase. Pass overwrite"),
        ({"algo": "ed448"}, "Invalid algorithm specified for generating private key: ed448"),
        ({"more": 1}, "Unrecognized keyword arguments: ['more']"),
    ],
)
def test_a_key_that_cannot_be(wanted, says, host):
    (host.root / "pki/k").write_text(locked(4, "p"))
    old = (host.root / "pki/k").read_bytes()
    for test in (True, False):
        told = host.state("ssh_pki.private_key_managed", test=test, **{"name": "/pki/k", "algo": "ed25519", **wanted})
        assert (told["result"], told["changes"]) == (False, {})
        assert told["comment"].startswith(says)
    assert (host.root / "pki/k").read_bytes() == old


def test_a_source_that_an_earlier_state_makes(host):
    arguments = {"name": "/pki/p", "public_key_source": "/pki/later.key"}
    told = host.state("ssh_pki.public_key_managed", test=True, **arguments)
    assert told["result"] is None
    assert told["comment"].startswith(
        "The public key would have been created. Note that the source could not be loaded"
    )
    told = host.state("ssh_pki.public_key_managed", **arguments)
    assert (told["result"], told["comment"]) == (False, "there is no file /pki/later.key")
    certificate = {"name": "/pki/c", "signing_private_key": "/pki/ca.key", "private_key": "/pki/later.key"}
    certificate |= {"cert_type": "host", "all_principals": True}
    assert host.state("ssh_pki.certificate_managed", test=True, **certificate)["result"] is None
    assert host.state("ssh_pki.certificate_managed", **certificate)["result"] is False


def test_a_policy_of_this_minion(host):
    host.pillar["ssh_signing_policies"] = {
        "host": {"signing_private_key": "/pki/ca.key", "cert_type": "host", "all_principals": True, "max_ttl": "9d"}
    }
    arguments = {"name": "/pki/c", "private_key": "/pki/one.key", "signing_policy": "host", "key_id": "x"}
    assert host.state("ssh_pki.certificate_managed", **arguments)["changes"] == {"created": "/pki/c"}
    assert host.state("ssh_pki.certificate_managed", **arguments)["changes"] == {}
    assert host.call("ssh_pki.expires", "/pki/c", ttl="9d") is True
    assert host.state("ssh_pki.certificate_managed", ttl_remaining="10d", **arguments)["changes"] == {
        "expiration": True
    }


def test_a_copy_and_owner(host):
    (host.root / "copies").mkdir()
    arguments = {"name": "/pki/deep/c", **BY_CA, "all_principals": True, "serial_number": "FF", "makedirs": True}
    arguments |= {
        "signing_private_key": "/pki/ca.key",
        "private_key": "/pki/one.key",
        "copypath": "/copies",
        "mode": 600,
    }
    assert host.state("ssh_pki.certificate_managed", **arguments)["result"] is True
    made = (host.root / "pki/deep/c").read_text()
    assert (host.root / "copies/ff.crt").read_text() == made.rstrip("\n")
    told = serialization.load_ssh_public_identity(made.encode())
    assert told.serial == 255
    assert host.state("ssh_pki.certificate_managed", **arguments | {"mode": "0640"})["changes"] == {"mode": "0640"}

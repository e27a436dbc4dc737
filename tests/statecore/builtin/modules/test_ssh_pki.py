"""The module ``ssh_pki``. A certificate of OpenSSH has chance in it: what ours and Salt's make is compared as it is read."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from statecore.loader import Loader
from statecore.model.errors import CommandError, InvocationError, StatecoreError
from statecore.system.ssh_certificates import desired, policies

FIXED = {"serial_number": "0A:BC", "not_before": "2024-01-02 03:04:05", "not_after": "2099-01-02 03:04:05"}
USER = {**FIXED, "cert_type": "user", "signing_private_key": "CAKEY", "public_key": "PUB", "valid_principals": ["ann"]}

POLICIES = {
    "www": {
        "minions": "web*",
        "signing_private_key": "CAKEY",
        "cert_type": "host",
        "ttl": "30d",
        "max_ttl": "60d",
        "allowed_valid_principals": ["a.example.com", "b.example.com"],
        "default_valid_principals": ["a.example.com"],
        "key_id": "laid down",
    },
    "users": {
        "signing_private_key": "CAKEY",
        "cert_type": "user",
        "allowed_critical_options": ["source-address"],
        "critical_options": {"force-command": "/bin/id"},
        "allowed_extensions": ["permit-pty"],
        "default_extensions": {"permit-X11-forwarding": True, "permit-pty": True},
        "extensions": {"no-touch-required": True},
    },
    "all": {"signing_private_key": "CAKEY", "cert_type": "user", "all_principals": True},
}


def key_of(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def texts(number: int) -> tuple[str, str]:
    """(private key, public key) as OpenSSH writes them."""
    key = key_of(number)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return key.private_bytes(*form).decode(), public.decode()


def placed(value, marks):
    if isinstance(value, dict):
        return {key: placed(each, marks) for key, each in value.items()}
    if isinstance(value, list):
        return [placed(each, marks) for each in value]
    return marks.get(value, value) if isinstance(value, str) else value


@pytest.fixture
def host(plain):
    """The minion, with an authority in /pki."""
    (plain.root / "pki").mkdir()
    (ca, ca_public), (key, public) = texts(1), texts(2)
    (plain.root / "pki/ca.key").write_text(ca)
    (plain.root / "pki/one.key").write_text(key)
    plain.marks = {"CAKEY": ca, "CAPUB": ca_public, "KEY": key, "PUB": public}
    plain.marks["CERT"] = plain.call("ssh_pki.create_certificate", **placed(USER, plain.marks), key_id="ann")
    plain.pillar["ssh_signing_policies"] = placed(POLICIES, plain.marks)
    return plain


#: Arguments of certificates; ours has to be read as Salt's.
MADE = [
    USER,
    {**USER, "cert_type": "host", "valid_principals": ["a.example.com", "b.example.com"], "key_id": "web"},
    {**USER, "valid_principals": None, "all_principals": True},
    {**USER, "public_key": None, "private_key": "KEY"},
    {**USER, "serial_number": 7, "critical_options": {"force-command": "/bin/id", "verify-required": True}},
    {**USER, "extensions": {"permit-pty": True, "name@example.com": "value", "permit-X11-forwarding": False}},
    {**USER, "public_key": "PUB", "private_key": "KEY"},
    {**USER, "signing_policy": "users", "extensions": {"permit-pty": False, "permit-user-rc": True}},
    {**USER, "signing_policy": "users", "critical_options": {"source-address": "10.0.0.0/8", "verify-required": True}},
    {**USER, "signing_policy": "all", "valid_principals": None},
    {**USER, "signing_policy": "none"},
]

#: Calls whose returns have to be Salt's.
CALLS = [
    ["get_public_key", {"key": "KEY"}],
    ["get_public_key", {"key": "PUB"}],
    ["get_public_key", {"key": "CERT"}],
    ["get_private_key_size", {"private_key": "KEY"}],
    ["read_certificate", {"certificate": "CERT"}],
    ["verify_private_key", {"private_key": "KEY", "public_key": "CERT"}],
    ["verify_private_key", {"private_key": "CAKEY", "public_key": "CERT"}],
    ["verify_signature", {"certificate": "CERT", "signing_pub_key": "CAPUB"}],
    ["verify_signature", {"certificate": "CERT", "signing_pub_key": "CAKEY"}],
    ["verify_signature", {"certificate": "CERT", "signing_pub_key": "PUB"}],
    ["expires", {"certificate": "CERT"}],
    ["expires", {"certificate": "CERT", "ttl": "99999d"}],
    ["get_signing_policy", {"signing_policy": "www"}],
    ["get_signing_policy", {"signing_policy": "none"}],
]

#: Calls that both refuse in the same words.
REFUSED = [
    ["create_certificate", {"cert_type": "user", "public_key": "PUB"}],
    ["create_certificate", {**USER, "cert_type": "client"}],
    ["create_certificate", {**USER, "public_key": None}],
    ["create_certificate", {**USER, "valid_principals": None}],
    ["create_certificate", {**USER, "serial_number": "xyz"}],
    ["create_certificate", {**USER, "signing_private_key": "PUB"}],
    ["create_certificate", {**USER, "public_key": "xyz"}],
    ["create_private_key", {"keysize": 1024}],
    ["create_private_key", {"algo": "ec", "keysize": 2048}],
    ["encode_private_key", {"private_key": "PUB"}],
    ["encode_private_key", {"private_key": "KEY", "private_key_passphrase": "p"}],
    ["get_public_key", {"key": "xyz"}],
    ["read_certificate", {"certificate": "xyz"}],
    ["expires", {"certificate": "xyz"}],
]


def asked_of_salt(oracle, host, calls):
    asked = {"module": "ssh_pki", "option": "ssh_signing_policies"}
    asked |= {"policies": placed(POLICIES, host.marks), "calls": placed(calls, host.marks)}
    done = subprocess.run(
        [oracle.venv / "bin/python", Path(__file__).with_name("salt_certificates.py")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.oracle
def test_certificates_are_salts(host, oracle):
    salts = asked_of_salt(oracle, host, [["create_certificate", each] for each in MADE])
    wrong = []
    for arguments, (made, raised) in zip(MADE, salts, strict=True):
        assert raised is None, (arguments, raised)
        ours = host.call("ssh_pki.create_certificate", **placed(arguments, host.marks))
        both = [host.call("ssh_pki.read_certificate", each) for each in (ours, made)]
        if both[0] != both[1]:
            wrong.append((arguments, *both))
    assert wrong == []


@pytest.mark.oracle
def test_returns_are_salts(host, oracle):
    certificates = [host.call("ssh_pki.create_certificate", **placed(each, host.marks)) for each in MADE]
    calls = [*CALLS, *(["read_certificate", {"certificate": each}] for each in certificates)]
    wrong = []
    for (function, arguments), (salts, raised) in zip(calls, asked_of_salt(oracle, host, calls), strict=True):
        assert raised is None, (function, arguments, raised)
        ours = host.call(f"ssh_pki.{function}", **placed(arguments, host.marks))
        if ours != salts:
            wrong.append((function, arguments, ours, salts))
    assert wrong == []


@pytest.mark.oracle
def test_refusals_are_salts(host, oracle):
    for (function, arguments), (_, raised) in zip(REFUSED, asked_of_salt(oracle, host, REFUSED), strict=True):
        with pytest.raises(StatecoreError) as refused:
            host.call(f"ssh_pki.{function}", **placed(arguments, host.marks))
        assert str(refused.value) == raised.partition(": ")[2], (function, arguments)


@pytest.mark.parametrize(
    ("algo", "keysize", "size"),
    [("rsa", None, 3072), ("rsa", 2048, 2048), ("ec", None, 256), ("ec", 521, 521), ("ed25519", None, None)],
)
@pytest.mark.parametrize("passphrase", [None, "sesame"])
def test_a_key_of_every_kind_signs(algo, keysize, size, passphrase, host):
    made = host.call("ssh_pki.create_private_key", algo=algo, keysize=keysize, passphrase=passphrase)
    key, public = made["private_key"], made["public_key"]
    assert host.call("ssh_pki.get_private_key_size", key, passphrase=passphrase) == size
    certificate = host.call(
        "ssh_pki.create_certificate",
        cert_type="host",
        all_principals=True,
        signing_private_key=key,
        signing_private_key_passphrase=passphrase,
        public_key=public,
    )
    told = host.call("ssh_pki.read_certificate", certificate)
    assert (told["key_type"], told["key_size"], told["valid_principals"]) == (algo, size, "all")
    assert host.call("ssh_pki.verify_signature", certificate, public) is True
    assert host.call("ssh_pki.verify_private_key", key, certificate, passphrase=passphrase) is True
    for wrong in ("other", None) if passphrase else ("other",):
        with pytest.raises(InvocationError):
            host.call("ssh_pki.get_private_key_size", key, passphrase=wrong)


def test_a_key_is_encrypted_and_decrypted(host):
    locked = host.call("ssh_pki.encode_private_key", "/pki/one.key", passphrase="p")
    assert locked != host.marks["KEY"]
    plain = host.call("ssh_pki.encode_private_key", locked, private_key_passphrase="p")
    assert host.call("ssh_pki.get_public_key", plain) == host.marks["PUB"]
    with pytest.raises(InvocationError, match="Bad decrypt"):
        host.call("ssh_pki.encode_private_key", locked, private_key_passphrase="q")


def test_openssh_reads_them(host, tmp_path):
    """The dates, options and names of a certificate, as the program ssh-keygen tells them."""
    if not Path("/usr/bin/ssh-keygen").exists():
        pytest.skip("there is no ssh-keygen")
    (tmp_path / "cert.pub").write_text(host.marks["CERT"])
    done = subprocess.run(["ssh-keygen", "-L", "-f", tmp_path / "cert.pub"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[words.index("Serial:") :][:2] == ["Serial:", "2748"]
    assert {"ann", '"ann"', "user", "certificate"} <= set(words)


def test_a_certificate_without_an_end(host):
    order = desired.certificate(lambda each: str(each).encode(), placed(USER, host.marks))
    wanted = desired.WantedCertificate(
        **{name: getattr(order.desired, name) for name in order.desired.__slots__} | {"valid_before": 2**64 - 1}
    )
    endless = wanted.signed(key_of(1)).public_bytes().decode()
    assert host.call("ssh_pki.read_certificate", endless)["not_after"] == "forever"
    assert host.call("ssh_pki.expires", endless, ttl="1000d") is False


def test_files(host):
    assert host.call("ssh_pki.create_private_key", algo="ec", path="/pki/k") == "Private key written to /pki/k"
    assert (host.root / "pki/k").stat().st_mode & 0o777 == 0o600
    assert (host.root / "pki/k.pub").read_text() == host.call("ssh_pki.get_public_key", "/pki/k")
    with pytest.raises(CommandError, match="The file at /pki/k exists and overwrite was set to false"):
        host.call("ssh_pki.create_private_key", algo="ec", path="/pki/k")
    (host.root / "pki/k").chmod(0o644)
    host.call("ssh_pki.create_private_key", algo="ec", path="/pki/k", overwrite=True, pubkey_suffix=False)
    assert (host.root / "pki/k").stat().st_mode & 0o777 == 0o600
    assert (host.root / "pki/k.pub").read_text() != host.call("ssh_pki.get_public_key", "/pki/k")
    (host.root / "copies").mkdir()
    arguments = {**placed(USER, host.marks), "path": "/pki/c", "copypath": "/copies"}
    assert host.call("ssh_pki.create_certificate", **arguments) == "Certificate written to /pki/c"
    made = (host.root / "pki/c").read_text()
    assert {path.name: path.read_text() for path in (host.root / "copies").iterdir()} == {"abc.crt": made}
    with pytest.raises(CommandError, match="overwrite was set to false"):
        host.call("ssh_pki.create_certificate", **arguments)
    with pytest.raises(CommandError, match="there is no directory /none"):
        host.call("ssh_pki.create_certificate", **arguments | {"path": None, "copypath": "/none"})
    with pytest.raises(CommandError, match="there is no file /pki/none"):
        host.call("ssh_pki.get_public_key", "/pki/none")


#: What a call says against values that no certificate can have.
IMPOSSIBLE = {
    "a number too long": ({"serial_number": 2**64}, "the certificate cannot be made"),
    "dates in the wrong order": ({"not_after": "2023-01-01 00:00:00"}, "the certificate cannot be made"),
    "no date": ({"not_after": "soon"}, "not_after: time data 'soon'"),
    "no duration": ({"not_after": None, "ttl": "long"}, "ttl: Invalid time string format: long"),
    "no map": ({"extensions": ["permit-pty"]}, "extensions is a map"),
    "no text": ({"critical_options": {"force-command": 5}}, "critical_options: force-command is a text or true, not 5"),
    "a typo": ({"valid_principal": "ann"}, "Unrecognized keyword arguments: \\['valid_principal'\\]"),
    "no names": ({"valid_principals": 5}, "valid_principals is a list of names, not 5"),
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_what_cannot_be_a_certificate(kind, host):
    wrong, says = IMPOSSIBLE[kind]
    with pytest.raises(InvocationError, match=says):
        host.call("ssh_pki.create_certificate", **placed({**USER, **wrong}, host.marks))


#: Policy, what is asked for -> what of it is granted.
LIMITS = {
    "a name that is allowed": (
        {"allowed_valid_principals": ["a", "b"]},
        {"valid_principals": ["b", "x"]},
        {"valid_principals": ["b"], "all_principals": None},
    ),
    "all names": (
        {"allowed_valid_principals": ["a", "b"], "default_valid_principals": ["a"]},
        {"all_principals": True},
        {"valid_principals": ["a", "b"], "all_principals": None},
    ),
    "no name that is allowed, and all": (
        {"valid_principals": []},
        {"valid_principals": ["root"], "all_principals": True},
        {"valid_principals": [], "all_principals": None},
    ),
    "options": (
        {"allowed_critical_options": ["a"], "default_critical_options": {"d": "1"}, "critical_options": {"f": "1"}},
        {"critical_options": {"a": "2", "x": "2", "f": "2"}},
        {"critical_options": {"d": "1", "a": "2", "f": "1"}},
    ),
    "a longer time": (
        {"max_ttl": "1h"},
        {"not_before": "2024-01-01 00:00:00", "ttl": "2h"},
        {"not_before": "2024-01-01 00:00:00", "not_after": "2024-01-01 01:00:00", "ttl": 3600.0},
    ),
    "a later end": (
        {"ttl": 60, "max_ttl": "1h"},
        {"not_before": "2024-01-01 00:00:00", "not_after": "2025-01-01 00:00:00"},
        {"not_before": "2024-01-01 00:00:00", "not_after": "2024-01-01 01:00:00", "ttl": 3600.0},
    ),
    "no time": (
        {"ttl": "1m", "max_ttl": "1h"},
        {"not_before": "2024-01-01 00:00:00"},
        {"not_before": "2024-01-01 00:00:00", "not_after": "2024-01-01 00:01:00", "ttl": 60.0},
    ),
    "the signer's own": (
        {"signing_private_key": "/ca", "copypath": "/copies", "minions": "*"},
        {"signing_private_key": "/etc/shadow"},
        {"signing_private_key": "/ca"},
    ),
}


@pytest.mark.parametrize("kind", LIMITS)
def test_a_policy_limits(kind):
    policy, asked, granted = LIMITS[kind]
    found = policies.merged(policy, asked)
    assert {name: value for name, value in found.items() if value != {}} == granted


def test_another_minion_signs(host):
    def asked(policy, given, only=False, asking="web1"):
        return host.call("ssh_pki.sign_remote_certificate", policy, given, only, __pub_id=asking)

    public = host.marks["PUB"].encode()
    signed = asked("www", {"public_key": public, "valid_principals": ["b.example.com"], "all_principals": True})
    assert signed["errors"] == []
    told = host.call("ssh_pki.read_certificate", signed["data"])
    assert (told["cert_type"], told["key_id"], told["valid_principals"]) == ("host", "laid down", ["b.example.com"])
    shown = asked("www", {}, only=True)["data"]
    assert shown["signing_public_key"] == host.marks["CAPUB"].encode()
    assert not {"signing_private_key", "minions"} & shown.keys()
    for policy, given, asking, says in (
        ("none", {}, "web1", "signing_policy must be specified and defined on signing minion"),
        ("www", {}, "db1", "minion not permitted to use specified signing policy"),
        ("www", {}, None, "minion sending this request could not be identified"),
        ("www", {"public_key": "/pki/one.key"}, "web1", "public_key: give the content, not a path"),
        ("www", {"private_key": "/pki/one.key"}, "web1", "Need public_key or private_key"),
        ("www", {"public_key": public, "more": 1}, "web1", "Unrecognized keyword arguments: ['more']"),
    ):
        found = host.call(
            "ssh_pki.sign_remote_certificate", policy, given, **({} if asking is None else {"__pub_id": asking})
        )
        assert found["data"] is None
        assert found["errors"][0].startswith(says)


def test_fingerprints_are_of_the_key(host):
    told = host.call("ssh_pki.read_certificate", host.marks["CERT"])
    assert told["issuer_public_key"] == host.marks["CAPUB"]
    assert len(base64.b64decode(told["public_key_fingerprints"]["sha256"])) == 32
    assert told["public_key_fingerprints"]["md5"].count(":") == 15


#: What a user's module does with ``salt.utils.sshpki``.
BACKEND = """
import salt.utils.sshpki as sshpki

def get_signing_policy(name, ca_server=None, **kwargs):
    ca = sshpki.load_privkey("{directory}/pki/ca.key")
    return {{"cert_type": "host", "all_principals": True, "signing_public_key": sshpki.encode_public_key(ca.public_key())}}

def create_certificate(**kwargs):
    ca = "{directory}/pki/ca.key"
    policy = {{"signing_private_key": "/pki/ca.key", "cert_type": "host", "all_principals": True}}
    given = {{name: value for name, value in kwargs.items() if name in ("private_key", "key_id")}}
    made = __salt__["ssh_pki.create_certificate"](**sshpki.merge_signing_policy(policy, given))
    assert sshpki.verify_signature(made, sshpki.get_public_key(ca))
    assert sshpki.load_cert(made).key_id == b"mine"
    return made
"""


def test_another_backend(host):
    """The state calls a user's module, which reads keys by Salt's utility."""
    (host.extension_dir / "modules").mkdir(parents=True)
    # What a user's module reads are files of its own process.
    (host.extension_dir / "modules/mypki.py").write_text(BACKEND.format(directory=host.root))
    host.loader = Loader(host.extension_dir)
    arguments = {"name": "/pki/c", "backend": "mypki", "private_key": "/pki/one.key", "key_id": "mine"}
    told = host.state("ssh_pki.certificate_managed", **arguments)
    assert (told["changes"], told["comment"]) == ({"created": "/pki/c"}, "The certificate has been created")
    assert host.state("ssh_pki.certificate_managed", **arguments)["changes"] == {}

"""The module ``x509``. Edwards keys sign without chance: with serial number and dates given, ours and Salt's are the same bytes."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding
from hypothesis import given
from hypothesis import strategies as st

from statecore.loader import Loader
from statecore.model.errors import CommandError, InvocationError, StatecoreError
from statecore.system.certificates import extensions, names

#: A certificate that is the same whenever it is made.
FIXED = {"serial_number": "0A:BC", "not_before": "2024-01-02 03:04:05", "not_after": "2099-01-02 03:04:05", "CN": "one"}

#: Extension -> forms in which it may be given; each one has to make the bytes that Salt makes.
EXTENSIONS = {
    "basicConstraints": [
        "critical, CA:TRUE, pathlen:1",
        "CA:FALSE",
        {"critical": True, "ca": True, "pathlen": 0},
        {"ca": False},
    ],
    "keyUsage": [
        "critical, cRLSign, keyCertSign",
        ["digitalSignature", "nonRepudiation", "dataEncipherment"],
        "keyAgreement, encipherOnly",
        "keyAgreement, decipherOnly, keyEncipherment",
    ],
    "extendedKeyUsage": [
        "critical, serverAuth, clientAuth",
        ["codeSigning", "1.2.3.4"],
        "emailProtection, timeStamping, OCSPSigning, msSmartcardLogin, pkInitKDC, ipsecIKE, msCodeInd, msCodeCom, msCTLSign, msEFS",
    ],
    "subjectKeyIdentifier": ["hash", "01:02:0a:ff"],
    "authorityKeyIdentifier": ["keyid:always", "keyid, issuer", "issuer:always", "keyid:always, issuer:always"],
    "issuerAltName": ["critical, DNS:ca.example.com", ["URI:http://example.com/", {"email": "me@example.com"}]],
    "authorityInfoAccess": [
        "OCSP;URI:http://ocsp.example.com/,caIssuers;URI:http://myca.example.com/ca.cer",
        [{"OCSP": "URI:http://ocsp.example.com/"}],
        {"caRepository": "DNS:ca.example.com"},
    ],
    "subjectAltName": [
        "email:me@example.com,DNS:example.com",
        ["critical", "dns:*.example.com", {"ip": "10.0.0.1"}],
        "IP:2001:db8::1, IP:192.168.0.0/16, URI:https://example.com/a?b=c, RID:1.2.3.4",
        ["dns:bücher.example", "email:ann@bücher.example"],
        ["dirName:CN=me,O=us"],
    ],
    "crlDistributionPoints": [
        "URI:http://example.com/myca.crl, URI:http://example.org/my.crl",
        [
            {"fullname": "URI:http://example.com/a", "crlissuer": "DNS:example.org", "reasons": ["keyCompromise"]},
            "URI:http://example.org/my.crl",
        ],
        ["critical", {"relativename": "CN=list"}],
    ],
    "certificatePolicies": [
        "critical, 1.2.4.5, 1.1.3.4",
        {
            "critical": True,
            "1.2.3.4.5": ["https://my.ca.com/pratice_statement"],
            "1.2.4.5.6": ["https://x/", {"organization": "myorg", "noticeNumbers": [1, 2, 3], "text": "mytext"}],
        },
    ],
    "policyConstraints": ["requireExplicitPolicy:3,inhibitPolicyMapping:1", {"requireExplicitPolicy": 2}],
    "inhibitAnyPolicy": [1, "critical, 2", {"critical": True, "value": 3}],
    "nameConstraints": [
        "critical,permitted;IP:192.168.0.0/255.255.0.0,permitted;email:.example.com,excluded;email:.com",
        {"critical": True, "permitted": ["IP:192.168.0.0/24", "email:.example.com"], "excluded": ["dns:com"]},
    ],
    "noCheck": [True, "critical"],
    "tlsfeature": ["status_request", ["critical", "status_request_v2"]],
}

SUBJECTS = [
    {"CN": "one", "C": "US", "ST": "Utah", "L": "Lehi", "STREET": "Road 1", "O": "Inc", "OU": "Dev", "MAIL": "a@b.c"},
    {"SN": "Doe", "GN": "Jo", "UID": "jd", "SERIALNUMBER": "42"},
    {"subject": "CN=example.com,O=Example Inc,C=US"},
    {"subject": ["C=US", "O=Example Inc+OU=Dev", "CN=example.com"]},
    {"subject": {"CN": "example.com", "C": "US"}},
    {"commonName": "old", "organizationName": "form"},
]

POLICIES = {
    "www": {
        "minions": "web*",
        "signing_private_key": "CAKEY",
        "signing_cert": "CACERT",
        "O": "Laid down",
        "keyUsage": "digitalSignature",
        "days_valid": 30,
    },
    "list": [{"CN": "from a list"}, {"signing_private_key": "CAKEY"}],
    "dict": {"signing_private_key": "CAKEY", "signing_cert": "CACERT", "subject": {"O": "Laid down"}},
    "forbids": {"signing_private_key": "CAKEY", "signing_cert": "CACERT", "basicConstraints": None},
}


@pytest.fixture(scope="module")
def ed25519(tmp_path_factory):
    """PEM of an authority's key and certificate, and of another key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    def pem(number):
        key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return key.private_bytes(*form).decode()

    return {"CAKEY": pem(1), "KEY": pem(2)}


@pytest.fixture
def host(plain, ed25519):
    """The minion, with an authority in /pki."""
    (plain.root / "pki").mkdir()
    (plain.root / "pki/ca.key").write_text(ed25519["CAKEY"])
    (plain.root / "pki/one.key").write_text(ed25519["KEY"])
    authority = {"CN": "CA", "basicConstraints": "critical, CA:TRUE", "subjectKeyIdentifier": "hash"}
    ca = plain.call(
        "x509.create_certificate",
        signing_private_key="/pki/ca.key",
        subjectAltName="dns:ca.example.com",
        **FIXED | authority,
    )
    (plain.root / "pki/ca.crt").write_text(ca)
    plain.marks = {"CAKEY": ed25519["CAKEY"], "KEY": ed25519["KEY"], "CACERT": ca}
    plain.pillar["x509_signing_policies"] = placed(POLICIES, plain.marks)
    return plain


def placed(value, marks):
    if isinstance(value, dict):
        return {key: placed(each, marks) for key, each in value.items()}
    if isinstance(value, list):
        return [placed(each, marks) for each in value]
    return marks.get(value, value) if isinstance(value, str) else value


#: Salt wants a key where the policy has one, and then takes the policy's.
OVERRULED = {**FIXED, "signing_private_key": "KEY"}

SIGNED = {"signing_private_key": "CAKEY", "signing_cert": "CACERT", "private_key": "KEY"}

#: Calls whose returns have to be Salt's.
CALLS = [
    *(
        ["create_certificate", {**FIXED, **SIGNED, name: value}]
        for name, values in EXTENSIONS.items()
        for value in values
    ),
    *(["create_certificate", {**{k: v for k, v in FIXED.items() if k != "CN"}, **SIGNED, **each}] for each in SUBJECTS),
    ["create_certificate", {**FIXED, "signing_private_key": "KEY", "authorityKeyIdentifier": "keyid:always"}],
    ["create_certificate", {**FIXED, **SIGNED, "encoding": "der"}],
    ["create_certificate", {**FIXED, **SIGNED, "encoding": "pkcs7_der"}],
    ["create_certificate", {**FIXED, **SIGNED, "encoding": "pkcs7_pem", "append_certs": ["CACERT"]}],
    ["create_certificate", {**FIXED, **SIGNED, "append_certs": "CACERT"}],
    ["create_certificate", {**OVERRULED, "signing_policy": "list"}],
    [
        "create_certificate",
        {**OVERRULED, "signing_policy": "www", "private_key": "KEY", "O": "Mine"},
    ],
    [
        "create_certificate",
        {
            **FIXED,
            "signing_private_key": "KEY",
            "signing_policy": "www",
            "private_key": "KEY",
            "subject": "CN=mine,O=Mine",
        },
    ],
    [
        "create_certificate",
        {
            **FIXED,
            "signing_private_key": "KEY",
            "signing_policy": "dict",
            "private_key": "KEY",
            "subject": {"O": "Mine", "CN": "x"},
        },
    ],
    [
        "create_certificate",
        {
            **FIXED,
            "signing_private_key": "KEY",
            "signing_policy": "forbids",
            "private_key": "KEY",
            "basicConstraints": "CA:TRUE",
        },
    ],
    [
        "create_csr",
        {
            "private_key": "KEY",
            "CN": "asks",
            "keyUsage": "digitalSignature",
            "subjectAltName": "DNS:example.com",
            "basicConstraints": "CA:FALSE",
        },
    ],
    ["create_csr", {"private_key": "KEY", "subject": "CN=asks", "encoding": "der"}],
    ["get_signing_policy", {"signing_policy": "www"}],
    ["get_signing_policy", {"signing_policy": "none"}],
    ["get_private_key_size", {"private_key": "KEY"}],
    ["get_public_key", {"key": "KEY"}],
    ["get_public_key", {"key": "CACERT"}],
    ["verify_private_key", {"private_key": "CAKEY", "public_key": "CACERT"}],
    ["verify_private_key", {"private_key": "KEY", "public_key": "CACERT"}],
    ["verify_signature", {"certificate": "CACERT"}],
    ["verify_signature", {"certificate": "CACERT", "signing_pub_key": "KEY"}],
    ["expires", {"certificate": "CACERT"}],
    ["expires", {"certificate": "CACERT", "days": 99999}],
    ["expired", {"certificate": "CACERT"}],
    ["will_expire", {"certificate": "CACERT", "days": 99999}],
    ["read_certificate", {"certificate": "CACERT"}],
    ["encode_certificate", {"certificate": "CACERT", "encoding": "der"}],
    ["encode_private_key", {"private_key": "KEY", "encoding": "der"}],
    ["encode_private_key", {"private_key": "KEY"}],
    ["get_pem_entry", {"text": "CACERT"}],
]

#: Calls that both refuse in the same words.
REFUSED = [
    ["create_certificate", {"CN": "x"}],
    ["create_certificate", {**SIGNED, "encoding": "jks"}],
    ["create_certificate", {**SIGNED, "digest": "md5"}],
    ["create_certificate", {**SIGNED, "encoding": "der", "append_certs": ["CACERT"]}],
    ["create_certificate", {**SIGNED, "signing_private_key": "KEY"}],
    ["create_certificate", {"signing_private_key": "CAKEY", "signing_cert": "CACERT", "CN": "x"}],
    ["create_certificate", {**SIGNED, "serial_number": "xyz"}],
    ["create_certificate", {"ca_server": "ca", "CN": "x"}],
    ["create_private_key", {"algo": "dsa"}],
    ["create_private_key", {"keysize": 1024}],
    ["create_private_key", {"algo": "ec", "keysize": 2048}],
    ["create_private_key", {"encoding": "jks"}],
    ["create_private_key", {"more": 1}],
    ["encode_certificate", {"certificate": "CACERT", "private_key": "KEY"}],
    ["encode_certificate", {"certificate": "CACERT", "encoding": "pkcs12"}],
    ["get_public_key", {"key": "b64:eHl6"}],
    ["read_certificate", {"certificate": "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"}],
]


def asked_of_salt(oracle, host, calls):
    asked = {"module": "x509_v2", "option": "x509_signing_policies"}
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
def test_returns_are_salts(host, oracle):
    wrong = []
    for (function, arguments), (salts, raised) in zip(CALLS, asked_of_salt(oracle, host, CALLS), strict=True):
        assert raised is None, (function, arguments, raised)
        ours = host.call(f"x509.{function}", **placed(arguments, host.marks))
        if ours != salts:
            wrong.append((function, {k: v for k, v in arguments.items() if k not in {**FIXED, **SIGNED}}, ours, salts))
    assert wrong == []


@pytest.mark.oracle
def test_what_is_made_is_read_as_salt_reads_it(host, oracle):
    made = [
        host.call("x509.create_certificate", **placed({**FIXED, **SIGNED, name: value}, host.marks))
        for name, values in EXTENSIONS.items()
        for value in values
    ]
    made.append(host.call("x509.create_certificate", **FIXED, signing_private_key=host.call("x509.create_private_key")))
    requested = host.call("x509.create_csr", "/pki/one.key", CN="asks", subjectAltName="dns:a.b", keyUsage="cRLSign")
    listed = host.call(
        "x509.create_crl",
        "/pki/ca.key",
        [
            {
                "certificate": "/pki/ca.crt",
                "revocation_date": "2024-01-01 00:00:00",
                "extensions": {"CRLReason": "superseded"},
            },
            {"serial_number": "0B", "extensions": {"invalidityDate": "2024-01-01 00:00:00"}},
            {"serial_number": 12, "extensions": {"certificateIssuer": "dirName:CN=other"}, "reason": "keyCompromise"},
        ],
        signing_cert="/pki/ca.crt",
        extensions={
            "cRLNumber": 7,
            "authorityKeyIdentifier": "keyid:always",
            "deltaCRLIndicator": "critical, 3",
            "freshestCRL": "URI:http://example.com/delta.crl",
            "issuerAltName": "dns:ca.example.com",
            "authorityInfoAccess": "caIssuers;URI:http://example.com/ca",
            "issuingDistributionPoint": {"fullname": "URI:http://example.com/crl", "onlyuser": True, "critical": True},
        },
    )
    calls = [["read_certificate", {"certificate": each}] for each in made]
    calls += [["read_csr", {"csr": requested}], ["read_crl", {"crl": listed}]]
    calls += [["verify_crl", {"crl": listed, "cert": "CACERT"}], ["verify_crl", {"crl": listed, "cert": made[-1]}]]
    salts = asked_of_salt(oracle, host, calls)
    for (function, arguments), (told, raised) in zip(calls, salts, strict=True):
        assert raised is None, raised
        assert json.loads(json.dumps(host.call(f"x509.{function}", **placed(arguments, host.marks)))) == told


@pytest.mark.oracle
def test_refusals_are_salts(host, oracle):
    for (function, arguments), (_, raised) in zip(REFUSED, asked_of_salt(oracle, host, REFUSED), strict=True):
        with pytest.raises(StatecoreError) as refused:
            host.call(f"x509.{function}", **placed(arguments, host.marks))
        assert str(refused.value) == raised.partition(": ")[2], (function, arguments)


@pytest.mark.parametrize(
    ("algo", "size"), [("rsa", 2048), ("ec", 256), ("ec", 384), ("ec", 521), ("ed25519", None), ("ed448", None)]
)
@pytest.mark.parametrize("encoding", ["pem", "der", "pkcs12"])
@pytest.mark.parametrize("passphrase", [None, "sesame"])
def test_a_key_in_every_form_signs(algo, size, encoding, passphrase, host):
    key = host.call("x509.create_private_key", algo=algo, keysize=size, encoding=encoding, passphrase=passphrase)
    assert host.call("x509.get_private_key_size", key, passphrase=passphrase) == size
    certificate = host.call(
        "x509.create_certificate", signing_private_key=key, signing_private_key_passphrase=passphrase, CN="x"
    )
    assert host.call("x509.verify_signature", certificate) is True
    assert host.call("x509.verify_private_key", key, certificate, passphrase=passphrase) is True
    assert host.call("x509.read_certificate", certificate)["key_type"] == algo
    for wrong in ("other", None) if passphrase else ("other",):
        with pytest.raises(InvocationError):
            host.call("x509.get_private_key_size", key, passphrase=wrong)


@pytest.mark.parametrize("compatible", [False, True])
def test_a_bundle_holds_key_and_chain(compatible, host):
    options = {"encoding": "pkcs12", "pkcs12_passphrase": "p", "pkcs12_encryption_compat": compatible}
    bundle = host.call(
        "x509.create_certificate",
        signing_private_key="/pki/ca.key",
        signing_cert="/pki/ca.crt",
        private_key="/pki/one.key",
        append_certs="/pki/ca.crt",
        CN="x",
        **options,
    )
    assert host.call("x509.get_public_key", bundle, passphrase="p") == host.call("x509.get_public_key", "/pki/one.key")
    with pytest.raises(CommandError, match="Bad decrypt"):
        host.call("x509.get_public_key", bundle, passphrase="q")


def test_a_request_is_granted_but_for_what_is_the_issuers(host):
    asked = host.call("x509.create_csr", "/pki/one.key", CN="asks", keyUsage="cRLSign", subjectAltName="dns:a.b")
    granted = host.call(
        "x509.create_certificate",
        signing_private_key="/pki/ca.key",
        signing_cert="/pki/ca.crt",
        csr=asked,
        CN="x",
        keyUsage="digitalSignature",
    )
    told = host.call("x509.read_certificate", granted)
    assert told["subject"] == {"CN": "x"}
    assert told["extensions"]["subjectAltName"]["value"] == ["DNS:a.b"]
    assert (told["extensions"]["keyUsage"]["digitalSignature"], told["extensions"]["keyUsage"]["cRLSign"]) == (
        True,
        False,
    )
    assert host.call("x509.verify_private_key", "/pki/one.key", granted) is True
    with pytest.raises(InvocationError, match="a request cannot contain issuerAltName"):
        host.call("x509.create_csr", "/pki/one.key", CN="x", issuerAltName="dns:a")


def test_files(host):
    for function, arguments in (
        ("create_private_key", {"algo": "ed25519"}),
        ("create_certificate", {"signing_private_key": "/pki/ca.key", "CN": "x"}),
        ("create_csr", {"private_key": "/pki/ca.key", "CN": "x"}),
        ("create_crl", {"signing_private_key": "/pki/ca.key", "signing_cert": "/pki/ca.crt", "revoked": []}),
    ):
        assert host.call(f"x509.{function}", path=f"/pki/{function}", **arguments) == f"PEM written to /pki/{function}"
        assert (host.root / "pki" / function).stat().st_mode & 0o777 == 0o600
    kept = (host.root / "pki/create_certificate").read_text()
    told = host.call(
        "x509.create_certificate", path="/pki/create_certificate", overwrite=False, signing_private_key="/pki/ca.key"
    )
    assert told == "The file at /pki/create_certificate exists and overwrite was set to false"
    assert (host.root / "pki/create_certificate").read_text() == kept
    assert host.call("x509.read_certificates", "/pki/*")["/pki/ca.crt"]["subject"] == {"CN": "CA"}
    assert host.call("x509.expired", "/pki/ca.crt") == {"path": "/pki/ca.crt", "cn": "CA", "expired": False}
    assert sorted(host.call("x509.get_pem_entries", "/pki/c*.crt")) == ["/pki/ca.crt"]


def test_copies(host):
    (host.root / "copies").mkdir()
    made = host.call(
        "x509.create_certificate", **FIXED, signing_private_key="/pki/ca.key", copypath="/copies", prepend_cn=True
    )
    assert {path.name: path.read_text() for path in (host.root / "copies").iterdir()} == {"one-abc.crt": made}
    with pytest.raises(InvocationError, match="cannot be part of a file's name"):
        host.call(
            "x509.create_certificate", signing_private_key="/pki/ca.key", copypath="/copies", prepend_cn=True, CN="../x"
        )


def test_pem(host):
    flat = host.marks["CACERT"].replace("\n", "")
    assert host.call("x509.get_pem_entry", flat) == host.marks["CACERT"]
    assert host.call("x509.get_pem_entry", host.marks["CACERT"].replace("\n", "\\n")) == host.marks["CACERT"]
    with pytest.raises(InvocationError, match="PEM does not contain a single entry of type PRIVATE KEY"):
        host.call("x509.get_pem_entry", host.marks["CACERT"], "PRIVATE KEY")
    (host.root / "both").write_text(host.marks["KEY"])
    with pytest.raises(InvocationError) as refused:
        host.call("x509.get_pem_entry", "/both", "CERTIFICATE")
    assert host.marks["KEY"].splitlines()[1] not in str(refused.value)
    (host.root / "old").write_text(host.marks["KEY"] + host.marks["CACERT"])
    host.call("x509.write_pem", flat, "/old", overwrite=False, pem_type="CERTIFICATE")
    assert (host.root / "old").read_text() == host.marks["KEY"] + host.marks["CACERT"]
    host.call("x509.write_pem", flat, "/old")
    assert (host.root / "old").read_text() == host.marks["CACERT"]


def test_signed_for_another_minion(host):
    key = base64.b64decode(host.call("x509.encode_private_key", "/pki/one.key", "der"))
    asked = {"private_key": key, "CN": "web1", "O": "Mine", "signing_private_key": host.marks["KEY"], "copypath": "/"}
    asked["public_key"] = host.call("x509.get_public_key", "/pki/one.key")
    told = host.call("x509.sign_remote_certificate", "www", asked, __pub_id="web1")
    assert told["errors"] == []
    seen = host.call("x509.read_certificate", told["data"])
    assert (seen["subject"], seen["issuer"]) == ({"CN": "web1", "O": "Laid down"}, {"CN": "CA"})
    assert host.call("x509.verify_signature", told["data"], "/pki/ca.crt") is True
    policy = host.call("x509.sign_remote_certificate", "www", {}, True, __pub_id="web1")["data"]
    assert policy == {
        "signing_cert": host.marks["CACERT"],
        "O": "Laid down",
        "keyUsage": "digitalSignature",
        "days_valid": 30,
    }
    for arguments, why in (
        ({"__pub_id": "db1"}, "minion not permitted to use specified signing policy"),
        ({}, "minion sending this request could not be identified"),
    ):
        assert host.call("x509.sign_remote_certificate", "www", asked, **arguments) == {"data": None, "errors": [why]}
    none = host.call("x509.sign_remote_certificate", "none", asked, __pub_id="web1")
    assert none["errors"] == ["signing_policy must be specified and defined on signing minion"]
    path = host.call("x509.sign_remote_certificate", "www", {"csr": "/etc/shadow"}, __pub_id="web1")
    assert path["errors"][0].startswith("csr: give the content, not a path")


def test_signed_by_another_minion(host):
    """``publish`` of a tree's own: the call goes to this very module, as it would on the minion that signs."""
    host.extension_dir.joinpath("modules").mkdir(parents=True)
    host.extension_dir.joinpath("modules/publish.py").write_text(
        "def publish(tgt, fun, arg=None, timeout=5):\n"
        "    return {tgt: __salt__[fun](*arg, __pub_id='web1')} if tgt == 'ca' else {}\n"
    )
    host.loader = Loader(host.extension_dir)
    remote = {"ca_server": "ca", "signing_policy": "www", "private_key": "/pki/one.key", "CN": "web1"}
    made = host.call("x509.create_certificate", **remote)
    assert host.call("x509.verify_signature", made, "/pki/ca.crt") is True
    assert host.call("x509.verify_private_key", "/pki/one.key", made) is True
    policy = host.call("x509.get_signing_policy", "www", ca_server="ca")
    assert "signing_private_key" not in policy
    assert policy["signing_cert"] == host.marks["CACERT"]
    with pytest.raises(CommandError, match="ca_server reported errors:\nsigning_policy must be specified and defined"):
        host.call("x509.create_certificate", **{**remote, "signing_policy": "none"})
    with pytest.raises(CommandError, match="ca_server did not respond"):
        host.call("x509.create_certificate", **{**remote, "ca_server": "gone"})


def test_nobody_to_ask_for_a_signature(host):
    with pytest.raises(CommandError, match=r"ca_server did not respond\. Salt master must permit peers"):
        host.call("x509.create_certificate", ca_server="ca", signing_policy="www", private_key="/pki/one.key")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"keyUsge": "cRLSign"}, "Unrecognized keyword arguments: ['keyUsge']"),
        ({"keyUsage": "crlSign"}, "keyUsage: there is no crlSign"),
        ({"basicConstraints": "pathlen:1"}, "basicConstraints: ca is missing"),
        ({"basicConstraints": 5}, "basicConstraints: "),
        ({"subjectAltName": "example.com"}, "subjectAltName: a general name is 'type:value', not 'example.com'"),
        ({"subjectAltName": "dns:a_b.c"}, "subjectAltName: 'a_b.c' is not a domain name"),
        ({"subjectAltName": "ip:1.2.3"}, "subjectAltName: Provided value 1.2.3 does not seem"),
        ({"subjectAltName": "othername:x"}, "subjectAltName: otherName is currently not implemented"),
        ({"subjectAltName": "x:y"}, "subjectAltName: GeneralName type x is invalid"),
        ({"subjectAltName": [{"dns": 4}]}, "subjectAltName: dns:4: Expected string value, got int"),
        ({"tlsfeature": "x"}, "tlsfeature: x is missing or unknown"),
        ({"nsComment": "x"}, "nsComment: is currently not implemented."),
        ({"authorityKeyIdentifier": "critical, keyid"}, "authorityKeyIdentifier: must be marked as non-critical"),
        ({"subject": 5}, "Need string, list or dict"),
        ({"subject": "nonsense"}, "Failed parsing rfc4514 dirName string"),
        ({"not_before": "yesterday"}, "not_before: time data 'yesterday'"),
        ({"not_after": "2001-01-01 00:00:00"}, "not_after (2001-01-01) comes before not_before"),
        ({"days_valid": "many"}, "days_valid is a number of days, not 'many'"),
        ({"signing_private_key": "/pki/none"}, "there is no file /pki/none"),
        ({"signing_private_key": "/pki/ca.crt"}, "Could not load PEM-encoded private key"),
        ({"signing_private_key": 5}, "Could not load provided source 5"),
        ({"signing_private_key": "not!base64"}, "Could not load provided source"),
        ({"copypath": "/none"}, "copypath: there is no directory /none"),
    ],
)
def test_what_is_wrong_is_named(arguments, says, host):
    with pytest.raises((CommandError, InvocationError)) as refused:
        host.call("x509.create_certificate", **{"signing_private_key": "/pki/ca.key", "CN": "x", **arguments})
    assert str(refused.value).startswith(says)


def test_a_signature_of_another_kind_is_told(host):
    """RSA-PSS, which openssl makes and nothing here does."""
    from datetime import UTC, datetime

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(names.ATTRIBUTES["CN"], "pss")])
    dates = datetime(2024, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 5, *dates).sign(
        key, hashes.SHA256(), rsa_padding=padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    )
    pem = made.public_bytes(serialization.Encoding.PEM).decode()
    assert host.call("x509.verify_signature", pem) is True
    assert host.call("x509.verify_signature", pem, "/pki/ca.crt") is False


_PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=12)
_NEAR = st.sampled_from(["critical", "hash", "issuer:copy", "dns:a", "keyid:always", "1.2.3"])


def _nested(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)


@given(name=st.sampled_from(extensions.CERTIFICATE), value=st.recursive(_PLAIN | _NEAR, _nested, max_leaves=5))
def test_any_value_of_an_extension_is_built_or_refused_by_its_name(name, value):
    said = f"{name}: "
    try:
        extensions.build(name, value, extensions.Parties())
    except (CommandError, InvocationError) as error:
        said = str(error)
    assert said.startswith(f"{name}: ")


def test_the_names_of_the_issuer_are_copied(host):
    """Salt 3008.3 cannot, with the cryptography that it comes with."""
    made = host.call(
        "x509.create_certificate",
        **placed({**FIXED, **SIGNED, "issuerAltName": ["issuer:copy", {"email": "me@example.com"}]}, host.marks),
    )
    told = host.call("x509.read_certificate", made)["extensions"]["issuerAltName"]
    assert told == {"critical": False, "value": ["DNS:ca.example.com", "mail:me@example.com"]}
    with pytest.raises(CommandError, match="issuerAltName: Need CA certificate to copy"):
        host.call("x509.create_certificate", signing_private_key="/pki/ca.key", issuerAltName="issuer:copy")


def test_signing_policies_of_the_configuration(plain):
    plain.opts["x509_signing_policies"] = {"www": [{"minions": "*"}, {"days_valid": 30}], "own": {"days_valid": 1}}
    plain.pillar["x509_signing_policies"] = {"own": {"days_valid": 2}}
    assert plain.call("x509.get_signing_policy", "www") == {"minions": "*", "days_valid": 30}
    assert plain.call("x509.get_signing_policy", "own") == {"days_valid": 2}
    assert plain.call("x509.get_signing_policy", "none") in ({}, "Signing policy none does not exist.")

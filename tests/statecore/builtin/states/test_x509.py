"""``x509`` states where chance is in what they make: keys, lists, bundles. The rest is played (``played/cases/x509.yaml``)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

AUTHORITY = {"signing_private_key": "/pki/ca.key", "signing_cert": "/pki/ca.crt"}


@pytest.fixture
def host(plain):
    """The minion, with an authority in /pki."""
    (plain.root / "pki").mkdir()
    (plain.root / "tmp").mkdir()
    plain.call("x509.create_private_key", algo="ec", path="/pki/ca.key")
    plain.call("x509.create_private_key", algo="ec", path="/pki/one.key")
    plain.call(
        "x509.create_certificate", signing_private_key="/pki/ca.key", CN="CA", path="/pki/ca.crt", days_valid=999
    )
    return plain


def phases(host, state, **arguments):
    """(result, changes, comment) in test mode, applied, and applied again."""
    told = [host.state(f"x509.{state}", test=test, **arguments) for test in (True, False, False)]
    assert told[0]["changes"] == told[1]["changes"]
    return [(each["result"], each["changes"], each["comment"]) for each in told]


@pytest.mark.parametrize("encoding", ["pem", "der", "pkcs12"])
@pytest.mark.parametrize(("algo", "keysize"), [("rsa", None), ("ec", 384), ("ed25519", None), ("ed448", None)])
def test_key(encoding, algo, keysize, host):
    told = phases(host, "private_key_managed", name="/pki/k", algo=algo, keysize=keysize, encoding=encoding)
    assert told == [
        (None, {"created": "/pki/k"}, "The private key would have been created"),
        (True, {"created": "/pki/k"}, "The private key has been created"),
        (True, {}, "The private key is in the correct state"),
    ]
    assert (host.root / "pki/k").stat().st_mode & 0o777 == 0o400
    size = {"rsa": 2048, "ec": 384}.get(algo)
    assert host.call("x509.get_private_key_size", "/pki/k") == size


#: Arguments of the key that is there, of the one that is wanted -> changes, whether the key stays.
KEYS = {
    "another size": ({"keysize": 2048}, {"keysize": 3072}, {"keysize": 3072}, False),
    "another kind": ({}, {"algo": "ec"}, {"algo": "ec"}, False),
    "another encoding": ({}, {"encoding": "der"}, {"encoding": "der"}, True),
    "locked": ({}, {"passphrase": "p"}, {"passphrase": True}, True),
    "locked, and encoded": ({}, {"passphrase": "p", "encoding": "der"}, {"passphrase": True, "encoding": "der"}, True),
    "another lock": (
        {"passphrase": "p"},
        {"passphrase": "q", "overwrite": True},
        {"passphrase": True, "created": "/pki/k"},
        False,
    ),
    "no lock": ({"passphrase": "p"}, {"overwrite": True}, {"passphrase": True, "created": "/pki/k"}, False),
    "bits": ({}, {"bits": 3072}, {"keysize": 3072}, False),
}


@pytest.mark.parametrize("kind", KEYS)
def test_key_that_is_there(kind, host):
    before, wanted, changes, stays = KEYS[kind]
    host.state("x509.private_key_managed", name="/pki/k", **before)
    old = host.call("x509.get_public_key", "/pki/k", passphrase=before.get("passphrase"))
    told = phases(host, "private_key_managed", name="/pki/k", **wanted)
    assert told == [
        (None, changes, "The private key would have been recreated"),
        (True, changes, "The private key has been recreated"),
        (True, {}, "The private key is in the correct state"),
    ]
    new = host.call("x509.get_public_key", "/pki/k", passphrase=wanted.get("passphrase"))
    assert (new == old) is stays


@pytest.mark.parametrize(
    ("before", "wanted", "says"),
    [
        (
            {"passphrase": "p"},
            {"passphrase": "q"},
            "The provided passphrase cannot decrypt the private key. Pass overwrite",
        ),
        ({"passphrase": "p"}, {}, "The existing file is encrypted. Pass overwrite: true"),
        ({}, {"algo": "dsa"}, "Invalid algorithm specified for generating private key: dsa"),
        ({}, {"keysize": 1000}, "RSA key size must be either"),
        ({}, {"encoding": "jks"}, "Invalid value 'jks' for encoding"),
        ({}, {"more": 1}, "Unrecognized keyword arguments: ['more']"),
        ({}, {"attrs": "i"}, "not supported: attrs"),
        ({}, {"mode": "x"}, "'x' is no mode"),
        ({}, {"passphrase": ["p"]}, "passphrase is a text"),
        ({}, {"name": "pki/k"}, "Specified file pki/k is not an absolute path"),
        ({}, {"name": "/pki"}, "Specified target /pki is a directory"),
    ],
)
def test_key_that_cannot_be(before, wanted, says, host):
    host.state("x509.private_key_managed", name="/pki/k", **before)
    old = (host.root / "pki/k").read_bytes()
    for test in (True, False):
        told = host.state("x509.private_key_managed", test=test, **{"name": "/pki/k", **wanted})
        assert (told["result"], told["changes"]) == (False, {})
        assert told["comment"].startswith(says)
    assert (host.root / "pki/k").read_bytes() == old


def test_new_key_at_each_run(host):
    host.state("x509.private_key_managed", name="/pki/k", algo="ec")
    for _ in range(2):
        old = host.call("x509.get_public_key", "/pki/k")
        told = host.state("x509.private_key_managed", name="/pki/k", algo="ec", new=True)
        assert (told["changes"], told["comment"]) == ({"replaced": "/pki/k"}, "The private key has been recreated")
        assert host.call("x509.get_public_key", "/pki/k") != old


@pytest.mark.parametrize("follow", [True, False])
def test_links(follow, host):
    (host.root / "pki/real").write_text("nonsense")
    (host.root / "pki/link").symlink_to("/pki/real")
    arguments = {"name": "/pki/link", "algo": "ec", "overwrite": True, "follow_symlinks": follow}
    host.state("x509.private_key_managed", test=True, **arguments)
    assert (host.root / "pki/link").is_symlink()
    host.state("x509.private_key_managed", **arguments)
    assert (host.root / "pki/link").is_symlink() is follow
    assert ((host.root / "pki/real").read_text() == "nonsense") is not follow
    assert host.state("x509.private_key_managed", **arguments)["changes"] == {}


def test_bundle(host):
    arguments = {**AUTHORITY, "name": "/pki/b", "private_key": "/pki/one.key", "CN": "x", "encoding": "pkcs12"}
    arguments |= {"pkcs12_passphrase": "p", "pkcs12_friendlyname": "mine", "append_certs": ["/pki/ca.crt"]}
    assert [changes for _, changes, _ in phases(host, "certificate_managed", **arguments)] == [
        {"created": "/pki/b"},
        {"created": "/pki/b"},
        {},
    ]
    old = host.call("x509.get_public_key", "/pki/b", passphrase="p")
    arguments["pkcs12_friendlyname"] = "ours"
    assert phases(host, "certificate_managed", **arguments)[1][1] == {"pkcs12_friendlyname": "ours"}
    arguments["pkcs12_passphrase"] = "q"
    told = phases(host, "certificate_managed", **arguments)
    assert told[1][1] == {"pkcs12_passphrase": True}
    assert host.call("x509.get_public_key", "/pki/b", passphrase="q") == old
    arguments["csr"] = host.call("x509.create_csr", arguments.pop("private_key"), CN="x")
    told = host.state("x509.certificate_managed", **arguments)
    assert told["comment"] == "Creating a PKCS12-encoded certificate without embedded private key is unsupported"


def test_certificate_that_comes_to_its_end(host):
    arguments = {**AUTHORITY, "name": "/pki/c", "private_key": "/pki/one.key", "CN": "x"}
    host.state("x509.certificate_managed", **arguments, days_valid=91)
    assert host.state("x509.certificate_managed", **arguments)["changes"] == {}
    host.call(
        "x509.create_certificate", **{k: v for k, v in arguments.items() if k != "name"}, days_valid=89, path="/pki/c"
    )
    assert phases(host, "certificate_managed", **arguments)[1][1] == {"expiration": True}
    assert host.call("x509.expires", "/pki/c", 364) is False


@pytest.mark.parametrize("state", ["certificate_managed", "csr_managed", "crl_managed"])
def test_what_another_state_is_to_make_is_no_fault_in_test_mode(state, host):
    own = {"crl_managed": {"signing_private_key": "/pki/later", "revoked": [], "signing_cert": "/pki/ca.crt"}}
    own |= {"certificate_managed": {"signing_private_key": "/pki/later"}, "csr_managed": {"private_key": "/pki/later"}}
    told = host.state(f"x509.{state}", test=True, name="/pki/x", **own[state])
    assert (told["result"], told["changes"]) == (None, {"created": "/pki/x"})
    told = host.state(f"x509.{state}", name="/pki/x", **own[state])
    assert (told["result"], told["comment"]) == (False, "there is no file /pki/later")
    assert not (host.root / "pki/x").exists()


def test_parent_directory_that_is_not_there(host):
    told = host.state("x509.private_key_managed", name="/none/k", algo="ec")
    assert (told["result"], told["comment"]) == (False, "Parent directory not present")


def test_a_file_that_the_check_does_not_like(host, monkeypatch):
    from statecore.host.host import Host
    from statecore.model.ports import CommandResult

    monkeypatch.setattr(Host, "run", lambda self, cmd, **options: CommandResult(1, "", "no good", 1))
    told = host.state("x509.private_key_managed", name="/pki/k", algo="ec", check_cmd="lint")
    assert (told["result"], told["comment"]) == (False, "check_cmd execution failed\nno good")
    assert not (host.root / "pki/k").exists()


REVOKED = [{"serial_number": "0A", "extensions": {"CRLReason": "superseded"}}, {"certificate": "/pki/ca.crt"}]


@pytest.mark.parametrize("encoding", ["pem", "der"])
def test_list(encoding, host):
    arguments = {**AUTHORITY, "name": "/pki/l", "revoked": REVOKED, "encoding": encoding}
    assert phases(host, "crl_managed", **arguments) == [
        (None, {"created": "/pki/l"}, "The certificate revocation list would have been created"),
        (True, {"created": "/pki/l"}, "The certificate revocation list has been created"),
        (True, {}, "The certificate revocation list is in the correct state"),
    ]
    assert host.call("x509.verify_crl", "/pki/l", "/pki/ca.crt") is True


#: What is wanted otherwise -> changes.
LISTS = {
    "one more": (
        {"revoked": [*REVOKED, {"serial_number": 11}]},
        {"revocations": {"added": ["0B"], "changed": [], "removed": []}},
    ),
    "one less": ({"revoked": REVOKED[1:]}, {"revocations": {"added": [], "changed": [], "removed": ["0A"]}}),
    "another reason": (
        {"revoked": [{"serial_number": 10, "reason": "keyCompromise"}, REVOKED[1]]},
        {"revocations": {"added": [], "changed": ["0A"], "removed": []}},
    ),
    "old form": (
        {"revoked": [{"0A": [{"serial_number": "0A"}, {"reason": "superseded"}]}, REVOKED[1]]},
        {},
    ),
    "extension": (
        {"extensions": {"authorityKeyIdentifier": "keyid:always"}},
        {"extensions": {"added": ["authorityKeyIdentifier"], "changed": [], "removed": []}},
    ),
    "digest": ({"digest": "sha512"}, {"digest": "sha512"}),
    "encoding": ({"encoding": "der"}, {"encoding": "der"}),
    "soon": ({"days_remaining": 99, "days_valid": 101}, {}),
    "end": ({"days_remaining": 101, "days_valid": 200}, {"expiration": True}),
    "never": ({"days_remaining": 0}, {}),
}


@pytest.mark.parametrize("kind", LISTS)
def test_list_that_is_there(kind, host):
    wanted, changes = LISTS[kind]
    arguments = {**AUTHORITY, "name": "/pki/l", "revoked": REVOKED}
    host.state("x509.crl_managed", **arguments)
    told = phases(host, "crl_managed", **{**arguments, **wanted})
    assert [each[1] for each in told] == [changes, changes, {}]


def test_lists_are_counted(host):
    arguments = {**AUTHORITY, "name": "/pki/l", "extensions": {"cRLNumber": "auto"}}
    for number, revoked in enumerate([[], REVOKED, REVOKED[:1]], 1):
        assert host.state("x509.crl_managed", revoked=revoked, **arguments)["result"] is True
        assert host.state("x509.crl_managed", revoked=revoked, **arguments)["changes"] == {}
        assert host.call("x509.read_crl", "/pki/l")["extensions"]["cRLNumber"]["value"] == number


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"revoked": "all"}, "revoked is a list of maps, not 'all'"),
        ({"revoked": [{}]}, "Need serial_number or certificate"),
        ({"revoked": [{"serial": 1}]}, "revoked: a row has no serial"),
        ({"revoked": [{"serial_number": 1, "extensions": {"x": 1}}]}, "x: a row of a revocation list has no such"),
        ({"revoked": [{"serial_number": 1, "reason": "boredom"}]}, "CRLReason: 'boredom' is not"),
        ({"extensions": {"keyUsage": "x"}}, "keyUsage: a revocation list has no such extension"),
        ({"signing_cert": None}, "signing_cert is needed"),
        ({"signing_private_key": "/pki/one.key"}, "Signing private key does not match"),
        ({"digest": "md5"}, "Invalid value 'md5' for digest"),
        ({"days_valid": "x"}, "days_valid is a number of days"),
    ],
)
def test_list_that_cannot_be(wanted, says, host):
    told = host.state("x509.crl_managed", **{**AUTHORITY, "name": "/pki/l", "revoked": [], **wanted})
    assert (told["result"], told["changes"]) == (False, {})
    assert told["comment"].startswith(says)


@pytest.mark.oracle
@pytest.mark.timeout(300)  # Salt makes two dozen RSA keys
def test_changes_are_salts(host, oracle, tmp_path):
    """Keys and lists that are there, and others that are wanted: each in a directory of its own."""
    calls, expected = [], []
    for number, (kind, state) in enumerate([*((each, "key") for each in KEYS), *((each, "list") for each in LISTS)]):
        place = tmp_path / str(number)
        place.mkdir()
        for name in ("ca.key", "ca.crt"):
            (place / name).write_bytes((host.root / "pki" / name).read_bytes())
        if state == "key":
            before, wanted, changes, _ = KEYS[kind]
            common, function = {"name": "/pki/k"}, "x509.private_key_managed"
        else:
            before = {"revoked": REVOKED}
            wanted, changes = {"revoked": REVOKED, **LISTS[kind][0]}, LISTS[kind][1]
            common, function = {**AUTHORITY, "name": "/pki/l"}, "x509.crl_managed"
        for arguments in (before, wanted):
            calls.append(json.loads(json.dumps([function, {**common, **arguments}]).replace("/pki/", f"{place}/")))
        expected.append(changes)
    done = subprocess.run(
        [oracle.venv / "bin/python", Path(__file__).parents[2] / "salt_state_calls.py"],
        input=json.dumps({"cachedir": str(tmp_path / "cache"), "calls": calls}),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)[1::2]
    for number, (kind, changes, phases) in enumerate(zip([*KEYS, *LISTS], expected, told, strict=True)):
        shown = json.loads(json.dumps([each[1] for each in phases]).replace(f"{tmp_path}/{number}/", "/pki/"))
        assert shown == [changes, changes, {}], (kind, phases)

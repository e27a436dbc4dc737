"""The module and the states gpg, with the real program: beside real Salt where it answers the same."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion
from tests.statecore.function_calls import Call, ours, salts

pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="this machine has no gpg")

_KEY = (
    "%no-protection\nKey-Type: RSA\nKey-Length: 1024\nSubkey-Type: RSA\nSubkey-Length: 1024\n"
    "Name-Real: {0}\nName-Email: {0}@x.test\nExpire-Date: {1}\n%commit\n"
)


@pytest.fixture(scope="module")
def made() -> Iterator[dict[str, str]]:
    """Two keys: armored public and secret keys, ids and fingerprints. gpg's sockets need a short path."""
    place = tempfile.mkdtemp(prefix="g", dir="/tmp")
    base = ["gpg", "--homedir", place, "--batch", "--no-tty"]

    def run(*words: str, data: str = "") -> str:
        return subprocess.run([*base, *words], input=data, capture_output=True, text=True, check=True).stdout

    found = {}
    try:
        for name, expires in (("ann", "0"), ("bob", "10y")):
            run("--gen-key", data=_KEY.format(name, expires))
            rows = [line.split(":") for line in run("--with-colons", "--list-keys", name).splitlines()]
            fingerprint = next(row[9] for row in rows if row[0] == "fpr")
            found |= {f"{name}_fpr": fingerprint, f"{name}_id": fingerprint[-16:], f"{name}_short": fingerprint[-8:]}
            found[f"{name}_pub"] = run("--armor", "--export", name)
            found[f"{name}_sec"] = run("--armor", "--export-secret-keys", name)
        yield found
    finally:
        forget(place)


def forget(place: str) -> None:
    subprocess.run(["gpgconf", "--homedir", place, "--kill", "all"], capture_output=True, check=False)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def homes() -> Iterator[tuple[str, str]]:
    """A home directory of gpg for ours, and one for Salt."""
    both = tempfile.mkdtemp(prefix="g", dir="/tmp"), tempfile.mkdtemp(prefix="g", dir="/tmp")
    yield both
    for each in both:
        forget(each)


@pytest.fixture
def minion(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch) -> PlainMinion:
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Host(), **changes}))
    return plain


#: Words in capitals are parts of the made keys, H is the home directory.
CALLS: list[Call] = [
    ("gpg.list_keys", [], {}),
    ("gpg.import_key", ["ANN_PUB"], {}),
    ("gpg.import_key", ["ANN_PUB"], {}),
    ("gpg.import_key", ["nonsense"], {}),
    ("gpg.import_key", [], {}),
    ("gpg.import_key", [], {"text": "a", "filename": "b"}),
    ("gpg.import_key", [], {"filename": "/no/such/file"}),
    ("gpg.list_keys", [], {}),
    ("gpg.get_key", [], {"keyid": "ANN_ID"}),
    ("gpg.get_key", [], {"keyid": "ANN_SHORT"}),
    ("gpg.get_key", [], {"fingerprint": "ANN_FPR"}),
    ("gpg.get_key", [], {"keyid": "BOB_ID"}),
    ("gpg.get_secret_key", [], {"keyid": "ANN_ID"}),
    ("gpg.export_key", ["ANN_ID"], {}),
    ("gpg.export_key", ["ANN_ID"], {"bare": True}),
    ("gpg.export_key", ["BOB_ID"], {}),
    ("gpg.export_key", ["BOB_ID"], {"bare": True}),
    ("gpg.export_key", ["ANN_ID"], {"output": "H/out.asc"}),
    ("gpg.read_key", [], {"path": "H/out.asc"}),
    ("gpg.read_key", [], {"text": "BOB_PUB"}),
    ("gpg.read_key", [], {"text": "BOB_PUB", "keyid": "ANN_ID"}),
    ("gpg.read_key", [], {}),
    ("gpg.trust_key", [], {"keyid": "ANN_ID", "trust_level": "ultimately"}),
    ("gpg.trust_key", [], {"keyid": "ANN_ID", "trust_level": "fully"}),
    ("gpg.trust_key", [], {"keyid": "BOB_ID", "trust_level": "fully"}),
    ("gpg.trust_key", [], {"keyid": "ANN_ID", "trust_level": "x"}),
    ("gpg.trust_key", [], {"trust_level": "fully"}),
    ("gpg.get_key", [], {"keyid": "ANN_ID"}),
    ("gpg.import_key", [], {"text": "BOB_SEC"}),
    ("gpg.list_secret_keys", [], {}),
    ("gpg.delete_key", [], {}),
    ("gpg.delete_key", [], {"keyid": "a", "fingerprint": "b"}),
    ("gpg.delete_key", [], {"keyid": "0123456789ABCDEF"}),
    ("gpg.delete_key", [], {"keyid": "BOB_ID"}),
    ("gpg.delete_key", [], {"keyid": "BOB_ID", "delete_secret": True}),
    ("gpg.delete_key", [], {"keyid": "BOB_ID", "delete_secret": True, "use_passphrase": False}),
    ("gpg.delete_key", [], {"fingerprint": "ANN_FPR"}),
    ("gpg.list_keys", [], {}),
    ("gpg.encrypt", [], {"text": "x", "recipients": "none@x.test"}),
    ("gpg.encrypt", [], {"text": "x", "recipients": "none@x.test", "bare": True}),
    ("gpg.decrypt", [], {"text": "no message"}),
    ("gpg.decrypt", [], {"text": "no message", "bare": True}),
    ("gpg.decrypt", [], {}),
    ("gpg.create_key", [], {"use_passphrase": True}),
]


def filled(value: Any, keys: dict[str, str], home: str) -> Any:
    if isinstance(value, str):
        return keys.get(value.lower(), value) if value.isupper() else value.replace("H/", f"{home}/")
    if isinstance(value, list):
        return [filled(each, keys, home) for each in value]
    return {key: filled(each, keys, home) for key, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.oracle
def test_as_salt(
    minion: PlainMinion, oracle: Oracle, made: dict[str, str], homes: tuple[str, str], tmp_path: Path
) -> None:
    def calls(home: str) -> list[Call]:
        return [
            (fun, filled(args, made, home), filled(kwargs, made, home) | {"gnupghome": home})
            for fun, args, kwargs in CALLS
        ]

    told = json.loads(json.dumps(ours(minion.call, calls(homes[0]))).replace(homes[0], "H"))
    stock = json.loads(json.dumps(salts(oracle, tmp_path / "salt", calls(homes[1]))).replace(homes[1], "H"))
    rows = zip(range(len(CALLS)), CALLS, told, stock, strict=True)
    differing = [f"{number} {call}\n  {a}\n  {b}" for number, call, a, b in rows if a != b]
    assert not differing, "\n".join(differing)


def test_messages(minion: PlainMinion, made: dict[str, str], homes: tuple[str, str]) -> None:
    home = homes[0]

    def call(function: str, **kwargs: Any) -> Any:
        return minion.call(f"gpg.{function}", gnupghome=home, **kwargs)

    call("import_key", text=made["ann_sec"])
    secret = call("encrypt", text="hello\n", recipients="ann@x.test", always_trust=True, bare=True)
    assert secret.startswith("-----BEGIN PGP MESSAGE-----")
    assert call("decrypt", text=secret) == {"res": True, "comment": "hello\n"}
    wrote = call("encrypt", text="x", recipients=[made["ann_id"]], always_trust=True, sign=True, output=f"{home}/m")
    assert wrote == {"res": True, "comment": f"Encrypted data has been written to {home}/m"}
    assert call("decrypt", filename=f"{home}/m", output=f"{home}/plain")["res"] is True
    assert Path(home, "plain").read_text() == "x"
    signed = call("sign", text="mine", keyid=made["ann_id"])
    assert "BEGIN PGP SIGNED MESSAGE" in signed
    assert call("verify", text=signed)["res"] is True
    with pytest.raises(CommandError, match="gpg could not sign"):
        call("sign", text="mine", keyid=made["bob_id"], keyring=f"{home}/none")
    with pytest.raises(InvocationError, match="gpg_passphrase not available in pillar"):
        call("sign", text="x", use_passphrase=True)


def test_a_key_with_a_passphrase(minion: PlainMinion, homes: tuple[str, str]) -> None:
    minion.pillar["gpg_passphrase"] = "open sesame"
    made = minion.call(
        "gpg.create_key", name_email="me@x.test", use_passphrase=True, expire_date="2y", gnupghome=homes[0]
    )
    assert made == {"res": True, "fingerprint": made["fingerprint"], "message": "GPG key pair successfully generated."}
    key = minion.call("gpg.get_key", fingerprint=made["fingerprint"], gnupghome=homes[0])
    assert key["uids"] == ["Autogenerated Key (Generated by SaltStack) <me@x.test>"]
    assert (key["keyLength"], key["expired"], key["trust"]) == ("1024", False, "Ultimately Trusted")
    signed = minion.call("gpg.sign", text="x", use_passphrase=True, gnupghome=homes[0])
    assert "SIGNATURE" in signed
    gone = minion.call("gpg.delete_key", fingerprint=made["fingerprint"], delete_secret=True, gnupghome=homes[0])
    assert gone["res"] is True
    with pytest.raises(InvocationError, match="Name-Real: a line end"):
        minion.call("gpg.create_key", name_real="x\n%commit", gnupghome=homes[0])


def test_only_chosen_keys_are_imported(minion: PlainMinion, made: dict[str, str], homes: tuple[str, str]) -> None:
    both = made["ann_pub"] + made["bob_pub"]
    answer = minion.call("gpg.import_key", text=both, select=made["bob_id"], gnupghome=homes[0])
    assert (answer["res"], answer["fingerprints"]) == (True, [made["bob_fpr"]])
    assert [key["keyid"] for key in minion.call("gpg.list_keys", gnupghome=homes[0])] == [made["bob_id"]]
    none = minion.call("gpg.import_key", text=both, select="0123456789ABCDEF", gnupghome=homes[0])
    assert none["message"] == "After filtering, no keys to import were left."


def test_a_key_server_that_does_not_answer(minion: PlainMinion, homes: tuple[str, str]) -> None:
    answer = minion.call("gpg.receive_keys", "hkp://127.0.0.1:1", "0123456789ABCDEF", gnupghome=homes[0])
    assert answer["res"] is False
    assert "GPG reported failure: " in answer["message"][-1]
    with pytest.raises(InvocationError, match="no key id"):
        minion.call("gpg.receive_keys", "hkp://127.0.0.1:1", "--export", gnupghome=homes[0])


def test_states(minion: PlainMinion, made: dict[str, str], homes: tuple[str, str]) -> None:
    key = made["ann_id"]
    minion.write("keys.asc", made["bob_pub"] + made["ann_pub"])
    wanted = {"name": key, "gnupghome": homes[0], "source": ["salt://none", "salt://keys.asc"], "skip_keyserver": True}

    def told(function: str, test: bool = False, **changes: Any) -> tuple[Any, Any, Any]:
        entry = minion.state(f"gpg.{function}", test=test, **{**wanted, **changes})
        return entry["result"], entry["changes"], entry["comment"]

    def of(*lines: str) -> str:
        return f"Key {key}:\n  * " + "\n  * ".join(lines)

    both = {key: {"added": True, "trust": "fully"}}
    assert told("present", True, trust="fully") == (
        None,
        both,
        of(f"Would have added {key} to GPG keychain", f"Would have set trust level for {key} to fully"),
    )
    assert told("present", trust="fully") == (
        True,
        both,
        of(f"Added {key} to GPG keychain", f"Set trust level for {key} to fully"),
    )
    already = of(f"GPG Public Key {key} already in keychain", f"GPG Public Key {key} already in correct trust state")
    assert told("present", trust="ultimately")[0] is True
    assert told("present", trust="ultimately") == (True, {}, already)
    # The ID of a state that forgot its keys: a name with spaces is no key, and no reason to break down.
    spaces = told("present", name="the key of ann")
    assert (spaces[0], spaces[1]) == (False, {})
    assert "none of the specified sources were found or contained the (unexpired) key the key of ann" in spaces[2]
    missing = told("present", name="0123456789ABCDEF")
    assert (missing[0], missing[1]) == (False, {})
    assert "none of the specified sources were found or contained the (unexpired) key" in missing[2]
    assert told("present", source=None)[::2] == (
        False,
        "When skipping keyservers, you must provide at least one source",
    )
    assert told("present", trust="x")[::2] == (False, "Invalid trust level x")
    for name in ("source", "skip_keyserver"):
        wanted.pop(name)
    text = told("present", name=made["bob_id"], text=made["bob_pub"])
    assert text[:2] == (True, {made["bob_id"]: {"added": True}})
    assert told("present", name="0123456789ABCDEF", text=made["bob_pub"])[0] is False
    deleted = {"deleted": [key]}
    assert told("absent", True) == (None, deleted, f"Would have deleted {key} from GPG keychain")
    assert told("absent") == (True, deleted, f"Deleted {key} from GPG keychain")
    assert told("absent") == (True, {}, f"{key} not found in GPG keychain")
    minion.call("gpg.import_key", text=made["ann_sec"], gnupghome=homes[0])
    kept = told("absent")
    assert (kept[0], kept[1]) == (False, {})
    assert kept[2] == "Secret key exists, delete first or pass delete_secret=True."


def test_the_last_key_of_a_keyring(minion: PlainMinion, made: dict[str, str], homes: tuple[str, str]) -> None:
    ring = f"{homes[0]}/ring.gpg"
    minion.call("gpg.import_key", text=made["ann_pub"], gnupghome=homes[0], keyring=ring)
    entry = minion.state(
        "gpg.absent", name=made["ann_id"], gnupghome=homes[0], keyring=ring, keyring_absent_if_empty=True
    )
    assert entry["changes"] == {"deleted": [made["ann_id"]], "removed": ring}
    assert not Path(ring).exists()


def test_a_host_without_gpg(plain: PlainMinion) -> None:
    with pytest.raises(CommandError, match="the host has no program gpg"):
        plain.call("gpg.list_keys")

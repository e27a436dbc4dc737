"""``asymmetric`` beside Salt's: each checks what the other has signed; what is wrong is told in the same words."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from statecore.model.errors import CommandError, InvocationError
from tests.conftest import Oracle

KINDS = ("rsa", "ec", "ed25519", "ed448")
TEXT = "I like you"


def made(kind: str) -> Any:
    return {
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ed448": ed448.Ed448PrivateKey.generate,
    }[kind]()


@pytest.fixture
def keys(plain: Any) -> dict[str, tuple[str, str]]:
    """Kind -> (path of the private key on the host, path of the public key)."""
    plain.root = Path("/")
    directory = plain.tree.parent / "keys"
    directory.mkdir()
    found = {}
    for kind in KINDS:
        key = made(kind)
        private, public = directory / f"{kind}.key", directory / f"{kind}.pub"
        pem = serialization.Encoding.PEM
        password = serialization.BestAvailableEncryption(b"secret") if kind == "ec" else serialization.NoEncryption()
        private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, password))
        public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
        found[kind] = (str(private), str(public))
    (directory / "data").write_bytes(b"x" * 3_000_000)
    return found


def secret(kind: str) -> dict[str, str]:
    return {"passphrase": "secret"} if kind == "ec" else {}


@pytest.mark.oracle
def test_each_verifies_what_the_other_signed(plain: Any, keys: dict[str, tuple[str, str]], oracle: Oracle) -> None:
    data = str(Path(keys["rsa"][0]).parent / "data")
    inputs = [{"text": TEXT}, {"filename": data}, {"text": TEXT, "digest": "sha512"}]
    cases = [(kind, given) for kind in KINDS for given in inputs]
    ours = [plain.call("asymmetric.sign", keys[kind][0], **secret(kind), **given) for kind, given in cases]
    broken = base64.b64encode(b"\0" + base64.b64decode(ours[0])[1:]).decode()
    checks = [
        *(
            {"pubkey": keys[kind][1], "signature": signature, **given}
            for (kind, given), signature in zip(cases, ours, strict=True)
        ),
        {"pubkey": keys["rsa"][1], "signature": broken, "text": TEXT},
        {"pubkey": keys["rsa"][1], "signature": ours[0], "text": TEXT + "!"},
        {"signed_by_any": [keys["ec"][1], keys["rsa"][1]], "signature": [ours[0]], "text": TEXT},
        {"signed_by_any": [keys["ec"][1]], "signature": ours[0], "text": TEXT},
        {"signed_by_all": [keys["ec"][1], keys["rsa"][1]], "signature": [ours[0], ours[3]], "text": TEXT},
        {"signed_by_all": [keys["ed448"][1], keys["rsa"][1]], "signature": [ours[0], ours[3]], "text": TEXT},
        {
            "signed_by_all": [keys["rsa"][1]],
            "signed_by_any": keys["ec"][1],
            "signature": [ours[0], ours[3]],
            "text": TEXT,
        },
    ]
    program = (
        "import json, sys; import salt.modules.asymmetric as module\n"
        "signs, checks = json.load(sys.stdin)\n"
        "print(json.dumps([[module.sign(*a, **k) for a, k in signs], [module.verify(**each) for each in checks]]))"
    )
    signs = [[[keys[kind][0]], {**secret(kind), **given}] for kind, given in cases]
    theirs, told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps([signs, checks])))
    assert [plain.call("asymmetric.verify", **each) for each in checks] == told
    assert [each["res"] for each in told] == [True] * len(cases) + [False, False, True, False, True, False, True]
    for (kind, given), signature in zip(cases, theirs, strict=True):
        assert plain.call("asymmetric.verify", pubkey=keys[kind][1], signature=signature, **given)["res"] is True


@pytest.mark.parametrize("kind", KINDS)
def test_signatures_in_files(plain: Any, keys: dict[str, tuple[str, str]], kind: str, tmp_path: Path) -> None:
    private, public = keys[kind]
    for raw in (None, False):
        path = str(tmp_path / f"signature-{raw}")
        said = plain.call("asymmetric.sign", private, text=TEXT, path=path, raw=raw, **secret(kind))
        assert said == f"Signature written to '{path}'"
        assert plain.call("asymmetric.verify", TEXT, pubkey=public, signature=path)["res"] is True
        assert plain.call("asymmetric.verify", TEXT, pubkey=public, signature=f"file://{path}")["res"] is True
    assert isinstance(plain.call("asymmetric.sign", private, text=TEXT, raw=True, **secret(kind)), bytes)


def test_a_signature_that_looks_like_a_path(plain: Any, keys: dict[str, tuple[str, str]]) -> None:
    """Base64 has slashes, too: one in 64 texts begins with one."""
    key = ed25519.Ed25519PrivateKey.generate()
    texts = (str(number) for number in range(10_000))
    text = next(each for each in texts if base64.b64encode(key.sign(each.encode())).startswith(b"/"))
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    signature = base64.b64encode(key.sign(text.encode())).decode()
    assert plain.call("asymmetric.verify", text, pubkey=public.decode(), signature=signature)["res"] is True


def test_one_signature_counts_for_one_key(plain: Any, keys: dict[str, tuple[str, str]]) -> None:
    private, public = keys["rsa"]
    signature = plain.call("asymmetric.sign", private, text=TEXT)
    found = plain.call("asymmetric.verify", TEXT, signature=[signature], signed_by_all=[public, public])
    assert found["res"] is False
    assert found["message"].startswith("Failed while checking `signed_by_all`: Invalid signature for key ")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"text": TEXT, "filename": "/x"}, InvocationError, "mutually exclusive"),
        ({"text": TEXT}, InvocationError, "Missing `signature` parameter"),
        ({"text": TEXT, "signature": "eA=="}, InvocationError, r"Missing pubkey\(s\)"),
        ({"signature": "eA==", "pubkey": "/k"}, InvocationError, "Missing data to verify"),
        ({"text": TEXT, "signature": ["eA=="], "pubkey": "/k"}, InvocationError, "must be a string or bytes"),
        (
            {"text": TEXT, "signature": "eA==", "pubkey": "/k", "signed_by_any": ["/k"]},
            InvocationError,
            "Either specify",
        ),
        ({"filename": "/no/such", "signature": "eA==", "pubkey": "/k"}, CommandError, "Path '/no/such' does not exist"),
        ({"text": TEXT, "signature": ["/no", "/none"], "signed_by_any": ["/k"]}, CommandError, "Unable to locate any"),
    ],
)
def test_what_is_refused(plain: Any, given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plain.call("asymmetric.verify", **given)


def test_what_cannot_be_signed(plain: Any, keys: dict[str, tuple[str, str]]) -> None:
    with pytest.raises(InvocationError, match="Either `text` or `filename` is required"):
        plain.call("asymmetric.sign", keys["rsa"][0])
    with pytest.raises(CommandError, match="Path '/no/such' does not exist"):
        plain.call("asymmetric.sign", keys["rsa"][0], filename="/no/such")
    with pytest.raises(CommandError, match="Invalid value 'md17' for digest"):
        plain.call("asymmetric.sign", keys["rsa"][0], text=TEXT, digest="md17")
    found = plain.call("asymmetric.verify", TEXT, pubkey="/none.pub", signature="eA==")
    assert found == {"res": False, "message": "Failed checking signature: there is no file /none.pub"}

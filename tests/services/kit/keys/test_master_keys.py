"""The master's own key: read, or said what is missing."""

from __future__ import annotations

import binascii
import shutil
from pathlib import Path

import pytest

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.keys.master_keys import SECRET_BYTES, MasterKeys
from saltwire.keys import SIG_ALGOS, PrivateKey


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda place: (place / "master.pem").unlink(), r"master\.pem: No such file.*saltern keygen --out DIR"),
        (lambda place: (place / "master.secret").unlink(), r"master\.secret: No such file.*saltern keygen"),
        (lambda place: (place / "master.pem").write_text("x"), r"master\.pem: not a private key in PEM"),
        (lambda place: (place / "master.secret").write_bytes(b"x"), r"master\.secret: must hold 32 bytes, holds 1"),
    ],
)
def test_what_is_wrong_is_named(spoil: object, says: str, role_keys: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(role_keys / "mworker", tmp_path / "keys"))
    assert callable(spoil)
    spoil(place)
    with pytest.raises(ConfigError, match=says):
        MasterKeys.load(place)


def test_keys_are_read(role_keys: Path) -> None:
    assert len(MasterKeys.load(role_keys / "mworker").secret) == SECRET_BYTES


def test_the_public_key_is_signed(role_keys: Path, tmp_path: Path) -> None:
    """By the signing key at the start, or beforehand; without the option by nobody."""
    place = Path(shutil.copytree(role_keys / "mworker", tmp_path / "keys"))
    wanted = MasterOptions(master_sign_pubkey=True)
    with pytest.raises(ConfigError, match=r"master_sign\.pem: No such file.*--gen-signature --auto-create"):
        MasterKeys.load_for(place, wanted)
    signer = PrivateKey.generate()
    (place / "master_sign.pem").write_bytes(signer.to_pem())
    assert MasterKeys.load_for(place, MasterOptions()).signatures == {}
    keys = MasterKeys.load_for(place, wanted)
    assert set(keys.signatures) == set(SIG_ALGOS)
    for algo, text in keys.signatures.items():
        assert text.endswith("\n")
        signer.public.verify(keys.private.public.pem.encode(), binascii.a2b_base64(text), algo)
    made = MasterOptions(master_sign_pubkey=True, master_use_pubkey_signature=True)
    with pytest.raises(ConfigError, match="master_pubkey_signature: No such file"):
        MasterKeys.load_for(place, made)
    (place / "master_pubkey_signature").write_text(keys.signatures["PKCS1v15-SHA1"])
    assert MasterKeys.load_for(place, made).signatures["PKCS1v15-SHA1"] == keys.signatures["PKCS1v15-SHA1"]

"""OpenPGP keys, armoured and binary."""

from __future__ import annotations

import base64
import shutil
import subprocess

import pytest

from statecore.system.hostfiles import openpgp_keys

KEY = bytes([0x99]) + b"a key, as far as its first byte tells"
_BODY = base64.b64encode(KEY).decode()
ARMOURED = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: x\n\n{_BODY}\n-----END PGP PUBLIC KEY BLOCK-----\n".encode()


def test_forms():
    assert openpgp_keys.is_armoured(ARMOURED)
    assert not openpgp_keys.is_binary(ARMOURED)
    assert openpgp_keys.is_binary(KEY)
    assert not openpgp_keys.is_armoured(KEY)
    assert openpgp_keys.dearmoured(ARMOURED) == openpgp_keys.dearmoured(KEY) == KEY
    assert openpgp_keys.dearmoured(ARMOURED.replace(b"\n", b"\r\n") + ARMOURED) == KEY + KEY


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it holds no public key"),
        (b"<html>404</html>", "it holds no public key"),
        (ARMOURED.replace(b"\n-----END", b"*\n-----END"), "its armour is damaged"),
        (ARMOURED.replace(b"\n-----END", b"\n=AAAA\n-----END"), "the checksum does not match"),
    ],
)
def test_no_keys(data, why):
    with pytest.raises(ValueError, match=why):
        openpgp_keys.dearmoured(data)


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is the oracle")
def test_gpg_reads_them_alike(tmp_path):
    gpg = ["gpg", "--homedir", str(tmp_path), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    tmp_path.chmod(0o700)
    subprocess.run(
        [*gpg, "--quick-generate-key", "someone <x@y.test>", "ed25519", "sign"], check=True, capture_output=True
    )
    armoured = subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True).stdout
    assert (
        openpgp_keys.dearmoured(armoured) == subprocess.run([*gpg, "--export"], check=True, capture_output=True).stdout
    )
    subprocess.run(["gpgconf", "--homedir", str(tmp_path), "--kill", "all"], check=False)

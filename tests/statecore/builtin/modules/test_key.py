"""Fingerprints, as real Salt has them of the same files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statecore.model.errors import InvocationError
from tests.conftest import Oracle

KEY = "-----BEGIN PUBLIC KEY-----\r\nMIIBIjANBg\r\n\r\nkqhkiG9w0\n-----END PUBLIC KEY-----\n"


@pytest.fixture
def minion(plain: Any, tmp_path: Any) -> Any:
    plain.opts["pki_dir"] = str(tmp_path)
    for name in ("minion.pub", "minion_master.pub"):
        (tmp_path / name).write_bytes(f"{KEY}{name}\n".encode())
    return plain


@pytest.mark.oracle
def test_as_salt(minion: Any, oracle: Oracle) -> None:
    program = (
        "import json, sys, salt.modules.key as key\n"
        "key.__opts__ = {'pki_dir': sys.argv[1], 'hash_type': 'sha256'}\n"
        "print(json.dumps([[key.finger(each), key.finger_master(each)] for each in (None, 'md5')]))"
    )
    theirs = json.loads(oracle.run("python", "-c", program, minion.opts["pki_dir"]))
    ours = [[minion.call("key.finger", each), minion.call("key.finger_master", each)] for each in (None, "md5")]
    assert ours == theirs
    assert len(ours[0][0]) == 95


def test_keys_that_are_not_there(minion: Any, tmp_path: Any) -> None:
    (tmp_path / "minion.pub").unlink()
    assert minion.call("key.finger") == ""
    with pytest.raises(InvocationError, match="there is no hash_type 'md6'; there are blake2b"):
        minion.call("key.finger", "md6")

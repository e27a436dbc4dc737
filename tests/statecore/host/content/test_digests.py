"""Digests of files, made and read."""

from __future__ import annotations

import hashlib

import pytest

from statecore.host.content import digests
from statecore.model.errors import InvocationError


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
def test_digests(tmp_path, algorithm):
    (tmp_path / "f").write_bytes(b"x" * 100_000)
    hexadecimal = hashlib.new(algorithm, b"x" * 100_000).hexdigest()
    assert digests.digest_of(tmp_path / "f", algorithm, 4096) == hexadecimal
    for text in (hexadecimal, f"{algorithm}={hexadecimal}", f"{algorithm}:{hexadecimal.upper()}"):
        assert digests.parse_digest(text) == (algorithm, hexadecimal)


def test_what_is_no_digest(tmp_path):
    with pytest.raises(InvocationError, match="'abc' is no digest; write algorithm=hexadecimal"):
        digests.parse_digest("abc")
    with pytest.raises(InvocationError, match="there is no digest 'nosuch'"):
        digests.digest_of(tmp_path, "nosuch")

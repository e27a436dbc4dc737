"""The master's own key: read, or said what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from services.kit.config import ConfigError
from services.kit.masterkeys import SECRET_BYTES, MasterKeys


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

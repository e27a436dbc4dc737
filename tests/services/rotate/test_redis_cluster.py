"""A rotation of what each node of a Redis Cluster has for itself is refused before anything is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from saltern.rotate.key_files import KeyFiles, RotationError
from saltern.rotate.redis_login import rotate_redis_password
from saltern.rotate.redis_tls import rotate_redis_tls

URL = "redis+cluster://:secret@127.0.0.1:1,127.0.0.1:2"


@pytest.fixture
def files(tmp_path: Path) -> KeyFiles:
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "url").write_text(URL)
    return KeyFiles(tmp_path, 0)


def test_the_password_of_a_cluster(files: KeyFiles) -> None:
    with pytest.raises(
        RotationError, match="is a Redis Cluster, and this command replaces the password of one Redis"
    ) as said:
        rotate_redis_password(files)
    assert "secret" not in str(said.value)
    assert [path.name for path in (files.directory / "redis").iterdir()] == ["url"]


def test_the_certificates_of_a_cluster(files: KeyFiles) -> None:
    with pytest.raises(RotationError, match=r"replaces the certificate of one Redis.*rotation.md#redis-cluster"):
        rotate_redis_tls(files, URL, authority=True)
    assert [path.name for path in (files.directory / "redis").iterdir()] == ["url"]

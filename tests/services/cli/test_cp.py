"""``salt-cp``: what goes where, in which pieces."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli import cp
from services.kit.commandline import CommandError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("one.txt", "two.txt", "site/index.html", "site/css/a.css", "single/only.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "site" / "empty").mkdir()
    (tmp_path / "hollow").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


SITE = ["/srv/site/css/a.css", "/srv/site/empty", "/srv/site/index.html"]


@pytest.mark.parametrize(
    ("sources", "dest", "remote"),
    [
        (["one.txt"], "/etc/x", ["/etc/x"]),
        (["one.txt"], "/etc/", ["/etc/one.txt"]),
        (["one.txt", "two.txt"], "/srv", ["/srv/one.txt", "/srv/two.txt"]),
        (["site"], "/srv", SITE),
        (["site/"], "/srv/", SITE),
        (["single"], "/srv", ["/srv/single/only.txt"]),
        (["hollow"], "/srv", ["/srv/hollow"]),
        (["one.txt", "site"], "/srv", ["/srv/one.txt", *SITE]),
    ],
)
def test_where_it_goes(here: Path, sources: list[str], dest: str, remote: list[str]) -> None:
    found = cp.items(sources, dest)
    assert [item.remote for item in found] == remote
    assert all((item.source is None) == item.remote.endswith(("empty", "hollow")) for item in found)


def test_a_source_that_is_not_there(here: Path) -> None:
    with pytest.raises(CommandError, match="nope does not exist") as raised:
        cp.items(["one.txt", "nope"], "/srv")
    assert raised.value.code == 42


@given(st.binary(max_size=40), st.booleans(), st.integers(1, 16))
def test_pieces_make_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, compressed: bool, size: int
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "file"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cp, "CHUNK", size)
        pieces = [base64.b64decode(piece) for piece in cp.chunks(path, compressed=compressed)]
    assert len(pieces) == max(1, -(-len(data) // size))
    assert b"".join(gzip.decompress(piece) if compressed else piece for piece in pieces) == data

"""``salt-cp``: what goes where, in which pieces."""

from __future__ import annotations

import base64
import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltern.cli import cp
from saltern.kit.command.command_line import CommandError
from saltern.kit.links.control import ControlError, ControlTimeout

JID = "20260101000000000000"


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


def test_the_directory_above_keeps_its_own_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("single")
    (here / "hollow").rmdir()
    assert all(item.remote.startswith(f"/srv/{here.name}/") for item in cp.items([".."], "/srv"))


def _link(here: Path, name: str, target: str) -> None:
    (here / name).symlink_to(target)


@pytest.mark.parametrize(
    ("make", "source", "why"),
    [
        (None, "", "'' does not exist"),
        (
            partial(_link, name="site/gone", target="nowhere"),
            "site",
            "site/gone leads to nowhere, which does not exist",
        ),
        (
            partial(_link, name="site/css/up", target=".."),
            "site",
            "site/css/up is a link to a directory that it lies in",
        ),
        (lambda here: os.mkfifo(here / "site/pipe"), "site", "site/pipe is neither a file nor a directory"),
        (
            lambda here: Path(os.fsdecode(b"site/\xff")).touch(),
            "site",
            "the name 'site/\\udcff' cannot be sent: it is not UTF-8",
        ),
    ],
)
def test_what_cannot_be_sent_is_told_before_anything_is(
    here: Path, master: Callable[..., Any], capsys: pytest.CaptureFixture[str], make: Any, source: str, why: str
) -> None:
    if make is not None:
        make(here)
    fake = master()
    assert cp.run(["*", "one.txt", source, "/srv"], fake.context()) == 42
    assert capsys.readouterr().err == f"ERROR: {why}\n"
    assert fake.calls == []


def test_a_pipe_may_be_a_source_itself(here: Path) -> None:
    os.mkfifo(here / "pipe")
    assert [item.remote for item in cp.items(["pipe"], "/etc/x")] == ["/etc/x"]


def test_links_to_directories_beside_are_followed(here: Path) -> None:
    _link(here, "site/other", "css")
    assert "/srv/site/other/a.css" in [item.remote for item in cp.items(["site"], "/srv")]


@pytest.mark.parametrize(
    ("fault", "code"), [(ControlTimeout("tcp://x", 1), 69), (KeyboardInterrupt(), 0), (ControlError("x", "no"), 1)]
)
def test_what_minions_have_is_shown_when_the_rest_cannot_be_sent(
    here: Path, master: Callable[..., Any], capsys: pytest.CaptureFixture[str], fault: BaseException, code: int
) -> None:
    fake = master({"job_returns": {}})
    jobs = iter([JID])

    def publish(fields: dict[str, Any]) -> dict[str, Any]:
        for jid in jobs:
            fake.events.append(
                (fake.now, f"salt/job/{jid}/ret/a", {"jid": jid, "id": "a", "return": True, "retcode": 0})
            )
            return {"jid": jid, "minions": ["a"], "missing": []}
        raise fault

    fake.answers["publish"] = publish
    assert cp.run(["*", "one.txt", "two.txt", "/srv"], fake.context()) == code
    assert capsys.readouterr().out == "a:\n    ----------\n    /srv/one.txt:\n        True\n"


def test_a_source_that_is_gone_meanwhile(here: Path) -> None:
    with pytest.raises(CommandError, match="gone cannot be read: No such file or directory"):
        list(cp.chunks(here / "gone", compressed=True))


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

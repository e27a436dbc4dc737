"""The spool: in full or not at all, whatever is killed and whatever a function returns."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saltern.minion.jobs import spool as spool_module
from saltern.minion.jobs.spool import Spool
from saltwire.pack import packb, unpackb

JID = "20260101000000000000"


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def ret(value: Any = True, jid: str = JID) -> dict[str, Any]:
    return {"jid": jid, "fun": "test.ping", "return": value, "retcode": 0}


def dead_pid() -> int:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_what_is_put_waits_until_it_is_acknowledged(spool: Spool, tmp_path: Path) -> None:
    path = spool.put(ret())
    assert spool.waiting() == [path]
    assert spool.read(path) == ret()
    assert Spool(tmp_path / "spool").waiting() == [path], "a restart forgets nothing"
    assert spool.size() == path.stat().st_size
    spool.acknowledged(path)
    spool.acknowledged(path)
    assert (spool.waiting(), spool.size(), spool.read(path)) == ([], 0, None)


def test_the_oldest_comes_first(spool: Spool) -> None:
    paths = [spool.put(ret(jid=f"2026010100000000{number:04d}")) for number in (3, 1, 2)]
    assert spool.waiting() == paths


def test_nobody_else_reads_it(spool: Spool, tmp_path: Path) -> None:
    assert (tmp_path / "spool").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("moment", ["pack", "fsync", "rename"])
def test_a_writer_killed_in_the_middle_leaves_nothing_that_is_sent(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "spool"
    spool = Spool(directory)
    kept = spool.put(ret())
    pid = os.fork()
    if not pid:
        try:
            die = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
            target = {"pack": (spool_module, "_packed"), "fsync": (os, "fsync"), "rename": (Path, "replace")}[moment]
            setattr(*target, die)
            spool.put(ret("never sent"))
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert len(list(directory.iterdir())) == (1 if moment == "pack" else 2), "the killed writer got as far as its file"
    assert spool.waiting() == [kept]
    assert spool.size() == kept.stat().st_size
    assert Spool(directory).waiting() == [kept]
    assert list(directory.iterdir()) == [kept], "the next start tidies up"


def test_a_writer_that_lives_is_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "spool"
    Spool(directory)
    (directory / f".1-{JID}.ret.{os.getpid()}").write_bytes(b"half")
    (directory / f".1-{JID}.ret.{dead_pid()}").write_bytes(b"half")
    Spool(directory)
    assert [path.name for path in directory.iterdir()] == [f".1-{JID}.ret.{os.getpid()}"]


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x01", b"\x90", b"\x81\xa1a", b"\x81\x91\x01\x01", b"\x80\x80"])
def test_a_file_that_is_no_return_is_set_aside(
    spool: Spool, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool" / f"1-{JID}.ret"
    path.write_bytes(content)
    good = spool.put(ret())
    if content == b"\x80\x80":
        path.write_bytes(b"\x80\x80")
    assert spool.read(path) is None
    assert spool.waiting() == [good]
    assert path.with_suffix(".bad").read_bytes() == content
    assert "was set aside" in caplog.text
    assert spool.size() == good.stat().st_size


class Odd:
    def __str__(self) -> str:
        return "odd"


def circle() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset("ab"), ["a", "b"]),
        (Odd(), "odd"),
        (Path("/srv"), "/srv"),
        ({"a": Odd()}, {"a": "odd"}),
        ({(1, 2): "x"}, {"(1, 2)": "x"}),
        ({frozenset([1]): "x"}, {"frozenset({1})": "x"}),
        ({1: "x", None: "y", 1.5: "z"}, {1: "x", None: "y", 1.5: "z"}),
        ("caf\udce9", "caf\\udce9"),
        ({"\udce9": ["\udce9"]}, {"\\udce9": ["\\udce9"]}),
        (2**80, str(2**80)),
        (-(2**80), str(-(2**80))),
        (b"\xff\x00", b"\xff\x00"),
        (float("inf"), float("inf")),
    ],
)
def test_no_result_is_lost_for_its_type(spool: Spool, value: Any, kept: Any) -> None:
    load = spool.read(spool.put(ret(value)))
    assert load is not None
    assert load["return"] == kept
    assert unpackb(packb(load))["jid"] == JID, "and it can be sent"


@pytest.mark.parametrize("value", [circle(), deep(400), deep(5000)])
def test_what_nests_without_end_keeps_its_first_levels(spool: Spool, value: Any) -> None:
    load = spool.read(spool.put(ret(value)))
    assert load is not None
    assert isinstance(load["return"], list)
    assert load["jid"] == JID


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()) | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters()) | st.integers() | st.tuples(st.integers()), inner)
    ),
    max_leaves=10,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(_ANY)
def test_whatever_is_returned_can_be_read_back(spool: Spool, value: Any) -> None:
    path = spool.put(ret(value))
    assert spool.read(path) is not None
    spool.acknowledged(path)


def test_a_full_disk_is_the_callers_to_hear_of(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        spool.put(ret())
    assert spool.waiting() == []


def test_a_return_that_is_too_large_is_told_of_in_its_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path / "spool", most=1000)
    assert spool.read(spool.put(ret("x" * 900))) == ret("x" * 900)
    load = spool.read(spool.put(ret("x" * 2000) | {"out": "highstate", "fun_args": ["a"], "success": True}))
    assert load is not None
    told = load.pop("return")
    assert load == {"jid": JID, "fun": "test.ping", "fun_args": ["a"], "retcode": 1, "success": False}
    assert told.startswith("ReturnTooLarge: what test.ping returned is 20")
    assert "more than max_return_bytes of the minion (1000)" in told
    assert "max_return_bytes of the minion (1000)" in caplog.text


def test_a_return_that_is_given_up_keeps_its_place(spool: Spool) -> None:
    first, second = spool.put(ret("x" * 2000)), spool.put(ret())
    spool.give_up(first, "more than the master reads at once")
    assert spool.waiting() == [first, second]
    load = spool.read(first)
    assert load is not None
    assert (load["jid"], load["success"]) == (JID, False)
    assert "more than the master reads at once, and was not sent" in load["return"]
    spool.acknowledged(first)
    spool.give_up(first, "gone meanwhile")
    assert spool.waiting() == [second]

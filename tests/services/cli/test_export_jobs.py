"""``salt-run jobs.export`` against a scripted master: pages in order, no more of them than wanted, a whole file or none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.cli import export_jobs, run
from saltern.kit.links.control import ControlError

JIDS = [f"202601010000000{number:02}000" for number in range(7, 0, -1)]


def find(fields: dict[str, Any]) -> dict[str, Any]:
    filters = fields["filters"]
    rest = [jid for jid in JIDS if not filters["cursor"] or jid < filters["cursor"]]
    page = rest[: filters["limit"]]
    meta = {"created": "5", "expected": "1", "fun": "12", "tgt": "*"}
    jobs = [{"jid": jid, "load": {"fun": "test.ping", "arg": ["ü"]}, "meta": meta} for jid in page]
    return {"jobs": jobs, "cursor": page[-1] if len(rest) > len(page) else ""}


def line(jid: str) -> dict[str, Any]:
    return {"fun": "test.ping", "arg": ["ü"], "jid": jid, "job": {"created": 5, "expected": 1, "fun": "12", "tgt": "*"}}


@pytest.mark.parametrize(
    ("words", "found", "pages"),
    [([], 7, [3, 3, 3]), (["limit=5"], 5, [3, 2]), (["limit=3"], 3, [3]), (["--limit", "50"], 7, [3, 3, 3])],
)
def test_pages(
    words: list[str], found: int, pages: list[int], master: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(export_jobs, "_PAGE", 3)
    fake = master({"find_jobs": find})
    assert run.run(["jobs.export", "function=test.*", *words], fake.context()) == 0
    assert [json.loads(text) for text in capsys.readouterr().out.splitlines()] == [line(jid) for jid in JIDS[:found]]
    asked = [fields["filters"] for fields in fake.sent("find_jobs")]
    assert [filters["limit"] for filters in asked] == pages
    assert {filters["function"] for filters in asked} == {"test.*"}


def test_returns_follow_their_job(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    many = [f"m{number:03}" for number in range(150)]
    parts = {minion: {"state": "returned"} for minion in many} | {"late": {"state": "lost"}}

    def status(fields: dict[str, Any]) -> dict[str, Any]:
        if fields["jid"] == JIDS[1]:
            raise ControlError("UnknownJob", "it expired")
        return {"minions": parts}

    answers = {"find_jobs": find, "job_status": status,
               "job_returns": lambda fields: {minion: {"return": 1} for minion in fields["minions"]}}  # fmt: skip
    fake = master(answers)
    assert run.run(["jobs.export", "--returns", "limit=2"], fake.context()) == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert lines[0] == line(JIDS[0])
    assert lines[1:151] == [{"jid": JIDS[0], "id": minion, "return": 1} for minion in many]
    assert lines[151:] == [line(JIDS[1])]
    assert [len(fields["minions"]) for fields in fake.sent("job_returns")] == [100, 50]


def test_a_file_is_whole_or_not_there(
    master: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(export_jobs, "_PAGE", 3)
    place = tmp_path / "jobs.ndjson"
    assert run.run(["jobs.export", f"file={place}"], master({"find_jobs": find}).context()) == 0
    assert capsys.readouterr().out == f"7 lines were written to {place}\n"
    assert len(place.read_text("utf-8").splitlines()) == 7
    before = place.read_bytes()

    def broken(fields: dict[str, Any]) -> dict[str, Any]:
        if fields["filters"]["cursor"]:
            raise ControlError("StoreUnavailable", "redis is away")
        return find(fields)

    assert run.run(["jobs.export", f"file={place}"], master({"find_jobs": broken}).context()) == 1
    assert f"redis is away; {place} was not written" in capsys.readouterr().err
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["limit=0"], 64, "limit must be a whole number of 1 or more, not 0"),
        (["limit=x"], 64, "not 'x'"),
        (["test.*"], 64, "jobs.export takes named arguments"),
        (["returns=some"], 64, "returns is True or False, not 'some'"),
        (["file=/no/such/place/x"], 64, "file /no/such/place/x: No such file or directory"),
        (["state=x"], 1, "state: 'x' is no state"),
    ],
)
def test_what_is_refused(
    words: list[str], code: int, said: str, master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({"find_jobs": ControlError("FilterError", "state: 'x' is no state")})
    assert run.run(["jobs.export", *words], fake.context()) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err

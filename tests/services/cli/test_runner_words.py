"""Named arguments with dashes: every name of the table is a parameter of its runner, and every form means the same."""

from __future__ import annotations

import inspect

import pytest

from saltern.cli.run import DASHED, undashed
from saltern.mworker.job_queries.filters import NAMES
from saltern.mworker.runners.table import RUNNERS

JID = "20260101000000000000"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["jobs.rerun", JID, "--failed"], ["jobs.rerun", JID, "failed=True"]),
        (
            ["--out=json", "jobs.rerun", JID, "--lost", "--all"],
            ["--out=json", "jobs.rerun", JID, "lost=True", "all=True"],
        ),
        (["jobs.rerun", JID, "--failed=False"], ["jobs.rerun", JID, "failed=False"]),
        (["jobs.rerun", JID, "failed=True"], ["jobs.rerun", JID, "failed=True"]),
        (["jobs.list_jobs", "--limit", "5", "--out=json"], ["jobs.list_jobs", "limit=5", "--out=json"]),
        (["jobs.list_jobs", "--function=state.*"], ["jobs.list_jobs", "function=state.*"]),
        (["jobs.list_jobs", "--limit"], ["jobs.list_jobs", "--limit"]),
        (["jobs.rerun", JID, "--faild"], ["jobs.rerun", JID, "--faild"]),
        (["--limit", "5", "jobs.list_jobs"], ["--limit", "5", "jobs.list_jobs"]),
        (["test.arg", "--failed"], ["test.arg", "--failed"]),
        ([], []),
    ],
)
def test_words(words: list[str], meant: list[str]) -> None:
    assert undashed(words) == meant


@pytest.mark.parametrize("fun", [name for name in DASHED if name in RUNNERS])
def test_names_are_the_runners_own(fun: str) -> None:
    parameters = inspect.signature(RUNNERS[fun]).parameters
    own = {name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD}
    filters = set(NAMES) if any(one.kind is one.VAR_KEYWORD for one in parameters.values()) else set()
    assert {*DASHED[fun].flags, *DASHED[fun].words} <= own | filters


def test_the_table_is_whole() -> None:
    assert set(DASHED) - set(RUNNERS) == {"jobs.export"}
    for names in DASHED.values():
        assert names.flags or names.words
